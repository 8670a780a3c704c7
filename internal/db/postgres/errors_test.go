package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
)

func TestClassify(t *testing.T) {
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
		"25006": {db.Unavailable, db.Unavailable, db.Unknown, db.Unknown},
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
		got := want{classify(code, connecting, false).class, classify(code, before, false).class,
			classify(code, committing, false).class, classify(code, committing, true).class}
		if got != w {
			t.Errorf("%q: %v, want %v", code, got, w)
		}
		if got := classify(code, before, true).class; got != db.Unavailable {
			t.Errorf("%q at the end of a session: %v", code, got)
		}
	}
}

func TestEveryConstraintHasItsKind(t *testing.T) {
	for code, kind := range map[string]db.ConstraintKind{
		"23514": db.CheckFailed, "23502": db.NotNull, "23503": db.ForeignKey, "23001": db.ForeignKey, "23505": db.UniqueKey,
	} {
		err := reported("commit", &pgconn.PgError{Code: code, Severity: "ERROR", Message: "refused"}, committing, false)
		if db.ConstraintOf(err) != kind {
			t.Errorf("%s: %v", code, db.ConstraintOf(err))
		}
		var server *pgconn.PgError
		if !errors.As(err, &server) {
			t.Errorf("%s: the server's error cannot be reached", code)
		}
	}
}

func TestWarning(t *testing.T) {
	for name, tc := range map[string]struct {
		routine, code, message, detail string
		want                           error
	}{
		"cancelled":        {"SyncRepWaitForLSN", "01000", "canceling wait for synchronous replication due to user request", "The transaction has already committed locally, but might not have been replicated to the standby.", errLocalOnly},
		"another language": {"SyncRepWaitForLSN", "01000", "Warten auf synchrone Replikation wird storniert", "", errLocalOnly},
		"no routine":       {"", "01000", "canceling wait for synchronous replication due to user request", "", errLocalOnly},
		"only the detail":  {"", "57P01", "x", "The transaction has already committed locally, but …", errLocalOnly},
		"no transaction":   {"EndTransactionBlock", "25P01", "there is no transaction in progress", "", errNoTransaction},
		"something else":   {"ExecCreateTable", "42P07", "relation exists, skipping", "", nil},
	} {
		if got := warning(tc.routine, tc.code, tc.message, tc.detail); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
