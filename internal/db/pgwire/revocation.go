package pgwire

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// revocations holds lists of revoked certificates. As in libpq, the authority of each certificate of a server must
// have a list (OpenSSL, X509_V_FLAG_CRL_CHECK_ALL).
type revocations []*x509.RevocationList

// readRevocations reads the file and all files of the folder; either may be empty.
func readRevocations(file, folder string) (revocations, error) {
	var files []string
	if file != "" {
		files = append(files, file)
	}
	if folder != "" {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	var lists revocations
	for _, name := range files {
		rest, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
			if block.Type != "X509 CRL" {
				continue
			}
			list, err := x509.ParseRevocationList(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			lists = append(lists, list)
		}
	}
	if len(lists) == 0 {
		return nil, errors.New("it holds no list of revoked certificates in PEM form")
	}
	return lists, nil
}

// verify returns a function for tls.Config.VerifyConnection that refuses a revoked certificate.
func (r revocations) verify(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		others := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			others.AddCert(c)
		}
		chains, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: others})
		for i := 0; err == nil && i+1 < len(chains[0]); i++ {
			err = r.check(chains[0][i], chains[0][i+1])
		}
		if err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
		}
		return nil
	}
}

func (r revocations) check(certificate, authority *x509.Certificate) error {
	for _, list := range r {
		if !bytes.Equal(list.RawIssuer, authority.RawSubject) || list.CheckSignatureFrom(authority) != nil {
			continue
		}
		if !list.NextUpdate.IsZero() && time.Now().After(list.NextUpdate) {
			return fmt.Errorf("the list of certificates that %s has revoked is out of date since %s: fetch a new one",
				authority.Subject, list.NextUpdate.Format(time.DateTime))
		}
		for _, revoked := range list.RevokedCertificateEntries {
			if revoked.SerialNumber.Cmp(certificate.SerialNumber) == 0 {
				return fmt.Errorf("%s has revoked it on %s", authority.Subject, revoked.RevocationTime.Format(time.DateTime))
			}
		}
		return nil
	}
	return fmt.Errorf("sslcrl and sslcrldir have no list of the certificates that %s has revoked", authority.Subject)
}
