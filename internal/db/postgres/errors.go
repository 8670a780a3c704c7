package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
)

// rule is what one error code, or one class of codes, means before the commit
// was sent.
type rule struct {
	class      db.Class
	constraint db.ConstraintKind
}

// codes gives the meaning of SQLSTATE codes that differ from the rest of their
// class. The names are those of the PostgreSQL documentation, Appendix A,
// "PostgreSQL Error Codes".
var codes = map[string]rule{
	"08007": {class: db.Unknown},                                // transaction_resolution_unknown
	"23000": {class: db.Constraint},                             // integrity_constraint_violation
	"23001": {class: db.Constraint, constraint: db.ForeignKey},  // restrict_violation
	"23502": {class: db.Constraint, constraint: db.NotNull},     // not_null_violation
	"23503": {class: db.Constraint, constraint: db.ForeignKey},  // foreign_key_violation
	"23505": {class: db.Constraint, constraint: db.UniqueKey},   // unique_violation
	"23514": {class: db.Constraint, constraint: db.CheckFailed}, // check_violation
	"23P01": {class: db.Constraint},                             // exclusion_violation
	"25006": {class: db.Unavailable},                            // read_only_sql_transaction: this server is a standby now; a new connection may find the primary
	"25P02": {class: db.Aborted},                                // in_failed_sql_transaction
	"25P03": {class: db.Unavailable},                            // idle_in_transaction_session_timeout: the session has ended
	"25P04": {class: db.Unavailable},                            // transaction_timeout: the session has ended
	"40000": {class: db.Aborted},                                // transaction_rollback
	"40001": {class: db.Aborted},                                // serialization_failure
	"40002": {class: db.Constraint},                             // transaction_integrity_constraint_violation
	"40003": {class: db.Unknown},                                // statement_completion_unknown
	"40P01": {class: db.Aborted},                                // deadlock_detected
	"53300": {class: db.Unavailable},                            // too_many_connections
	"55P03": {class: db.Aborted},                                // lock_not_available
	"57014": {class: db.Aborted},                                // query_canceled
	"57P01": {class: db.Unavailable},                            // admin_shutdown
	"57P02": {class: db.Unavailable},                            // crash_shutdown
	"57P03": {class: db.Unavailable},                            // cannot_connect_now
	"57P05": {class: db.Unavailable},                            // idle_session_timeout
	"72000": {class: db.Aborted},                                // snapshot_too_old
}

// classes gives the meaning of the codes of a class, their first two
// characters, from the same appendix.
//
// A full disk or exhausted memory (53) and an I/O error (58) are Aborted: the
// server answered and has surely rolled back, and space is freed by vacuum, by
// the removal of old WAL or by an operator, so a later try may succeed and the
// run shall show the outage, not end with it.
var classes = map[string]db.Class{
	"08": db.Unavailable, // connection exception
	"53": db.Aborted,     // insufficient resources: 53100 disk_full, 53200 out_of_memory
	"58": db.Aborted,     // system error: 58030 io_error

	"0A": db.Fatal, // feature not supported
	"0L": db.Fatal, // invalid grantor
	"0P": db.Fatal, // invalid role specification
	"20": db.Fatal, // case not found
	"21": db.Fatal, // cardinality violation
	"22": db.Fatal, // data exception
	"24": db.Fatal, // invalid cursor state
	"25": db.Fatal, // invalid transaction state
	"26": db.Fatal, // invalid SQL statement name
	"28": db.Fatal, // invalid authorization: 28P01 invalid_password
	"2B": db.Fatal, // dependent privilege descriptors still exist
	"2F": db.Fatal, // SQL routine exception
	"34": db.Fatal, // invalid cursor name
	"38": db.Fatal, // external routine exception
	"39": db.Fatal, // external routine invocation exception
	"3B": db.Fatal, // savepoint exception
	"3D": db.Fatal, // invalid catalog name: the database does not exist
	"3F": db.Fatal, // invalid schema name
	"42": db.Fatal, // syntax error or access rule violation: 42501 insufficient_privilege
	"44": db.Fatal, // WITH CHECK OPTION violation
	"54": db.Fatal, // program limit exceeded
	"55": db.Fatal, // object not in prerequisite state
	"57": db.Fatal, // operator intervention: 57P04 database_dropped
	"F0": db.Fatal, // configuration file error
	"P0": db.Fatal, // PL/pgSQL error
	"XX": db.Fatal, // internal error: damaged data or a damaged index
}

// phase says how far the transaction had gone when an error came.
type phase uint8

const (
	connecting phase = iota + 1
	before           // in a session, and no commit was sent
	committing       // COMMIT, or a pipeline that commits at its end, was sent
)

// classify gives the meaning of an error that the server reported. ended says
// that the session is over: the severity was FATAL or PANIC, or the connection
// ended right after.
//
// An error that leaves the session alive has rolled the transaction back, also
// when it comes from the commit itself: PostgreSQL cannot fail with less than a
// PANIC once the commit record is written (src/backend/access/transam/xact.c,
// RecordTransactionCommit is a critical section).
func classify(code string, p phase, ended bool) rule {
	r, known := codes[code]
	if !known && len(code) == 5 {
		r.class, known = classes[code[:2]]
	}
	switch {
	case !known && p == committing:
		return rule{class: db.Unknown}
	case !known:
		r.class = db.Fatal
	}
	if p == committing && (ended || r.class == db.Unavailable) {
		return rule{class: db.Unknown}
	}
	if p != committing && r.class == db.Unknown {
		r.class = db.Unavailable // the commit was not sent
	}
	if p == before && ended {
		return rule{class: db.Unavailable}
	}
	return r
}

// serverError is an error that the server reported, in its own words, and what
// to do about it.
type serverError struct {
	*pgconn.PgError
	advice string
}

func (e serverError) Error() string {
	text := e.Message
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.advice != "" {
		text += ": " + e.advice
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// advice says what to do about an error of a code; empty where nothing can be
// said in general.
func advice(code string, p phase) string {
	switch {
	case code == "28P01", code == "28000" && p == connecting:
		return "check the user and the password in the URL"
	case code == "3D000" && p == connecting:
		return "make it, or name another in the URL"
	case code == "42501":
		return "give this user the right, or take another user"
	case code == "42704" && p == connecting: // a parameter that libpq does not know goes to the server
		return "check the parameters in the URL"
	case code == "26000", code == "42P05":
		return "behind a pooler that lends each transaction another session, write prepare=false in the URL"
	case code == "53300":
		return "take fewer clients, or raise max_connections"
	}
	return ""
}

func (e serverError) Unwrap() error { return e.PgError }

func isFatal(e *pgconn.PgError) bool {
	severity := e.SeverityUnlocalized // since PostgreSQL 9.6
	if severity == "" {
		severity = e.Severity
	}
	return severity == "FATAL" || severity == "PANIC"
}

// reported is the error for something that the server reported.
func reported(op string, e *pgconn.PgError, p phase, ended bool) *db.Error {
	r := classify(e.Code, p, ended || isFatal(e))
	return &db.Error{Class: r.class, Constraint: r.constraint, Code: e.Code, Op: op, Err: serverError{e, advice(e.Code, p)}}
}

// lost is the error for a connection that ended or did not answer.
func lost(op string, err error, p phase) *db.Error {
	class := db.Unavailable
	if p == committing {
		class = db.Unknown
	}
	return &db.Error{Class: class, Op: op, Err: err}
}

// fromPgconn turns an error of package pgconn into one of ours.
func fromPgconn(ctx context.Context, op string, err error, p phase) *db.Error {
	if p == connecting {
		return connectError(op, err, context.Cause(ctx))
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return reported(op, e, p, false)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return lost(op, err, p)
}

// connectError is the error for a connection that was not made; cause is why the
// context ended, if it did. What pgconn says about the user and the database is
// left out, for a mangled URL may carry a part of the password there.
func connectError(op string, err, cause error) *db.Error {
	var c *pgconn.ConnectError
	if errors.As(err, &c) {
		err = c.Unwrap()
	}
	tries := attempts(err)
	class, answer := judge(tries)
	switch {
	case answer != nil:
		return reported(op, answer, connecting, false)
	case cause != nil:
		class, err, tries = db.Unavailable, cause, []error{cause}
	}
	advice := db.CheckServer
	switch {
	case class == db.Fatal && slices.ContainsFunc(tries, refusedTLS):
		advice = "turn TLS on in the server, or write sslmode=disable"
	case class == db.Fatal:
		advice = "check sslmode and sslrootcert in the URL"
	case errors.Is(err, context.Canceled):
		advice = ""
	}
	var lines []string
	for _, try := range tries {
		if refusedTLS(try) && triedPlain(tries, try) {
			continue
		}
		for line := range strings.SplitSeq(try.Error(), "\n") {
			lines = append(lines, attempt(op, line))
		}
	}
	slices.Sort(lines)
	text := strings.Join(slices.Compact(lines), "; ")
	if advice != "" {
		text += ": " + advice
	}
	return &db.Error{Class: class, Op: op, Err: db.Told{Text: text, Cause: err}}
}

// attempts takes apart what pgconn joins: one error for each address, and under
// sslmode=prefer or allow two, with TLS and without.
func attempts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// judge gives the class of a connection that no attempt made, and the server's
// answer that decides it, if one does. Only where every attempt failed for what
// another try cannot mend is it Fatal: a server that restarts may refuse TLS or
// the lack of it in one attempt and reset the other. What a server says of the
// password, the database and the right to it holds for all of them.
func judge(tries []error) (db.Class, *pgconn.PgError) {
	class := db.Fatal
	var passing, refusing, deciding *pgconn.PgError
	for _, try := range tries {
		var e *pgconn.PgError
		var certificate *tls.CertificateVerificationError
		switch {
		case !errors.As(try, &e):
			if !refusedTLS(try) && !errors.As(try, &certificate) {
				class = db.Unavailable
			}
		case classify(e.Code, connecting, isFatal(e)).class != db.Fatal:
			passing = cmp.Or(passing, e)
		case e.Code == "28P01", e.Code == "3D000", e.Code == "42501":
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
// and without an address that op names already.
func attempt(op, line string) string {
	line = jargon.Replace(strings.TrimPrefix(line, "hostname resolving error: "))
	address, rest, ok := strings.Cut(line, " (")
	_, reason, closed := strings.Cut(rest, "): ")
	if !ok || !closed {
		return line
	}
	if _, system, dialled := strings.Cut(reason, ": connect: "); dialled {
		reason = system
	}
	if strings.Contains(reason, "timeout: ") {
		reason = "no answer in time"
	}
	if strings.HasSuffix(op, " "+address) {
		return reason
	}
	return address + ": " + reason
}

var jargon = strings.NewReplacer("dial error: ", "", "tls error: ", "", "server error: ", "")

// errLocalOnly is why a commit whose acknowledgement has a warning is unknown.
var errLocalOnly = errors.New("the server has committed the transaction on itself but may not have " +
	"replicated it to the synchronous standby, so that a fail-over can lose it")

// errNoTransaction is why a COMMIT outside any transaction is unknown.
var errNoTransaction = errors.New("the server says that no transaction was open when COMMIT came: " +
	"something between client and server has changed the connection")

// warning says whether a notice that came while a commit was under way takes its
// success away, and why.
//
// The function that waits for the synchronous standby warns when the wait is
// cancelled or the session is terminated (src/backend/replication/syncrep.c,
// SyncRepWaitForLSN). The text is in the server's language, the function's name
// in the notice is not.
func warning(routine, code, message, detail string) error {
	switch {
	case routine == "SyncRepWaitForLSN",
		strings.Contains(message, "wait for synchronous replication"),
		strings.Contains(detail, "already committed locally"):
		return errLocalOnly
	case code == "25P01": // no_active_sql_transaction
		return errNoTransaction
	}
	return nil
}
