package pgwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

func TestErrorCodesAreClassified(t *testing.T) {
	type want struct{ connecting, before, committing, ended db.Class }
	for code, w := range map[string]want{
		"40001": {db.Aborted, db.Aborted, db.Aborted, db.Unknown},
		"40P01": {db.Aborted, db.Aborted, db.Aborted, db.Unknown},
		"55P03": {db.Aborted, db.Aborted, db.Aborted, db.Unknown},
		"57014": {db.Aborted, db.Aborted, db.Aborted, db.Unknown},
		"53100": {db.Aborted, db.Aborted, db.Aborted, db.Unknown},
		"40003": {db.Unavailable, db.Unavailable, db.Unknown, db.Unknown},
		"08007": {db.Unavailable, db.Unavailable, db.Unknown, db.Unknown},
		"08006": {db.Unavailable, db.Unavailable, db.Unknown, db.Unknown},
		"57P01": {db.Unavailable, db.Unavailable, db.Unknown, db.Unknown},
		"57P02": {db.Unavailable, db.Unavailable, db.Unknown, db.Unknown},
		"57P03": {db.Unavailable, db.Unavailable, db.Unknown, db.Unknown},
		"53300": {db.Unavailable, db.Unavailable, db.Unknown, db.Unknown},
		"25006": {db.Unavailable, db.Unavailable, db.Unavailable, db.Unknown},
		"23514": {db.Constraint, db.Constraint, db.Constraint, db.Unknown},
		"23505": {db.Constraint, db.Constraint, db.Constraint, db.Unknown},
		"28P01": {db.Fatal, db.Fatal, db.Fatal, db.Unknown},
		"3D000": {db.Fatal, db.Fatal, db.Fatal, db.Unknown},
		"42501": {db.Fatal, db.Fatal, db.Fatal, db.Unknown},
		"42601": {db.Fatal, db.Fatal, db.Fatal, db.Unknown},
		"22003": {db.Fatal, db.Fatal, db.Fatal, db.Unknown},
		"XX001": {db.Fatal, db.Fatal, db.Fatal, db.Unknown},
		"ZZ123": {db.Fatal, db.Fatal, db.Unknown, db.Unknown},
		"":      {db.Fatal, db.Fatal, db.Unknown, db.Unknown},
		"4":     {db.Fatal, db.Fatal, db.Unknown, db.Unknown},
	} {
		got := want{TestFlavor.classify(code, wire.Connecting, false).Class, TestFlavor.classify(code, wire.Before, false).Class,
			TestFlavor.classify(code, wire.Committing, false).Class, TestFlavor.classify(code, wire.Committing, true).Class}
		if got != w {
			t.Errorf("%q: %v, want %v", code, got, w)
		}
		if got := TestFlavor.classify(code, wire.Before, true).Class; got != db.Unavailable {
			t.Errorf("%q at the end of a session: %v", code, got)
		}
	}
}

// TestProductListsErrorsThatLeaveCommitUnknown checks that a product can list the errors after which the outcome
// of a commit is unknown.
func TestProductListsErrorsThatLeaveCommitUnknown(t *testing.T) {
	f := *TestFlavor
	f.OpenAtCommit = []string{"57", "XX"}
	for code, want := range map[string]struct{ before, committing db.Class }{
		"40001": {db.Aborted, db.Aborted},
		"57014": {db.Aborted, db.Unknown},
		"57P04": {db.Fatal, db.Unknown},
		"XX001": {db.Fatal, db.Unknown},
		"23505": {db.Constraint, db.Constraint},
	} {
		if before, committing := f.classify(code, wire.Before, false).Class, f.classify(code, wire.Committing, false).Class; before != want.before || committing != want.committing {
			t.Errorf("%s: %v and %v, want %v", code, before, committing, want)
		}
	}
}

func TestEveryConstraintHasItsKind(t *testing.T) {
	for code, kind := range map[string]db.ConstraintKind{
		"23514": db.CheckFailed, "23502": db.NotNull, "23503": db.ForeignKey, "23001": db.ForeignKey, "23505": db.UniqueKey,
	} {
		err := TestFlavor.reported("commit", &pgconn.PgError{Code: code, Severity: "ERROR", Message: "refused"}, wire.Committing, false)
		if db.ConstraintOf(err) != kind {
			t.Errorf("%s: %v", code, db.ConstraintOf(err))
		}
		var server *pgconn.PgError
		if !errors.As(err, &server) {
			t.Errorf("%s: the server's error cannot be reached", code)
		}
	}
}

// TestJoinedErrorsAreFatalOnlyTogether checks that joined errors are Fatal only if no retry can help, and that a
// restarting server is waited for.
func TestJoinedErrorsAreFatalOnlyTogether(t *testing.T) {
	try := func(host, what string, err error) error {
		return fmt.Errorf("%s:5432 (%s): %w", host, host, fmt.Errorf("%s: %w", what, err))
	}
	var (
		refused     = errors.New("server refused TLS connection")
		reset       = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		down        = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		certificate = &tls.CertificateVerificationError{Err: errors.New("x509: unknown authority")}
		answer      = func(code string) error {
			return &pgconn.PgError{Severity: "FATAL", Code: code, Message: "the server says no"}
		}
		noHost = &net.DNSError{Err: "no such host", Name: "b"}
	)
	const usual, tlsAdvice, certAdvice = db.CheckServer, "the server has no TLS: turn TLS on in the server, or off in the URL (sslmode=disable)", "name the authority that signed it in the URL (sslrootcert=FILE)"
	for name, tc := range map[string]struct {
		tries []error
		class db.Class
		code  string
		says  string
		not   string
	}{
		"require, refused":                {[]error{try("a", "tls error", refused)}, db.Fatal, "", tlsAdvice, usual},
		"require, refused by both":        {[]error{try("a", "tls error", refused), try("b", "tls error", refused)}, db.Fatal, "", tlsAdvice, usual},
		"require, one refuses, one down":  {[]error{try("a", "tls error", refused), try("b", "dial error", down)}, db.Unavailable, "", "has no TLS", "sslmode"},
		"require, one refuses, no name":   {[]error{noHost, try("a", "tls error", refused)}, db.Unavailable, "", usual, tlsAdvice},
		"prefer, refused, then reset":     {[]error{try("a", "tls error", refused), try("a", "failed to receive message", reset)}, db.Unavailable, "", usual, "TLS"},
		"allow, reset, then refused":      {[]error{try("a", "failed to receive message", reset), try("a", "tls error", refused)}, db.Unavailable, "", usual, "TLS"},
		"prefer, refused, then gone":      {[]error{try("a", "tls error", refused), try("a", "dial error", down)}, db.Unavailable, "", usual, "TLS"},
		"prefer, down":                    {[]error{try("a", "dial error", down), try("a", "dial error", down)}, db.Unavailable, "", usual, "TLS"},
		"prefer, refused, starting":       {[]error{try("a", "tls error", refused), try("a", "server error", answer("57P03"))}, db.Unavailable, "57P03", "says no", "TLS"},
		"prefer, refused, wrong password": {[]error{try("a", "tls error", refused), try("a", "server error", answer("28P01"))}, db.Fatal, "28P01", "password", "TLS"},
		"prefer, reset, wrong password":   {[]error{try("a", "tls error", reset), try("a", "server error", answer("28P01"))}, db.Fatal, "28P01", "password", "TLS"},
		"prefer, reset, no database":      {[]error{try("a", "tls error", reset), try("a", "server error", answer("3D000"))}, db.Fatal, "3D000", "says no", "TLS"},
		"TLS only, reset, then up":        {[]error{try("a", "tls error", reset), try("a", "server error", answer("28000"))}, db.Unavailable, "", usual, "TLS"},
		"TLS only, starting, then up":     {[]error{try("a", "server error", answer("57P03")), try("a", "server error", answer("28000"))}, db.Unavailable, "57P03", "says no", "TLS"},
		"plain only, up, then restarted":  {[]error{try("a", "server error", answer("28000")), try("a", "server error", answer("57P01"))}, db.Unavailable, "57P01", "says no", "TLS"},
		"no entry, with TLS or without":   {[]error{try("a", "server error", answer("28000")), try("a", "server error", answer("28000"))}, db.Fatal, "28000", "password", "TLS"},
		"verify, unknown authority":       {[]error{try("a", "tls error", certificate)}, db.Fatal, "", certAdvice, usual},
		"verify, one unknown, one down":   {[]error{try("a", "tls error", certificate), try("b", "dial error", down)}, db.Unavailable, "", usual, certAdvice},
		"verify, one unknown, one plain":  {[]error{try("a", "tls error", certificate), try("b", "tls error", refused)}, db.Fatal, "", tlsAdvice, usual},
	} {
		for order, err := range map[string]error{"one": tc.tries[0], "joined": errors.Join(tc.tries...)} {
			if order == "one" && len(tc.tries) > 1 {
				continue
			}
			got := TestFlavor.fromPgconn(t.Context(), "connect to PostgreSQL at h", err, wire.Connecting)
			if got.Class != tc.class || got.Code != tc.code || !strings.Contains(got.Error(), tc.says) || strings.Contains(got.Error(), tc.not) {
				t.Errorf("%s, %s: %v, code %q, %q; want %v, %q, saying %q and not %q", name, order, got.Class, got.Code, got, tc.class, tc.code, tc.says, tc.not)
			}
			if strings.Contains(got.Error(), "\n") {
				t.Errorf("%s: %q is more than one line", name, got)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := TestFlavor.fromPgconn(ended, "connect", try("a", "tls error", refused), wire.Connecting); got.Class != db.Unavailable || !errors.Is(got, context.Canceled) {
		t.Errorf("a refusal after the end: %v, %v", got.Class, got)
	}
}
