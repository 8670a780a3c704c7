package workers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

// A secret is what a worker proves that it may join by, and what it knows the coordinator
// by: a random token, and the digest of the coordinator's certificate.
const (
	tokenSize  = 32
	secretSize = tokenSize + sha256.Size
)

// joinLimit bounds how long a connection may take to prove itself.
const joinLimit = 10 * time.Second

// identity is a coordinator's certificate and the secret of its workers. Both are drawn for
// one run, and are nowhere but in the memory of its processes.
type identity struct {
	certificate tls.Certificate
	token       []byte
	secret      string
}

func newIdentity() (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key for the workers: %w", err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the workers: %w", err)
	}
	i := &identity{certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, token: make([]byte, tokenSize)}
	_, _ = rand.Read(i.token) // which never fails (crypto/rand)
	digest := sha256.Sum256(der)
	i.secret = base64.RawURLEncoding.EncodeToString(append(append([]byte(nil), i.token...), digest[:]...))
	return i, nil
}

// admit makes a channel of a connection whose other side has the token.
func (i *identity) admit(conn net.Conn) (*channel, error) {
	secured := tls.Server(conn, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.certificate}})
	token := make([]byte, tokenSize)
	err := secured.SetDeadline(time.Now().Add(joinLimit))
	if err == nil {
		_, err = io.ReadFull(secured, token)
	}
	if err == nil && subtle.ConstantTimeCompare(token, i.token) != 1 {
		err = errors.New("its token is another run's")
	}
	if err == nil {
		err = secured.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return newChannel(secured), nil
}

// join connects to the coordinator that has the secret.
func join(ctx context.Context, address, secret string) (*channel, error) {
	raw, err := base64.RawURLEncoding.DecodeString(secret)
	if err != nil || len(raw) != secretSize {
		return nil, fmt.Errorf("join the run at %s: the token is none of a run's: take the one that the run gives its workers", address)
	}
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, // the digest says who it is
		VerifyConnection: func(s tls.ConnectionState) error {
			digest := sha256.Sum256(s.PeerCertificates[0].Raw)
			if subtle.ConstantTimeCompare(digest[:], raw[tokenSize:]) != 1 {
				return errors.New("another program answers there than the run that gave the token")
			}
			return nil
		},
	}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		if _, err = conn.Write(raw[:tokenSize]); err == nil {
			return newChannel(conn), nil
		}
		_ = conn.Close()
	}
	return nil, fmt.Errorf("join the run at %s: %w", address, err)
}
