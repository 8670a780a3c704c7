package pgwire

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// classify returns the meaning of an error that the server reported. ended means that the session is over:
// the severity was FATAL or PANIC, or the connection ended right after.
//
// An error that leaves the session alive has rolled the transaction back, even during the commit: after the
// commit record is written, PostgreSQL can fail only with a PANIC (src/backend/access/transam/xact.c,
// RecordTransactionCommit is a critical section). A flavor for which this does not hold lists the codes.
func (f *Flavor) classify(code string, p wire.Phase, ended bool) Meaning {
	m, known := f.meaning(code)
	if !known && len(code) == 5 {
		m, known = f.meaning(code[:2])
	}
	switch {
	case !known && p == wire.Committing:
		return Meaning{Class: db.Unknown}
	case !known:
		m.Class = db.Fatal
	}
	// A refused write is a statement before the commit.
	sure := m.Class != db.Unavailable || code == readOnly
	if p == wire.Committing && (ended || !sure || f.openAtCommit(code)) {
		return Meaning{Class: db.Unknown}
	}
	if p != wire.Committing && m.Class == db.Unknown {
		m.Class = db.Unavailable // the commit was not sent
	}
	if p == wire.Before && ended {
		return Meaning{Class: db.Unavailable}
	}
	return m
}

// readOnly is read_only_sql_transaction: a statement is refused before it has an effect
// (PreventCommandIfReadOnly in src/backend/tcop/utility.c, ExecCheckXactReadOnly in executor/execMain.c), and
// its transaction is rolled back. If the server became a standby, the session lives but is useless.
const readOnly = "25006"

// noSchema is invalid_schema_name: no schema of search_path exists.
const noSchema = "3F000"

func (f *Flavor) openAtCommit(code string) bool {
	return slices.ContainsFunc(f.OpenAtCommit, func(open string) bool { return strings.HasPrefix(code, open) })
}

// meaning looks up a code, or its first two characters, in the flavor's table.
func (f *Flavor) meaning(code string) (Meaning, bool) {
	for m, codes := range f.Codes {
		if slices.Contains(codes, code) {
			return m, true
		}
	}
	return Meaning{}, false
}

// wrongPassword is invalid_password, which a server also reports for a missing password.
const wrongPassword = "28P01"

// demandsTLS is CockroachDB's message for a connection without TLS (pkg/sql/pgwire/server.go,
// ErrSSLRequired).
const demandsTLS = "node is running secure mode, SSL connection required"

// refusal returns the meaning of an error for the user of the URL, or 0. The cases of 28000, which only a
// connection can have, are distinguished by the server function that reports them, whose name is not
// translated. ClientAuthentication in auth.c found no entry in pg_hba.conf; InitializeSessionUserId in
// miscinit.c found no such role. In the first case, the server may require TLS if it mentions a connection
// without TLS.
func refusal(e *pgconn.PgError, code string, p wire.Phase) wire.Refusal {
	switch {
	case code == "42501":
		return wire.NoRight
	case p != wire.Connecting:
		return 0
	case strings.HasPrefix(e.Message, demandsTLS):
		return wire.NeedsTLS
	case code == "3D000":
		return wire.NoDatabase
	case code == "28000" && strings.HasPrefix(e.Message, "connection requires a valid client certificate"):
		return wire.NeedsCertificate
	case code == "28000" && strings.HasPrefix(e.Message, "certificate authentication failed"):
		return wire.OthersCertificate
	case code == "28000" && e.Routine == "ClientAuthentication":
		return wire.NoRight
	case code == wrongPassword, code == "28000":
		return wire.WrongUser
	}
	return 0
}

// withoutTLS reports whether the server may have found no entry for a connection because it had no TLS. It
// recognizes the messages of version 14 and later, and of earlier versions.
func withoutTLS(e *pgconn.PgError) bool {
	return e.Code == "28000" && e.Routine == "ClientAuthentication" &&
		(strings.HasSuffix(e.Message, ", no encryption") || strings.HasSuffix(e.Message, ", SSL off"))
}

func allWithoutTLS(tries []error) bool {
	return !slices.ContainsFunc(tries, func(try error) bool {
		e, ok := errors.AsType[*pgconn.PgError](try)
		return !ok || !withoutTLS(e)
	})
}

// inURL states how a URL avoids a refusal.
var inURL = map[wire.Refusal]string{
	wire.NeedsTLS: "sslmode=require", wire.LacksTLS: "sslmode=disable", wire.Untrusted: "sslrootcert=FILE",
	wire.WrongHost:        "with hostaddr=ADDRESS if it has no such name, or sslmode=verify-ca",
	wire.NeedsCertificate: "sslcert=FILE&sslkey=FILE",
}

// advice returns the recommended action for an error code, or an empty string.
func advice(code string, p wire.Phase) string {
	switch {
	case code == "42704" && p == wire.Connecting: // a parameter that libpq does not know goes to the server
		return "check the parameters in the URL"
	case code == "26000", code == "42P05":
		return "behind a pooler that lends each transaction another session, write prepare=false in the URL"
	case code == noSchema:
		return "create the schema and name it in the URL (search_path=SCHEMA), or behind a pooler for the user (ALTER ROLE NAME SET search_path = SCHEMA)"
	case code == readOnly:
		return "if it is a standby, name the primary in the URL, or all servers with target_session_attrs=read-write"
	case code == "53300":
		return "take fewer clients, or raise max_connections"
	}
	return ""
}

func isFatal(e *pgconn.PgError) bool {
	severity := e.SeverityUnlocalized // since PostgreSQL 9.6
	if severity == "" {
		severity = e.Severity
	}
	return severity == "FATAL" || severity == "PANIC"
}

// codeOf returns the SQLSTATE of an error. For a pooler's error, it returns the code of the server error with
// the same meaning.
func (f *Flavor) codeOf(e *pgconn.PgError) (string, PoolerError) {
	if f.Pooler == nil || !isFatal(e) {
		return e.Code, PoolerError{}
	}
	by := f.Pooler(e.Code, e.Message)
	return cmp.Or(by.Code, e.Code), by
}

// reported returns the error for a message of the server, with the server's text and advice.
func (f *Flavor) reported(op string, e *pgconn.PgError, p wire.Phase, ended bool) *db.Error {
	code, by := f.codeOf(e)
	m := f.classify(code, p, ended || isFatal(e))
	text, remedy := e.Message, by.Advice
	if by.NotSent {
		m = Meaning{Class: db.Unavailable}
	}
	if by == (PoolerError{}) {
		remedy = advice(code, p)
	}
	for _, more := range []string{e.Detail, remedy} {
		if more != "" {
			text += ": " + more
		}
	}
	if r := refusal(e, code, p); r != 0 {
		how := inURL[r]
		if code == "42501" && strings.Contains(e.Message, " schema ") {
			how = "search_path=SCHEMA in the URL names another schema"
		}
		text = r.Text(text, how)
	}
	return &db.Error{Class: m.Class, Constraint: m.Constraint, Code: e.Code, Op: op,
		Err: db.MessageError{Text: strings.ReplaceAll(text, "\n", " "), Cause: e}}
}

// fromPgconn converts an error of package pgconn.
func (f *Flavor) fromPgconn(ctx context.Context, op string, err error, p wire.Phase) *db.Error {
	if p == wire.Connecting {
		return f.connectError(op, err, context.Cause(ctx))
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return f.reported(op, e, p, false)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return wire.Lost(op, err, p)
}

// connectError returns the error for a failed connection. cause is the reason why the context ended, if it
// did. The user and the database are omitted, because a malformed URL may contain a part of the password
// there.
func (f *Flavor) connectError(op string, err, cause error) *db.Error {
	withoutPassword := false
	if c, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		withoutPassword = c.Config != nil && c.Config.Password == "" // nor in PGPASSWORD, nor in a file
		err = c.Unwrap()
	}
	// pgconn joins one error for each address, and two under sslmode=prefer or allow, with and without TLS.
	tries := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		tries = joined.Unwrap()
	}
	class, answer := f.judge(tries)
	switch {
	case answer != nil && allWithoutTLS(tries):
		// None of the attempts used TLS, so it is not known whether one with TLS would be accepted.
		text := wire.NeedsTLS.Reason() + ", or lets nobody in from here: " + answer.Message + ": " +
			wire.NeedsTLS.Advice(inURL[wire.NeedsTLS]) + ", or add an entry to the server's pg_hba.conf"
		return &db.Error{Class: class, Code: answer.Code, Op: op, Err: db.MessageError{Text: text, Cause: answer}}
	case answer != nil:
		refused := f.reported(op, answer, wire.Connecting, false)
		if withoutPassword && answer.Code == wrongPassword {
			refused.Err = db.MessageError{Text: wire.NoPassword.Text(answer.Message, "or into PGPASSWORD"), Cause: answer}
		}
		return refused
	case cause != nil:
		class, err, tries = db.Unavailable, cause, []error{cause}
	}
	advice := db.CheckServer
	certificate, _ := wire.CertificateRefusal(err)
	switch {
	case unmet(tries) != nil:
		advice = unmet(tries).advice
	case class == db.Fatal && slices.ContainsFunc(tries, refusedTLS):
		advice = wire.LacksTLS.Advice(inURL[wire.LacksTLS])
	case class == db.Fatal && certificate != 0:
		advice = certificate.Advice(inURL[certificate])
	case class == db.Fatal, errors.Is(err, context.Canceled), cause != nil && !errors.Is(cause, context.DeadlineExceeded):
		advice = ""
	}
	var lines []string
	for _, try := range tries {
		if refusedTLS(try) && triedPlain(tries, try) {
			continue
		}
		why := ""
		if refused, what := wire.CertificateRefusal(try); refused != 0 {
			why = strings.TrimSuffix(refused.Reason()+": "+what, ": ")
		}
		for line := range strings.SplitSeq(try.Error(), "\n") {
			lines = append(lines, attempt(op, line, why))
		}
	}
	slices.Sort(lines)
	text := strings.Join(slices.Compact(lines), "; ")
	if advice != "" {
		text += ": " + advice
	}
	return &db.Error{Class: class, Op: op, Err: db.MessageError{Text: text, Cause: err}}
}

// judge returns the class of a failed connection, and the server's answer that decides it, if any. The class
// is Fatal only if every attempt failed for a reason that a retry cannot change: a server that restarts may
// refuse TLS in one attempt and reset another. An answer about the password, the database or the right to use
// it holds for all attempts.
func (f *Flavor) judge(tries []error) (db.Class, *pgconn.PgError) {
	class := db.Fatal
	var passing, refusing, deciding *pgconn.PgError
	for _, try := range tries {
		var e *pgconn.PgError
		var code string
		if errors.As(try, &e) {
			code, _ = f.codeOf(e)
		}
		switch {
		case e == nil:
			refused, _ := wire.CertificateRefusal(try)
			d := demandOf(try)
			if !refusedTLS(try) && refused == 0 && db.ClassOf(try) != db.Fatal && (d == nil || !d.lasting) {
				class = db.Unavailable
			}
		case f.classify(code, wire.Connecting, isFatal(e)).Class != db.Fatal:
			passing = cmp.Or(passing, e)
		case code == wrongPassword, code == "3D000", code == "42501":
			deciding = cmp.Or(deciding, e)
		default:
			refusing = cmp.Or(refusing, e)
		}
	}
	if class == db.Fatal {
		return class, cmp.Or(passing, deciding, refusing)
	}
	return class, cmp.Or(passing, deciding)
}

// demand is something that the URL or the client demands of a server, and that a server does not fulfil.
type demand struct {
	says    string // part of the message of package pgconn
	advice  string
	lasting bool // another try is of no use
}

const (
	namePrimary = "name the primary too, because target_session_attrs accepts no other server"
	otherTLS    = "correct ssl_min_protocol_version and ssl_max_protocol_version in the URL"
)

var demands = []demand{
	{"read only connection", namePrimary, false},
	{"server is in standby mode", namePrimary, false},
	{"server is not in hot standby mode", "name a standby too, or leave target_session_attrs out", false},
	{"connection is not read only", "name a standby too, or leave target_session_attrs out", false},
	{"no GSSAPI provider", "have its pg_hba.conf take a password or a certificate", true},
	{"channel binding check failed", "write channel_binding=prefer, or have the server use TLS and scram-sha-256", true},
	{"require_auth check failed", "correct require_auth, or the method in the server's pg_hba.conf", true},
	{"sslcertmode check failed", "write sslcertmode=allow, or have the server ask for a certificate", true},
	{"tls: protocol version not supported", otherTLS, true},
	{"tls: no supported versions", otherTLS, true},
}

func demandOf(try error) *demand {
	text := try.Error()
	i := slices.IndexFunc(demands, func(d demand) bool { return strings.Contains(text, d.says) })
	if i < 0 {
		return nil
	}
	return &demands[i]
}

// unmet returns the demand that all attempts met in vain, or nil.
func unmet(tries []error) (all *demand) {
	for _, try := range tries {
		if refusedTLS(try) && triedPlain(tries, try) {
			continue
		}
		one := demandOf(try)
		if one == nil || all != nil && all.advice != one.advice {
			return nil
		}
		all = one
	}
	return all
}

// refusedTLS reports whether the server answered an attempt that it does not support TLS.
func refusedTLS(try error) bool {
	return strings.HasSuffix(try.Error(), "server refused TLS connection")
}

// triedPlain reports whether the address that refused TLS was also tried without TLS. Then that attempt gives
// the reason.
func triedPlain(tries []error, refused error) bool {
	address, _, _ := strings.Cut(refused.Error(), " (")
	return slices.ContainsFunc(tries, func(other error) bool {
		return !refusedTLS(other) && strings.HasPrefix(other.Error(), address+" (")
	})
}

// attempt returns a line of pgconn about a connection attempt in plain form, without an address that op
// contains already. An example of a line is "db:5432 (db): dial error: timeout: context deadline exceeded".
// why replaces the reason unless it is empty.
func attempt(op, line, why string) string {
	line = jargon.Replace(strings.TrimPrefix(line, "hostname resolving error: "))
	if name, found := strings.CutPrefix(line, "lookup "); found {
		name, _, _ = strings.Cut(name, " ")
		reason := wire.TextReason(line)
		if strings.Contains(op, " "+name+":") {
			return reason
		}
		return name + ": " + reason
	}
	address, rest, ok := strings.Cut(line, " (")
	_, reason, closed := strings.Cut(rest, "): ")
	if !ok || !closed {
		return line
	}
	if _, system, dialled := strings.Cut(reason, ": connect: "); dialled {
		reason = system
	}
	if strings.Contains(reason, "timeout: ") {
		reason = wire.LateReason
	}
	reason = cmp.Or(why, reason)
	if strings.HasSuffix(op, " "+address) {
		return reason
	}
	return address + ": " + reason
}

var jargon = strings.NewReplacer("server refused TLS connection", wire.LacksTLS.Reason(), "dial error: ", "", "tls error: ", "", "server error: ", "",
	"ValidateConnect failed: ", "", "channel binding check failed: ", "", "require_auth check failed: ", "", "sslcertmode check failed: ", "",
	"failed GSS auth: kerberos error: no GSSAPI provider registered, see https://github.com/otan/gopgkrb5", "the server demands Kerberos, which is not spoken here")
