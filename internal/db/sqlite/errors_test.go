package sqlite

import (
	"context"
	"errors"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"stroppy/internal/db"
)

func TestResultCodesAreClassified(t *testing.T) {
	const full2 = sqlite3.SQLITE_IOERR_CLOSE // in the table by its primary code only
	for _, test := range []struct {
		code             int32
		before, atCommit db.Class
		kind             db.ConstraintKind
		name             string
	}{
		{sqlite3.SQLITE_BUSY, db.Aborted, db.Aborted, 0, "SQLITE_BUSY"},
		{sqlite3.SQLITE_BUSY_SNAPSHOT, db.Aborted, db.Aborted, 0, "SQLITE_BUSY_SNAPSHOT"},
		{sqlite3.SQLITE_LOCKED, db.Aborted, db.Unknown, 0, "SQLITE_LOCKED"},
		{sqlite3.SQLITE_CONSTRAINT_CHECK, db.Constraint, db.Constraint, db.CheckFailed, "SQLITE_CONSTRAINT_CHECK"},
		{sqlite3.SQLITE_CONSTRAINT_ROWID, db.Constraint, db.Constraint, db.UniqueKey, "SQLITE_CONSTRAINT_ROWID"},
		{sqlite3.SQLITE_CONSTRAINT_TRIGGER, db.Constraint, db.Constraint, 0, "SQLITE_CONSTRAINT_TRIGGER"},
		{sqlite3.SQLITE_CONSTRAINT_DATATYPE, db.Fatal, db.Unknown, 0, "SQLITE_CONSTRAINT_DATATYPE"},
		{sqlite3.SQLITE_FULL, db.Fatal, db.Unknown, 0, "SQLITE_FULL"},
		{sqlite3.SQLITE_IOERR_FSYNC, db.Fatal, db.Unknown, 0, "SQLITE_IOERR_FSYNC"},
		{full2, db.Fatal, db.Unknown, 0, "SQLITE_IOERR (4106)"},
		{sqlite3.SQLITE_CORRUPT_INDEX, db.Fatal, db.Unknown, 0, "SQLITE_CORRUPT (779)"},
		{sqlite3.SQLITE_ERROR, db.Fatal, db.Unknown, 0, "SQLITE_ERROR"},
		{99, db.Fatal, db.Unknown, 0, "SQLite 99"},
	} {
		for at, class := range map[bool]db.Class{false: test.before, true: test.atCommit} {
			e := failure(t.Context(), "try", test.code, "text", at)
			if e.Class != class || e.Code != test.name || e.Class == db.Constraint && e.Constraint != test.kind {
				t.Errorf("code %d, committing %v: got %v, %d, %s; want %v, %d, %s", test.code, at, e.Class, e.Constraint, e.Code, class, test.kind, test.name)
			}
		}
	}
}

// TestCommitIsUnknownUnlessProved checks that only codes that are reported before anything is durable state
// with certainty that a COMMIT was not applied.
func TestCommitIsUnknownUnlessProved(t *testing.T) {
	seen := map[int32]bool{}
	for _, m := range meanings {
		for code, name := range m.codes {
			if seen[code] {
				t.Errorf("%s is in the table twice", name)
			}
			seen[code] = true
			primary := code & 0xff
			proved := primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_CONSTRAINT && m.before == db.Constraint
			if (m.atCommit != db.Unknown) != proved {
				t.Errorf("%s at commit is %v", name, m.atCommit)
			}
			if m.before == db.Unknown {
				t.Errorf("%s before commit is unknown, but nothing is applied then", name)
			}
		}
	}
}

func TestInterruptIsReportedAsCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e := failure(ctx, "try", sqlite3.SQLITE_INTERRUPT, "interrupted", false); !errors.Is(e, context.Canceled) || e.Class != db.Aborted {
		t.Errorf("got %v, %v", e.Class, e)
	}
	if e := failure(ctx, "try", sqlite3.SQLITE_IOERR, "disk I/O error", true); errors.Is(e, context.Canceled) || e.Class != db.Unknown {
		t.Errorf("got %v, %v", e.Class, e)
	}
}
