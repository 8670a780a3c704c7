package cockroach

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/postgres"
	"stroppy/internal/db/sqltest"
	"stroppy/internal/db/wire"
	"stroppy/internal/isolation"
)

const (
	v20 = "CockroachDB OSS v20.1.5 (x86_64-unknown-linux-gnu, built 2020/08/24 19:52:08, go1.13.9)"
	v24 = "CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2 X:nocoverageredesign)"
)

// TestServerOfAnotherProductIsRefused checks that each scheme refuses servers of the other product, and that both
// refuse unknown products.
func TestServerOfAnotherProductIsRefused(t *testing.T) {
	for _, tc := range []struct{ scheme, version, says string }{
		{"cockroach", "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu", "the server is PostgreSQL: write postgres://"},
		{"cockroach", "PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu", "the server is YugabyteDB, whose claims"},
		{"cockroach", "CrateDB 5.4.0", "does not identify itself as CockroachDB"},
		{"cockroach", "", "does not identify itself as CockroachDB"},
		{"postgres", v20, "the server is CockroachDB: write cockroach://"},
		{"postgres", "PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu", "the server is YugabyteDB, whose claims"},
	} {
		url := tc.scheme + strings.TrimPrefix((&fake{version: tc.version}).serve(t), "cockroach")
		var err error
		if tc.scheme == "cockroach" {
			_, err = Open(t.Context(), url)
		} else {
			_, err = postgres.Open(t.Context(), url)
		}
		sqltest.WantError(t, tc.version, err, db.Fatal, "")
		if !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s at %s://: %v, want %q", tc.version, tc.scheme, err, tc.says)
		}
	}
}

// TestClaimIsTheServersActualIsolation checks that the claim is the isolation that a transaction gets, not the
// requested isolation.
func TestClaimIsTheServersActualIsolation(t *testing.T) {
	source := Flavor().Isolations.Source
	claim := func(name string, level isolation.Level) db.Claim {
		return db.Claim{Isolation: name, Level: level, Source: source}
	}
	all := claim("serializable", isolation.Serializable)
	upgraded := map[string]string{"read uncommitted": "serializable", "read committed": "serializable", "repeatable read": "serializable", "snapshot": "serializable"}
	for name, tc := range map[string]struct {
		fake *fake
		want map[string]db.Claim // the empty one is refused
	}{
		"20.1": {&fake{version: v20, levels: upgraded}, map[string]db.Claim{
			"": all, "serializable": all, "READ-COMMITTED": all, "repeatable read": all, "snapshot": all, "chaos": {},
		}},
		"24.1 with READ COMMITTED": {&fake{version: v24, levels: map[string]string{"read uncommitted": "read committed", "repeatable read": "serializable", "snapshot": "serializable"}}, map[string]db.Claim{
			"": all, "read committed": claim("read committed", isolation.ReadCommitted), "read uncommitted": claim("read committed", isolation.ReadCommitted), "repeatable read": all,
		}},
		"one that refuses some": {&fake{version: v24, fails: map[string]string{"BEGIN ISOLATION LEVEL snapshot": "42601"}}, map[string]db.Claim{
			"": all, "snapshot": {}, "repeatable read": claim("repeatable read", isolation.SnapshotIsolation),
		}},
	} {
		d := drivertest.Open(t, Open, tc.fake.serve(t))
		for asked, want := range tc.want {
			if got, err := d.Claim(asked); got != want || (err != nil) != (want == db.Claim{}) {
				t.Errorf("%s: the claim at %q is %+v, %v, want %+v", name, asked, got, err, want)
			}
		}
	}
}

func TestVersionDecidesLockingReads(t *testing.T) {
	for version, want := range map[string]struct {
		number  string
		locking bool
	}{
		v20: {"v20.1.5", true},
		v24: {"v24.1.0", true},
		"CockroachDB CCL v19.2.12 (x86_64-unknown-linux-gnu)":     {"v19.2.12", false},
		"CockroachDB OSS v2.1.0-beta.20181015-8 (linux, go1.11)":  {"v2.1.0-beta.20181015-8", false},
		"CockroachDB CCL v100.1.0 (x86_64-unknown-linux-gnu)":     {"v100.1.0", true},
		"CockroachDB unknown (x86_64-unknown-linux-gnu, built -)": {"", true},
	} {
		d := dialectOf(version)
		if number(version) != want.number || d.NoLockingRead == want.locking || (d.ForUpdate != "") != want.locking {
			t.Errorf("%s: %q, %+v", version, number(version), d)
		}
	}
}

// TestEachErrorCodeOccursOnce checks that no code is in two rows of the table.
func TestEachErrorCodeOccursOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, code := range slices.Concat(slices.Collect(maps.Values(codes))...) {
		if seen[code] || len(code) != 2 && len(code) != 5 {
			t.Errorf("the code %s", code)
		}
		seen[code] = true
	}
}

// TestErrorClassDependsOnCommitInProgress checks that the class of an error depends on whether the commit was in
// progress. In pipelined mode, the statement and the COMMIT are sent together, and a failed statement prevents the
// COMMIT.
func TestErrorClassDependsOnCommitInProgress(t *testing.T) {
	const update = "UPDATE t SET n = n + 1"
	for code, want := range map[string]struct{ statement, commit db.Class }{
		"40001": {db.Aborted, db.Aborted},
		"40003": {db.Unavailable, db.Unknown},
		"57014": {db.Aborted, db.Unknown},
		"08006": {db.Unavailable, db.Unknown},
		"58C01": {db.Aborted, db.Unknown},
		"53200": {db.Aborted, db.Unknown},
		"XXUUU": {db.Aborted, db.Unknown},
		"XX000": {db.Fatal, db.Unknown},
		"XXC01": {db.Fatal, db.Unknown},
		"25P02": {db.Aborted, db.Aborted},
		"57P01": {db.Unavailable, db.Unknown},
		"23505": {db.Constraint, db.Constraint},
		"42601": {db.Fatal, db.Fatal},
		"0A000": {db.Fatal, db.Fatal},
	} {
		for at, class := range map[string]db.Class{update: want.statement, "COMMIT": want.commit} {
			d := drivertest.Open(t, Open, (&fake{version: v20, fails: map[string]string{at: code}}).serve(t))
			sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
				s := sqltest.Session(t, d, mode, "")
				err := sqltest.Transact(t.Context(), s, false, false, sqltest.With(&db.Statement{SQL: update}, nil))
				sqltest.WantError(t, code+" at "+at, err, class, code)
			})
		}
	}
}

// TestConnectionLostDuringCommitIsUnknown checks that a connection lost during COMMIT makes the outcome unknown,
// and one lost during a statement does not.
func TestConnectionLostDuringCommitIsUnknown(t *testing.T) {
	const update = "UPDATE t SET n = n + 1"
	for _, tc := range []struct {
		at    string
		mode  db.Mode
		class db.Class
	}{
		{update, db.Interactive, db.Unavailable},
		{"COMMIT", db.Interactive, db.Unknown},
		{update, db.Pipelined, db.Unknown}, // the COMMIT was on its way
		{"COMMIT", db.Pipelined, db.Unknown},
	} {
		d := drivertest.Open(t, Open, (&fake{version: v20, hangsUp: tc.at}).serve(t))
		s := sqltest.Session(t, d, tc.mode, "")
		err := sqltest.Transact(t.Context(), s, false, false, sqltest.With(&db.Statement{SQL: update}, nil))
		sqltest.WantError(t, fmt.Sprintf("%s in mode %d", tc.at, tc.mode), err, tc.class, "")
	}
}

// TestBulkInsertsHaveLimitedSize checks that rows become INSERTs of limited size, each with its first row.
func TestBulkInsertsHaveLimitedSize(t *testing.T) {
	const count = 2*insertRows + 1
	load := sqltest.Load(nil, sqltest.Some(count, "it's %d"))
	var rows, statements int
	err := (&wire.Rows{Load: &load}).Inserts(insertRows, appendLiteral, func(first []db.Value, statement string) error {
		statements++
		if first[0].Int != int64(rows)+1 {
			t.Errorf("INSERT %d begins with %d, want %d", statements, first[0].Int, rows+1)
		}
		rows += strings.Count(statement, "(") - 1
		if !strings.HasPrefix(statement, fmt.Sprintf("INSERT INTO things (id, small, mid, m, s) VALUES (%d,", first[0].Int)) || strings.HasSuffix(statement, ",") {
			t.Errorf("INSERT %d is %.100s …", statements, statement)
		}
		return nil
	})
	if err != nil || rows != count || statements != 3 {
		t.Errorf("%d rows in %d statements: %v", rows, statements, err)
	}
	large := db.BulkLoad{Table: "t", Columns: []string{"s"}, Types: []db.Type{db.Text}}
	left := 5
	large.Next = func(row []db.Value) bool {
		row[0].Text = bytes.Repeat([]byte("x"), 1<<20)
		left--
		return left >= 0
	}
	statements = 0
	err = (&wire.Rows{Load: &large}).Inserts(insertRows, appendLiteral, func([]db.Value, string) error { statements++; return nil })
	if err != nil || statements != 5 {
		t.Errorf("5 large rows in %d statements: %v", statements, err)
	}
}

func TestRowsAreQuotedAsText(t *testing.T) {
	got := string(wire.AppendList(nil, []db.Type{db.Integer, db.Decimal, db.Text, db.Text},
		[]db.Value{{Int: math.MinInt64}, {Int: -105}, {Text: []byte(`a 'b' \c`)}, {Null: true}}, appendLiteral))
	if want := `(-9223372036854775808,-1.05,'a ''b'' \c',NULL)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
