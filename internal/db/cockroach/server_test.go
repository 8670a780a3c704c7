package cockroach

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"stroppy/internal/cluster"
	server "stroppy/internal/cluster/cockroach"
	"stroppy/internal/cluster/host"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/postgres"
	"stroppy/internal/db/sqltest"
	"stroppy/internal/isolation"
)

func TestMain(m *testing.M) { servers.Main(m) }

// servers are single-node clusters with their data in memory.
var servers = drivertest.Servers[*cluster.Single]{
	Launch: func(ctx context.Context, settings map[string]string) (*cluster.Single, error) {
		o := cluster.Alone(settings)
		o.InMemory = true
		c, err := server.Start(ctx, o)
		if err != nil {
			return nil, err
		}
		return cluster.NewSingle(c, "defaultdb")
	},
	Missing: func(err error) string {
		if missing := new(host.MissingError); errors.As(err, missing) {
			return "skipped engine: cockroach: " + missing.Advice()
		}
		return ""
	},
}

// sharedURL returns the address of the shared server, or of the one named by STROPPY_TEST_COCKROACH.
func sharedURL(t testing.TB) string {
	t.Helper()
	if named := os.Getenv("STROPPY_TEST_COCKROACH"); named != "" {
		return named
	}
	return servers.Shared(t).URL()
}

// freshURL returns the address of a new, empty database on that server.
func freshURL(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(sharedURL(t))
	drivertest.Must(t, err)
	name := "stroppy_driver_" + servers.Name()
	sqltest.Execute(t, drivertest.Open(t, Open, u.String()), "DROP DATABASE IF EXISTS "+name+" CASCADE", "CREATE DATABASE "+name)
	u.Path = "/" + name
	return u.String()
}

func openFresh(t testing.TB) *Database {
	t.Helper()
	return drivertest.Open(t, Open, freshURL(t))
}

// bank holds the schema, and statements on it.
var bank = sqltest.Bank{
	Schema: []string{
		`CREATE TABLE accounts (
			bic VARCHAR(8) NOT NULL, ban BIGINT NOT NULL,
			balance DECIMAL(20,2) NOT NULL CHECK (balance >= 0),
			version BIGINT NOT NULL, last_transfer BIGINT NOT NULL, previous_transfer BIGINT NOT NULL,
			PRIMARY KEY (bic, ban))`,
		`CREATE TABLE ledger (
			transfer BIGINT NOT NULL, leg BIGINT NOT NULL,
			bic VARCHAR(8) NOT NULL, ban BIGINT NOT NULL,
			amount DECIMAL(20,2) NOT NULL, version BIGINT NOT NULL,
			PRIMARY KEY (transfer, leg), FOREIGN KEY (bic, ban) REFERENCES accounts)`,
	},
	Update: &db.Statement{
		SQL: `UPDATE accounts SET balance = balance + $1, version = version + 1,
			previous_transfer = last_transfer, last_transfer = $2
			WHERE bic = $3 AND ban = $4 RETURNING version, balance, previous_transfer`,
		Params:  []db.Type{db.Decimal, db.Integer, db.Text, db.Integer},
		Columns: []db.Type{db.Integer, db.Decimal, db.Integer},
	},
	Read: &db.Statement{
		SQL:     `SELECT balance, version FROM accounts WHERE bic = $1 AND ban = $2`,
		Params:  []db.Type{db.Text, db.Integer},
		Columns: []db.Type{db.Decimal, db.Integer},
	},
}

func TestServerDescriptionHasVersionAndIsolation(t *testing.T) {
	d := openFresh(t)
	info, err := d.Info(t.Context())
	if err != nil || info.Name != "CockroachDB" || !strings.HasPrefix(info.Version, "v") {
		t.Errorf("Info = %+v, %v", info, err)
	}
	t.Logf("%+v", info)
	for _, name := range []string{"", "serializable"} {
		if c, err := d.Claim(name); err != nil || c.Isolation != "serializable" || c.Level != isolation.Serializable {
			t.Errorf("Claim(%q) = %+v, %v", name, c, err)
		}
	}
	shown := &db.Statement{SQL: "SHOW transaction_isolation", Columns: []db.Type{db.Text}}
	for _, l := range Flavor().Isolations.Levels {
		c, err := d.Claim(l.Name)
		if err != nil {
			t.Logf("%s is refused: %v", l.Name, err)
			continue
		}
		s := sqltest.Session(t, d, db.Pipelined, l.Name)
		drivertest.Must(t, sqltest.Transact(t.Context(), s, false, true, sqltest.With(shown, nil)))
		if got := string(s.Result(0).Row(0)[0].Text); got != c.Isolation {
			t.Errorf("a transaction at %s runs at %s, and %+v is claimed", l.Name, got, c)
		}
		t.Logf("%s is %s", l.Name, c.Isolation)
	}
	bank.Make(t, d, 1000)
	size, err := d.Footprint(t.Context())
	if err != nil || size < 1000*30 || size > 1<<20 {
		t.Errorf("Footprint = %d, %v", size, err)
	}
	if _, err := postgres.Open(t.Context(), strings.Replace(sharedURL(t), "cockroach://", "postgres://", 1)); err == nil || !strings.Contains(err.Error(), "write cockroach://") {
		t.Errorf("behind postgres://: %v", err)
	}
}

func TestConstraintViolationsAreClassified(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 3)
	insertAccount := &db.Statement{SQL: "INSERT INTO accounts VALUES ($1, $2, $3, 0, 0, 0)", Params: []db.Type{db.Text, db.Integer, db.Decimal}}
	insertLedger := &db.Statement{SQL: "INSERT INTO ledger VALUES ($1, 0, $2, $3, 1, 1)", Params: []db.Type{db.Integer, db.Text, db.Integer}}
	account := func(n int64, money db.Value) sqltest.Statement {
		return sqltest.With(insertAccount, []db.Value{{Text: sqltest.BIC}, sqltest.Number(n), money})
	}
	sqltest.Constraints(t, d, &bank, []sqltest.Refused{
		{Name: "check", Statement: bank.Touch(0, -1000_01), Kind: db.CheckFailed, Code: "23514"},
		{Name: "not null", Statement: account(7, db.Value{Null: true}), Kind: db.NotNull, Code: "23502"},
		{Name: "foreign key", Statement: sqltest.With(insertLedger, []db.Value{sqltest.Number(7), {Text: sqltest.BIC}, sqltest.Number(77)}), Kind: db.ForeignKey, Code: "23503"},
		{Name: "unique", Statement: account(0, sqltest.Number(1)), Kind: db.UniqueKey, Code: "23505"},
	})
}

// TestConflictIsAborted checks that a transaction that conflicts with a changed read or a deadlock is aborted.
func TestConflictIsAborted(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 3)
	ctx := t.Context()
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		a, b := sqltest.Session(t, d, mode, ""), sqltest.Session(t, d, mode, "")
		drivertest.Must(t, errors.Join(a.Begin(ctx, false), b.Begin(ctx, false)))
		for s, account := range map[db.SQLSession]int64{a: 1, b: 2} {
			_, err := sqltest.Do(ctx, s, bank.See(account))
			drivertest.Must(t, err)
		}
		errs := make(chan error, 2)
		for s, account := range map[db.SQLSession]int64{a: 2, b: 1} {
			go func() {
				_, err := sqltest.Do(ctx, s, bank.Touch(account, 1))
				if err == nil {
					err = s.Commit(ctx)
				}
				errs <- err
			}()
		}
		first, second := <-errs, <-errs
		if first == nil {
			first, second = second, first
		}
		sqltest.WantError(t, "write skew", first, db.Aborted, "40001")
		drivertest.Must(t, second)
		drivertest.Must(t, sqltest.Transact(ctx, a, false, false, bank.Touch(0, 1)))
		drivertest.Must(t, sqltest.Transact(ctx, b, false, false, bank.Touch(0, 1)))
		sqltest.Deadlock(t, d, &bank, mode, "40001")
	})
}

func TestStatementTimeoutIsAborted(t *testing.T) {
	address := freshURL(t)
	d := drivertest.Open(t, Open, address)
	bank.Make(t, d, 2)
	hasty := drivertest.Open(t, Open, address+"&statement_timeout=300")
	sleep := sqltest.With(&db.Statement{SQL: "SELECT pg_sleep(600)"}, nil)
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		s := sqltest.Session(t, hasty, mode, "")
		for _, flush := range []bool{true, false} {
			sqltest.WantError(t, "statement_timeout", sqltest.Transact(t.Context(), s, false, flush, bank.Touch(0, 1), sleep), db.Aborted, "57014")
		}
		if cents := bank.Balance(t, s, 0); cents != sqltest.Opening {
			t.Errorf("a transaction that was cancelled has left %d", cents)
		}
	})
}

// TestPipelinedStatementsFormOneTransaction checks that statements sent together form one transaction.
func TestPipelinedStatementsFormOneTransaction(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 3)
	ctx := t.Context()
	s := sqltest.Session(t, d, db.Pipelined, "")
	sqltest.WantError(t, "a transfer that overdraws", sqltest.Transact(ctx, s, false, false, bank.Touch(0, 100), bank.Touch(1, -sqltest.Opening-100)), db.Constraint, "23514")
	if cents := bank.Balance(t, s, 0); cents != sqltest.Opening {
		t.Errorf("a part of a transfer was applied: %d", cents)
	}
	streams, err := d.Streams(ctx, 3, db.SessionOptions{Mode: db.Pipelined})
	drivertest.Must(t, err)
	for i, s := range streams {
		drivertest.Close(t, s)
		drivertest.Must(t, sqltest.Transact(ctx, s, false, false, bank.Touch(2, 1), bank.See(2)))
		if cents := s.Result(1).Row(0)[0].Int; cents != sqltest.Opening+int64(i)+1 {
			t.Errorf("stream %d sees %d", i, cents)
		}
	}
}

func TestSessionsWorkOnRealNode(t *testing.T) {
	address := freshURL(t)
	d := drivertest.Open(t, Open, address)
	bank.Make(t, d, 3)
	t.Run("rollbacks", func(t *testing.T) { sqltest.Rollbacks(t, openFresh(t), &bank) })
	t.Run("any types", func(t *testing.T) { sqltest.TestFree(t, openFresh(t)) })
	t.Run("contexts", func(t *testing.T) { sqltest.Contexts(t, openFresh(t), &bank) })
	t.Run("bad statements", func(t *testing.T) {
		one := func(sql string, params ...db.Type) sqltest.Statement {
			return sqltest.With(&db.Statement{SQL: sql, Params: params}, []db.Value{sqltest.Number(1)}[:len(params)])
		}
		sqltest.BadStatements(t, openFresh(t), &bank, []sqltest.Bad{
			{Statement: one("SELEC 1"), Code: "42601"},
			{Statement: one("SELECT 1 FROM nowhere"), Flush: true, Code: "42P01"},
			{Statement: one("SELECT 2 / ($1 - 1)", db.Integer), Flush: true, Code: "22012"},
		})
	})
	t.Run("without statements left in a session", func(t *testing.T) {
		whole := drivertest.Open(t, Open, address+"&prepare=false")
		sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
			s := sqltest.Session(t, whole, mode, "serializable")
			before := bank.Balance(t, s, 2)
			drivertest.Must(t, sqltest.Transact(t.Context(), s, false, false, bank.Touch(2, 1), bank.See(2)))
			if cents := s.Result(1).Row(0)[0].Int; cents != before+1 {
				t.Errorf("%d, then %d", before, cents)
			}
		})
	})
	t.Run("large", func(t *testing.T) {
		sqltest.Large(t, d, &db.Statement{SQL: "SELECT $1::text", Params: []db.Type{db.Text}, Columns: []db.Type{db.Text}}, 20)
	})
	t.Run("streams of rows", func(t *testing.T) {
		sqltest.Streams(t, d, sqltest.Stream{
			Many: &db.Statement{SQL: "SELECT n, n * 0.01, 'row ' || n::text FROM generate_series($1::bigint, 100000) AS g(n)", Params: []db.Type{db.Integer},
				Columns: []db.Type{db.Integer, db.Decimal, db.Text}},
			Last: 100_000,
			Bad:  &db.Statement{SQL: "SELECT (10 / (5 - n))::INT FROM generate_series(1, 9) AS g(n)", Columns: []db.Type{db.Integer}},
			Code: "22012",
		})
	})
}

func TestResultsAreEqualInAllModes(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 10)
	sqltest.Execute(t, d, "CREATE TABLE things (id BIGINT PRIMARY KEY, i BIGINT, m DECIMAL(20,2), s VARCHAR(40))")
	insert := &db.Statement{
		SQL:    "INSERT INTO things VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
		Params: []db.Type{db.Integer, db.Integer, db.Decimal, db.Text}, Counted: true,
	}
	const text = "a 'quoted' \\ text"
	work := append(sqltest.Extremes(insert, text), []sqltest.Statement{
		sqltest.With(insert, []db.Value{sqltest.Number(5), sqltest.Number(9), sqltest.Number(9), {Text: []byte("a key that is there")}}),
		sqltest.With(&db.Statement{SQL: "SELECT i, m, s FROM things ORDER BY id", Columns: []db.Type{db.Integer, db.Decimal, db.Text}}, nil),
		sqltest.With(&db.Statement{SQL: "SELECT true, 7::int4, 8::int2, count(*), sum(i), 5::bigint FROM things", Columns: []db.Type{db.Integer, db.Integer, db.Integer, db.Integer, db.Integer, db.Decimal}}, nil),
		bank.See(0), bank.Touch(3, 0), bank.Touch(77, 0),
		sqltest.With(&db.Statement{SQL: "DELETE FROM things", Counted: true}, nil),
	}...)
	want := sqltest.SameResults(t, d, work)
	sqltest.WantExtremes(t, want[7], text)
	if want[0].Affected != 1 || want[6].Affected != 0 || want[8].Row(0)[3].Int != 6 || want[8].Row(0)[5].Int != 500 || want[11].Rows() != 0 || want[12].Affected != 6 {
		t.Errorf("results %+v", want)
	}
}

const thingsTable = `CREATE TABLE things (id BIGINT NOT NULL PRIMARY KEY, small SMALLINT, mid INTEGER, m DECIMAL(20,2) CHECK (m > -5), s VARCHAR(20))`

func load(before []string, fill func(n int64, row []db.Value) bool) db.BulkLoad {
	l := sqltest.Load(before, fill)
	l.After = nil
	return l
}

func TestBulkLoadLoadsAllRows(t *testing.T) {
	d := openFresh(t)
	rows, err := d.BulkLoad(t.Context(), load([]string{"DROP TABLE IF EXISTS things", thingsTable}, sqltest.Some(sqltest.Rows, "thing %d")))
	if err != nil || rows != sqltest.Rows {
		t.Fatal(rows, err)
	}
	sums := &db.Statement{
		SQL: `SELECT concat_ws(' ', count(*)::text, sum(id)::text, sum(small)::text, sum(mid)::text, sum(m)::text, count(m)::text, count(s)::text,
			bool_and(s IS NULL OR s = 'thing ' || id::text)::text) FROM things`, Columns: []db.Type{db.Text},
	}
	s := sqltest.Session(t, d, db.Pipelined, "")
	drivertest.Must(t, sqltest.Transact(t.Context(), s, true, false, sqltest.With(sums, nil)))
	if got, want := string(s.Result(0).Row(0)[0].Text), sqltest.Sums()+" true"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFailedBulkLoadLeavesNoTable checks that a failed load leaves no table.
func TestFailedBulkLoadLeavesNoTable(t *testing.T) {
	d := openFresh(t)
	for _, tc := range []struct {
		name  string
		class db.Class
		code  string
		row   func(row []db.Value)
	}{
		{"check", db.Constraint, "23514", func(row []db.Value) { row[3].Int = -500 }},
		{"not null", db.Constraint, "23502", func(row []db.Value) { row[0].Null = true }},
		{"unique", db.Constraint, "23505", func(row []db.Value) { row[0].Int = 5 }},
		{"text too long", db.Fatal, "22001", func(row []db.Value) { row[4] = db.Value{Text: bytes.Repeat([]byte("x"), 21)} }},
	} {
		rows, err := d.BulkLoad(t.Context(), load([]string{thingsTable}, sqltest.Spoilt("thing %d", tc.row)))
		if sqltest.WantError(t, tc.name, err, tc.class, tc.code); rows != 0 {
			t.Errorf("%s: %d rows", tc.name, rows)
		}
		if err := d.Exec(t.Context(), "SELECT 1 FROM things LIMIT 1"); err == nil {
			t.Errorf("%s: the table is there", tc.name)
		}
	}
}

func TestSessionsSurviveRestarts(t *testing.T) {
	s := servers.Start(t, nil)
	sqltest.Restarts(t, s, drivertest.Open(t, Open, s.URL()), &bank)
}

// TestTableIsSplitDuringLoad checks that a table loaded in key order has several ranges.
func TestTableIsSplitDuringLoad(t *testing.T) {
	d := openFresh(t)
	const count = 3 * splitRows
	rows, err := d.BulkLoad(t.Context(), load([]string{thingsTable}, sqltest.Some(count, "%d")))
	if err != nil || rows != count {
		t.Fatal(rows, err)
	}
	ranges := &db.Statement{SQL: "SELECT count(*) FROM crdb_internal.ranges_no_leases WHERE table_name = 'things' AND database_name = current_database()", Columns: []db.Type{db.Integer}}
	var n int64
	drivertest.Must(t, sqltest.Session(t, d, db.Pipelined, "").Query(t.Context(), ranges, nil, func(row []db.Value) error { n = row[0].Int; return nil }))
	if n < 3 {
		t.Errorf("the table is in %d ranges", n)
	}
}
