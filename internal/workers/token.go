package workers

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
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
	"strings"
	"time"
)

// A token authenticates a run and its workers to each other. Its holder may join and knows the coordinator's
// key, which is derived from it. It is never sent.

// These constants limit the length of a token. A reader of the certificate can test guesses, so a token must
// be random; half of the minimal length is sufficient for that.
const (
	leastToken = 32
	mostToken  = 1024
)

// joinLimit limits the time for a connection to prove itself.
const joinLimit = 10 * time.Second

// NewToken returns a random token.
func NewToken() string {
	token := make([]byte, 32)
	_, _ = rand.Read(token) // which never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(token)
}

// CheckToken returns an error if a user's token is invalid.
func CheckToken(token string) error {
	switch {
	case token == "":
		return errors.New("it is empty")
	case len(token) < leastToken:
		return fmt.Errorf("it has %d characters: use at least %d random ones", len(token), leastToken)
	case len(token) > mostToken:
		return fmt.Errorf("it has %d characters: use at most %d", len(token), mostToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("it has invalid characters: use letters, digits and signs without spaces")
	}
	return nil
}

// identity holds what is derived from a token with HKDF (RFC 5869): the coordinator's key with its
// certificate, and a worker's proof of the token.
type identity struct {
	certificate tls.Certificate
	key         ed25519.PublicKey
	proof       []byte
}

func identityOf(token string) (*identity, error) {
	if err := CheckToken(token); err != nil {
		return nil, fmt.Errorf("the token is invalid: %w", err)
	}
	seed, failed := hkdf.Key(sha256.New, []byte(token), nil, "stroppy worker: key of the coordinator", ed25519.SeedSize)
	proof, err := hkdf.Key(sha256.New, []byte(token), nil, "stroppy worker: proof of a worker", sha256.Size)
	if err := errors.Join(failed, err); err != nil {
		return nil, fmt.Errorf("derive the keys of the workers: %w", err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	public := key.Public().(ed25519.PublicKey)
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, public, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the workers: %w", err)
	}
	return &identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, public, proof}, nil
}

// admit returns a channel for a connection whose other side has the token.
func (i *identity) admit(conn net.Conn) (*channel, error) {
	secured := tls.Server(conn, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.certificate}})
	proof := make([]byte, len(i.proof))
	err := secured.SetDeadline(time.Now().Add(joinLimit))
	if err == nil {
		_, err = io.ReadFull(secured, proof)
	}
	if err == nil && subtle.ConstantTimeCompare(proof, i.proof) != 1 {
		err = errors.New("its token belongs to another run")
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

// errOther means that the other side does not have the token.
var errOther = errors.New("the run at that address has another token: give this worker the token of the run")

// join connects to the coordinator with the same token.
func (i *identity) join(ctx context.Context, address string) (*channel, error) {
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, // its key identifies it
		VerifyConnection: func(s tls.ConnectionState) error {
			if key, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey); !ok || subtle.ConstantTimeCompare(key, i.key) != 1 {
				return errOther
			}
			return nil
		},
	}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		if _, err = conn.Write(i.proof); err == nil {
			return newChannel(conn), nil
		}
		_ = conn.Close()
	}
	return nil, fmt.Errorf("join the run at %s: %w", address, err)
}
