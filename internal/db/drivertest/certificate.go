package drivertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates of servers and clients. Any user can read its files, because some servers run as their
// own user.
type Authority struct {
	File string // its certificate

	t           testing.TB
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	folder, err := os.MkdirTemp("", "stroppy-tls-") // the test's own folder is below one that only its user may read
	Must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	Must(t, os.Chmod(folder, 0o755))
	a := &Authority{t: t, folder: folder, serial: 1}
	a.File, _ = a.sign("authority", &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	})
	return a
}

// Issue writes a certificate for a client of this name, or for a server with these names and addresses, and its key.
func (a *Authority) Issue(name string, hosts ...string) (certificate, key string) {
	a.t.Helper()
	template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.sign(name, template)
}

// sign signs a certificate. The first certificate belongs to the authority.
func (a *Authority) sign(name string, template *x509.Certificate) (certificate, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(a.t, err)
	template.Subject, template.SerialNumber = pkix.Name{CommonName: name}, big.NewInt(a.serial)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	a.serial++
	if a.certificate == nil {
		a.certificate, a.key = template, private
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	Must(a.t, err)
	parsed, err := x509.ParseCertificate(signed)
	Must(a.t, err)
	if template.IsCA {
		a.certificate = parsed
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	Must(a.t, err)
	return a.write(name+".pem", "CERTIFICATE", signed), a.write(name+".key", "PRIVATE KEY", encoded)
}

func (a *Authority) write(name, kind string, b []byte) string {
	path := filepath.Join(a.folder, name)
	Must(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o644))
	return path
}

// Revoke writes the list of revoked certificates, with those in these files.
func (a *Authority) Revoke(name string, files ...string) (list string) {
	a.t.Helper()
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	for _, file := range files {
		text, err := os.ReadFile(file)
		Must(a.t, err)
		block, _ := pem.Decode(text)
		revoked, err := x509.ParseCertificate(block.Bytes)
		Must(a.t, err)
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: revoked.SerialNumber, RevocationTime: time.Now()})
	}
	signed, err := x509.CreateRevocationList(rand.Reader, template, a.certificate, a.key)
	Must(a.t, err)
	return a.write(name, "X509 CRL", signed)
}

// Certificate writes a self-signed certificate for 127.0.0.1 and its key, so only a client that has the certificate
// trusts it.
func Certificate(t testing.TB) (certificate, key string) {
	t.Helper()
	a := NewAuthority(t)
	a.serial, a.certificate = 1, nil
	return a.sign("cert", &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	})
}
