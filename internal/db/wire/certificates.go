package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLSFiles names the files with which a client uses TLS, all in PEM form. Each may be empty.
type TLSFiles struct {
	CA               string // the authorities to trust; empty: the system's
	Certificate, Key string // of the client
}

// Config reads the files.
func (f TLSFiles) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("read the certificates to trust: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the file %s has no certificate in PEM form", f.CA)
		}
	}
	switch {
	case f.Certificate == "" && f.Key == "":
		return c, nil
	case f.Certificate == "" || f.Key == "":
		return nil, errors.New("a certificate of the client needs its key: give both files")
	}
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the client and its key, in PEM form without a passphrase, cannot be used: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// AnyName makes a configuration accept a trusted certificate for another host.
func AnyName(c *tls.Config) {
	roots := c.RootCAs
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(state tls.ConnectionState) error {
		others := x509.NewCertPool()
		for _, more := range state.PeerCertificates[1:] {
			others.AddCert(more)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: others})
		return err
	}
}
