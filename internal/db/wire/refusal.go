package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"stroppy/internal/db"
)

// Refusal is the reason why a reachable server does not accept a user, in words that all drivers share.
type Refusal uint8

const (
	WrongUser  Refusal = iota + 1 // or the password
	NoUser                        // the server asks for one, and was given none
	NoPassword                    // was given, and the server asks for one
	NoDatabase                    // of the name in the URL
	NoRight
	NeedsTLS  // the server demands it
	LacksTLS  // the server does not have it, and the URL demands it
	Untrusted // the certificate of the server
	WrongHost // the server's certificate is for another one
	OutOfDate // the server's certificate

	NeedsCertificate // the server demands a certificate of the client
	BadCertificate   // of the client
	OthersCertificate
)

var refusals = [...]struct{ reason, advice string }{
	WrongUser:  {"wrong user or password", "check the user and the password in the URL"},
	NoUser:     {"the server asks for a user and a password", "write them into the URL"},
	NoPassword: {"no password was given, and the server asks for one", "write it into the URL of --db or STROPPY_DB"},
	NoDatabase: {"no such database", "make it, or name another in the URL"},
	NoRight:    {"missing right", "give this user the right, or take another user"},
	NeedsTLS:   {"the server demands TLS", "turn TLS on in the URL"},
	LacksTLS:   {"the server has no TLS", "turn TLS on in the server, or off in the URL"},
	Untrusted:  {"the server's certificate is not trusted", "name the authority that signed it in the URL"},
	WrongHost:  {"the server's certificate is not trusted", "connect to a name that the certificate has"},
	OutOfDate:  {"the server's certificate is not trusted", "renew it, or set the clock of this machine"},

	NeedsCertificate:  {"the server demands a certificate of the client", "name one that the server trusts, and its key, in the URL"},
	BadCertificate:    {"the server refuses the client's certificate", "take one that is in date, and whose authority the server trusts"},
	OthersCertificate: {"the client's certificate is for another user", "take the certificate of this user, or name its user in the URL"},
}

// Reason returns what is wrong, without advice.
func (r Refusal) Reason() string { return refusals[r].reason }

// Advice returns what to do. how states how to write that for this driver, and may be empty.
func (r Refusal) Advice(how string) string {
	if how == "" {
		return refusals[r].advice
	}
	return refusals[r].advice + " (" + how + ")"
}

// Text returns the refusal and the server's text, which may be empty, in one line.
func (r Refusal) Text(said, how string) string {
	text := r.Reason()
	if said != "" {
		text += ": " + strings.TrimSuffix(strings.ReplaceAll(said, "\n", " "), ".")
	}
	return text + ": " + r.Advice(how)
}

// CertificateRefusal returns the refusal of the certificate of either side, and what is wrong with it. It returns 0 if
// err concerns something else.
func CertificateRefusal(err error) (r Refusal, why string) {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name):
		return WrongHost, name.Error()
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return OutOfDate, invalid.Error()
	case errors.As(err, &verification):
		return Untrusted, verification.Err.Error()
	case errors.As(err, &authority):
		return Untrusted, authority.Error()
	case errors.As(err, &invalid):
		return Untrusted, invalid.Error()
	case err == nil:
		return 0, ""
	}
	_, alert, _ := strings.Cut(err.Error(), "remote error: tls: ")
	switch { // RFC 8446, 6.2; package tls exports no type for an alert
	case !strings.Contains(alert, "certificate"):
		return 0, ""
	case strings.Contains(alert, "certificate required"):
		return NeedsCertificate, ""
	}
	return BadCertificate, alert
}

// AnswersPlain reports whether a server answered a TLS handshake in another protocol.
func AnswersPlain(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header)
}

// DemandsTLS returns the error of opening a database without TLS that failed with err. If the server starts TLS, the
// error says so; otherwise it is err. how is as in Text.
func DemandsTLS(ctx context.Context, op string, err error, how string, servers ...string) error {
	if err == nil || db.ClassOf(err) != db.Unavailable {
		return err
	}
	for _, server := range servers {
		if speaksTLS(ctx, server) {
			return db.Fatalf(op, "%w", db.MessageError{Text: server + ": " + NeedsTLS.Text("", how), Cause: err})
		}
	}
	return err
}

// speaksTLSLimit limits the time of a handshake.
const speaksTLSLimit = time.Second

// speaksTLS reports whether a server starts TLS, after a connection without it failed. It verifies no certificate and
// sends only the handshake.
func speaksTLS(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, speaksTLSLimit)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	greeted := false
	settings := &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error {
		greeted = true
		return nil
	}}
	err = tls.Client(conn, settings).HandshakeContext(ctx)
	return err == nil || greeted // a server may then ask for a certificate of the client
}

// These are the reasons for a failed connection.
const (
	RefusedReason = "connection refused"
	NoHostReason  = "no such host"
	NoNameReason  = "the name of the host could not be looked up"
	LateReason    = "no answer in time"
)

// Reason returns the reason for a failed connection in words that all drivers share. It contains no address,
// because the caller's sentence does. It is empty if err is not a network error.
func Reason(err error) string {
	var name *net.DNSError
	var number syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return NoHostReason
	case errors.As(err, &name):
		return NoNameReason
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return LateReason
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &network) && network.Timeout():
		return LateReason
	}
	return TextReason(err.Error())
}

// TextReason is Reason for an error that a library reports only as text: package net's text for a dial or a
// name look-up. For other texts it is empty.
func TextReason(text string) string {
	dial := max(strings.LastIndex(text, "dial tcp"), strings.LastIndex(text, "lookup "))
	if dial < 0 {
		return ""
	}
	text = text[dial:]
	last := strings.Trim(text[strings.LastIndexByte(text, ':')+1:], ` "`)
	switch {
	case strings.HasSuffix(text, "i/o timeout") && strings.Contains(text, "lookup "), last == "server misbehaving", last == "Temporary failure in name resolution":
		return NoNameReason
	case last == "i/o timeout", last == "connection timed out":
		return LateReason
	}
	return last
}
