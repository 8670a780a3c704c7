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

// classify gives the meaning of an error that the server reported. ended says
// that the session is over: the severity was FATAL or PANIC, or the connection
// ended right after.
//
// An error that leaves the session alive has rolled the transaction back, also
// when it comes from the commit itself: PostgreSQL cannot fail with less than a
// PANIC once the commit record is written (src/backend/access/transam/xact.c,
// RecordTransactionCommit is a critical section). A flavor for which this does not
// hold lists the codes.
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
	// What a server refuses as a write is a statement before the commit.
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

// readOnly is read_only_sql_transaction: a statement is refused before it does anything
// (PreventCommandIfReadOnly of src/backend/tcop/utility.c, ExecCheckXactReadOnly of
// executor/execMain.c), and its transaction is rolled back. On a server that has become a
// standby the session lives, and is of no use.
const readOnly = "25006"

func (f *Flavor) openAtCommit(code string) bool {
	return slices.ContainsFunc(f.OpenAtCommit, func(open string) bool { return strings.HasPrefix(code, open) })
}

// meaning finds a code, or the first two characters of one, in the flavor's table.
func (f *Flavor) meaning(code string) (Meaning, bool) {
	for m, codes := range f.Codes {
		if slices.Contains(codes, code) {
			return m, true
		}
	}
	return Meaning{}, false
}

// wrongPassword is invalid_password, which a server says of one that is missing, too.
const wrongPassword = "28P01"

// demandsTLS is what CockroachDB says to a connection without TLS (pkg/sql/pgwire/server.go,
// ErrSSLRequired).
const demandsTLS = "node is running secure mode, SSL connection required"

// refusal is what an error means for the user of the URL; 0: nothing of that kind. Which of
// the cases of 28000 it is, which a connection alone has, is known by the function of the
// server that reports it, whose name is not translated: ClientAuthentication of auth.c finds
// no entry in pg_hba.conf, and InitializeSessionUserId of miscinit.c no such role. In the
// first the server may demand TLS where it says so of a connection without.
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
	case code == "28000" && e.Routine == "ClientAuthentication":
		return wire.NoRight
	case code == wrongPassword, code == "28000":
		return wire.WrongUser
	}
	return 0
}

// withoutTLS says that the server found no entry for a connection because, maybe, it had no
// TLS: in the words of version 14 and later, and of those before.
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

// advice says what to do about an error of a code; empty where nothing can be
// said in general.
func advice(code string, p wire.Phase) string {
	switch {
	case code == "42704" && p == wire.Connecting: // a parameter that libpq does not know goes to the server
		return "check the parameters in the URL"
	case code == "26000", code == "42P05":
		return "behind a pooler that lends each transaction another session, write prepare=false in the URL"
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

// codeOf is the SQLSTATE of an error, which for one that a pooler has made up is that of the
// server's error that means the same.
func (f *Flavor) codeOf(e *pgconn.PgError) (string, PoolerError) {
	if f.Pooler == nil || !isFatal(e) {
		return e.Code, PoolerError{}
	}
	by := f.Pooler(e.Code, e.Message)
	return cmp.Or(by.Code, e.Code), by
}

// reported is the error for something that the server reported, in its own words, and
// what to do about it.
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
		text = r.Text(text, map[wire.Refusal]string{wire.NeedsTLS: "sslmode=require"}[r])
	}
	return &db.Error{Class: m.Class, Constraint: m.Constraint, Code: e.Code, Op: op,
		Err: db.MessageError{Text: strings.ReplaceAll(text, "\n", " "), Cause: e}}
}

// fromPgconn turns an error of package pgconn into one of ours.
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

// connectError is the error for a connection that was not made; cause is why the
// context ended, if it did. What pgconn says about the user and the database is
// left out, for a mangled URL may carry a part of the password there.
func (f *Flavor) connectError(op string, err, cause error) *db.Error {
	withoutPassword := false
	if c, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		withoutPassword = c.Config != nil && c.Config.Password == "" // nor in PGPASSWORD, nor in a file
		err = c.Unwrap()
	}
	// pgconn joins one error for each address, and under sslmode=prefer or allow two,
	// with TLS and without.
	tries := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		tries = joined.Unwrap()
	}
	class, answer := f.judge(tries)
	switch {
	case answer != nil && allWithoutTLS(tries):
		// None of the attempts had TLS, so that it is not known whether one with it is let in.
		text := wire.NeedsTLS.Reason() + ", or lets nobody in from here: " + answer.Message + ": " +
			wire.NeedsTLS.Advice("sslmode=require") + ", or add an entry to the server's pg_hba.conf"
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
	switch {
	case class == db.Fatal && slices.ContainsFunc(tries, refusedTLS):
		advice = wire.LacksTLS.Advice("sslmode=disable")
	case class == db.Fatal:
		advice = wire.Untrusted.Advice("sslrootcert=FILE")
	case errors.Is(err, context.Canceled), cause != nil && !errors.Is(cause, context.DeadlineExceeded): // somebody ended it
		advice = ""
	}
	var lines []string
	for _, try := range tries {
		if refusedTLS(try) && triedPlain(tries, try) {
			continue
		}
		why := ""
		if distrusted := wire.Distrusts(try); distrusted != "" {
			why = wire.Untrusted.Reason() + ": " + distrusted
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

// judge gives the class of a connection that no attempt made, and the server's
// answer that decides it, if one does. Only where every attempt failed for what
// another try cannot help is it Fatal: a server that restarts may refuse TLS or
// the lack of it in one attempt and reset the other. What a server says of the
// password, the database and the right to it holds for all of them.
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
			if !refusedTLS(try) && wire.Distrusts(try) == "" {
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

// refusedTLS says that a server answered an attempt that it does not speak TLS.
func refusedTLS(try error) bool {
	return strings.HasSuffix(try.Error(), "server refused TLS connection")
}

// triedPlain says whether the address that refused TLS was tried without too,
// so that the reason is how that went.
func triedPlain(tries []error, refused error) bool {
	address, _, _ := strings.Cut(refused.Error(), " (")
	return slices.ContainsFunc(tries, func(other error) bool {
		return !refusedTLS(other) && strings.HasPrefix(other.Error(), address+" (")
	})
}

// attempt returns one line of pgconn's about an attempt to connect without its
// jargon, such as "db:5432 (db): dial error: timeout: context deadline exceeded",
// and without an address that op names already. why is put in place of its reason unless it
// is empty.
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

var jargon = strings.NewReplacer("server refused TLS connection", wire.LacksTLS.Reason(), "dial error: ", "", "tls error: ", "", "server error: ", "")
