package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
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

// Handshake makes connections with TLS.
type Handshake struct {
	Dial     func(context.Context) (net.Conn, error)
	Config   *tls.Config
	Server   string // HOST:PORT
	Question string // is sent first, and the answer is read up to the byte End
	End      byte
}

// Connect connects, and asks the question. With TLS 1.3 a server refuses the certificate of a client after the
// handshake, so the answer is the first proof that it was accepted.
func (h *Handshake) Connect(ctx context.Context) (*tls.Conn, error) {
	conn, wanted, err := h.begin(ctx)
	if err != nil {
		return nil, err
	}
	stop := closeWith(ctx, conn)
	_, err = io.WriteString(conn, h.Question)
	for b := []byte{h.End + 1}; err == nil && b[0] != h.End; {
		_, err = io.ReadFull(conn, b)
	}
	stop()
	if err == nil {
		return conn, nil
	}
	conn.Close()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if wanted {
		if alert := h.alert(ctx); alert != nil {
			return nil, alert
		}
	}
	return nil, err
}

// begin makes the handshake. It also reports whether the server wanted a certificate.
func (h *Handshake) begin(ctx context.Context) (conn *tls.Conn, wanted bool, err error) {
	plain, err := h.Dial(ctx)
	if err != nil {
		return nil, false, err
	}
	c := h.Config.Clone()
	c.ServerName, _, _ = net.SplitHostPort(h.Server)
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		wanted = true
		if len(h.Config.Certificates) == 0 {
			return new(tls.Certificate), nil
		}
		// The server may not name its authority. It then refuses the certificate with a reason.
		return &h.Config.Certificates[0], nil
	}
	conn = tls.Client(plain, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, false, h.refused(err)
	}
	return conn, wanted, nil
}

// alertLimit limits the time for an alert of TLS after the handshake.
const alertLimit = time.Second

// alert returns the server's alert about the certificate of the client, or nil. A question could end the connection
// before the alert is read.
func (h *Handshake) alert(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, alertLimit)
	defer cancel()
	conn, _, err := h.begin(ctx)
	if err == nil {
		defer conn.Close()
		defer closeWith(ctx, conn)()
		_, err = conn.Read(make([]byte, 1))
	}
	if err = h.refused(err); err != nil {
		if refused, _ := CertificateRefusal(err); refused != 0 {
			return err
		}
	}
	return nil
}

// refused returns the error for a refused handshake. Some servers call a missing certificate a bad one.
func (h *Handshake) refused(err error) error {
	if refused, _ := CertificateRefusal(err); refused == BadCertificate && len(h.Config.Certificates) == 0 {
		return fmt.Errorf("remote error: tls: certificate required: %w", err)
	}
	return err
}

// closeWith closes a connection when ctx ends, until the result is called.
func closeWith(ctx context.Context, conn net.Conn) (stop func()) {
	end := context.AfterFunc(ctx, func() { conn.Close() })
	return func() { end() }
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
