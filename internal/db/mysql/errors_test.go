package mysql

import (
	"errors"
	"testing"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
	"stroppy/internal/db/sqltest"
	"stroppy/internal/db/wire"
)

func TestErrorNumbersAreClassified(t *testing.T) {
	type want struct{ before, atCommit db.Class }
	for _, tc := range []struct {
		p      product
		number uint16
		state  string
		want   want
	}{
		{mariaDB, 1213, "40001", want{db.Aborted, db.Aborted}},
		{mariaDB, 1205, "HY000", want{db.Aborted, db.Aborted}},
		{mariaDB, 1020, "HY000", want{db.Aborted, db.Aborted}},
		{mariaDB, 1568, "25001", want{db.Aborted, db.Unknown}},
		{mariaDB, 1180, "HY000", want{db.Aborted, db.Unknown}},
		{mariaDB, 1317, "70100", want{db.Aborted, db.Unknown}},
		{mariaDB, 1969, "70100", want{db.Aborted, db.Unknown}},
		{mySQL, 1969, "HY000", want{db.Fatal, db.Unknown}},
		{mySQL, 3024, "HY000", want{db.Aborted, db.Unknown}},
		{mySQL, 3101, "40000", want{db.Aborted, db.Aborted}},
		{mySQL, 3100, "HY000", want{db.Aborted, db.Unknown}},
		{mySQL, 3797, "HY000", want{db.Unavailable, db.Unknown}},
		{mariaDB, 1047, "08S01", want{db.Unavailable, db.Unavailable}},
		{mariaDB, 1290, "HY000", want{db.Unavailable, db.Unavailable}},
		{mySQL, 1836, "HY000", want{db.Unavailable, db.Unavailable}},
		{mariaDB, 1053, "08S01", want{db.Unavailable, db.Unknown}},
		{mariaDB, 1927, "70100", want{db.Unavailable, db.Unknown}},
		{mySQL, 4031, "HY000", want{db.Unavailable, db.Unknown}},
		{mariaDB, 4031, "HY000", want{db.Fatal, db.Unknown}},
		{mySQL, 2013, "HY000", want{db.Unavailable, db.Unknown}},
		{mySQL, 1040, "08004", want{db.Unavailable, db.Unknown}},
		{mySQL, 1129, "HY000", want{db.Unavailable, db.Unknown}},
		{mariaDB, 4025, "23000", want{db.Constraint, db.Constraint}},
		{mySQL, 4025, "HY000", want{db.Fatal, db.Unknown}},
		{mySQL, 3819, "HY000", want{db.Constraint, db.Constraint}},
		{mariaDB, 1062, "23000", want{db.Constraint, db.Constraint}},
		{mariaDB, 1021, "HY000", want{db.Aborted, db.Unknown}},
		{mariaDB, 1045, "28000", want{db.Fatal, db.Fatal}},
		{mariaDB, 1049, "42000", want{db.Fatal, db.Fatal}},
		{mariaDB, 1142, "42000", want{db.Fatal, db.Fatal}},
		{mariaDB, 1146, "42S02", want{db.Fatal, db.Fatal}},
		{mariaDB, 1264, "22003", want{db.Fatal, db.Fatal}},
		{mariaDB, 1792, "25006", want{db.Fatal, db.Fatal}},
		{mariaDB, 65000, "40XXX", want{db.Aborted, db.Aborted}},
		{mariaDB, 65000, "08XXX", want{db.Unavailable, db.Unknown}},
		{mariaDB, 65000, "HY000", want{db.Fatal, db.Unknown}},
		{mariaDB, 65000, "", want{db.Fatal, db.Unknown}},
		{0, 0, "4", want{db.Fatal, db.Unknown}},
	} {
		var got want
		got.before, _ = classify(tc.p, tc.number, tc.state, wire.Before)
		got.atCommit, _ = classify(tc.p, tc.number, tc.state, wire.Committing)
		if got != tc.want {
			t.Errorf("%v %d %s: %v, want %v", tc.p, tc.number, tc.state, got, tc.want)
		}
		if at, _ := classify(tc.p, tc.number, tc.state, wire.Connecting); at != got.before {
			t.Errorf("%v %d %s while connecting: %v", tc.p, tc.number, tc.state, at)
		}
	}
}

// TestErrorTableIsConsistent checks that every number occurs once and that each constraint has its kind. COMMIT must
// not turn a certain outcome into another certain one.
func TestErrorTableIsConsistent(t *testing.T) {
	seen := map[uint16]bool{}
	for _, m := range meanings {
		for _, number := range m.numbers {
			if seen[number] {
				t.Errorf("%d is there twice", number)
			}
			seen[number] = true
			if (m.before == db.Constraint) != (m.kind != 0) {
				t.Errorf("%d: class %v, kind %v", number, m.before, m.kind)
			}
		}
		if m.before == db.Unknown || m.atCommit != db.Unknown && m.atCommit != m.before {
			t.Errorf("%v: %v before COMMIT, %v at it", m.numbers, m.before, m.atCommit)
		}
	}
	for number, kind := range map[uint16]db.ConstraintKind{4025: db.CheckFailed, 1048: db.NotNull, 1452: db.ForeignKey, 1062: db.UniqueKey} {
		err := reported("commit", mariaDB, &client.MySQLError{Number: number, Message: "refused\nby the schema"}, wire.Committing)
		if db.ConstraintOf(err) != kind {
			t.Errorf("%d: %v", number, db.ConstraintOf(err))
		}
		var own *client.MySQLError
		if !errors.As(err, &own) || own.Number != number {
			t.Errorf("%d: the server's own error is lost", number)
		}
		sqltest.WantError(t, "its text", err, db.Constraint, err.Code)
	}
}
