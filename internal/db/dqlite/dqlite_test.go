//go:build dqlite

package dqlite_test

import (
	"fmt"
	"os"
	"testing"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	nodes "stroppy/internal/cluster/dqlite"
	"stroppy/internal/db"
	"stroppy/internal/db/dqlite"
	"stroppy/internal/db/sqltest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nodes.NodeCommand { // this program, started to be a node
		if err := nodes.Serve(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var bank = &sqltest.Bank{
	Schema: []string{
		"DROP TABLE IF EXISTS ledger", "DROP TABLE IF EXISTS accounts", "DROP TABLE IF EXISTS things",
		"CREATE TABLE accounts (bic TEXT, ban INTEGER, balance INTEGER NOT NULL CHECK (balance >= 0), version INTEGER, last_transfer INTEGER, previous_transfer INTEGER, PRIMARY KEY (bic, ban)) STRICT",
		"CREATE TABLE ledger (transfer INTEGER, leg INTEGER, bic TEXT, ban INTEGER, amount INTEGER, version INTEGER, PRIMARY KEY (transfer, leg), FOREIGN KEY (bic, ban) REFERENCES accounts) STRICT",
		"CREATE TABLE things (id INTEGER PRIMARY KEY, i INTEGER, m INTEGER, s TEXT) STRICT",
	},
	Update: &db.Statement{
		SQL:    "UPDATE accounts SET balance = balance + ? / 100, version = version + 1, previous_transfer = last_transfer, last_transfer = ? WHERE bic = ? AND ban = ?",
		Params: []db.Type{db.Decimal, db.Integer, db.Text, db.Integer},
	},
	Read: &db.Statement{
		SQL:    "SELECT balance * 100, version FROM accounts WHERE bic = ? AND ban = ?",
		Params: []db.Type{db.Text, db.Integer}, Columns: []db.Type{db.Decimal, db.Integer},
	},
}

func sql(text string, params ...db.Type) *db.Statement {
	return &db.Statement{SQL: text, Params: params}
}

// TestDriverConformsOnOneNode runs the conformance tests of SQL drivers on one node.
func TestDriverConformsOnOneNode(t *testing.T) {
	c, err := nodes.Start(clustertest.Within(t, clustertest.WaitLimit), cluster.Options{Nodes: 1, InMemory: true, Loopback: true})
	clustertest.Must(t, err)
	t.Cleanup(func() { clustertest.Must(t, c.Stop()) })
	opened, err := dqlite.Open(t.Context(), c.URL())
	clustertest.Must(t, err)
	d := opened.(db.SQL)
	t.Run("statements", func(t *testing.T) { statements(t, d) })
	t.Run("constraints", func(t *testing.T) { constraints(t, d) })
	t.Run("load", func(t *testing.T) { load(t, d, c) })
	if info, err := d.Info(t.Context()); err != nil || info.Name != "dqlite" || info.Version == "" || len(info.Settings) != 2 {
		t.Errorf("Info: %+v, %v", info, err)
	}
	if claim, err := d.Claim(""); err != nil || claim.Isolation != "serializable" {
		t.Errorf("Claim: %+v, %v", claim, err)
	}
	if _, err := d.Claim("snapshot"); err == nil {
		t.Error("an isolation that dqlite does not have is claimed")
	}
	clustertest.Must(t, cluster.LocalNodes(c)[0].Kill(t.Context()))
	_, err = dqlite.Open(t.Context(), c.URL()+"?timeout=300ms")
	sqltest.WantError(t, "no node", err, db.Unavailable, "")
}

func statements(t *testing.T, d db.SQL) {
	bank.Make(t, d, 3)
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		s, ctx := sqltest.Session(t, d, mode, ""), t.Context()
		clustertest.Must(t, s.Begin(ctx, false))
		for i, x := range []struct {
			sqltest.Statement
			affected int64
		}{
			{bank.Touch(0, 5), 1},
			{bank.Touch(77, 5), 0},
			{sqltest.With(sql("INSERT INTO things VALUES (?, ?, ?, ?)", db.Integer, db.Integer, db.Decimal, db.Text),
				[]db.Value{{Int: 1}, {Int: -1 << 63}, {Null: true}, {Text: []byte("a 'quoted' \\ text;")}}), 1},
			{sqltest.With(sql("INSERT INTO things VALUES (1, 2, 3, 'x') ON CONFLICT DO NOTHING"), nil), 0},
			{sqltest.With(sql("UPDATE accounts SET version = 0"), nil), 3},
		} {
			r, err := sqltest.Do(ctx, s, sqltest.Counted(x.Statement))
			if err != nil || r.Affected != x.affected {
				t.Errorf("statement %d: %+v, %v, want %d affected", i, r, err, x.affected)
			}
		}
		r, err := sqltest.Do(ctx, s, sqltest.With(&db.Statement{SQL: "SELECT i, m, s FROM things", Columns: []db.Type{db.Integer, db.Decimal, db.Text}}, nil))
		if err != nil || r.Rows() != 1 || r.Row(0)[0].Int != -1<<63 || !r.Row(0)[1].Null || string(r.Row(0)[2].Text) != "a 'quoted' \\ text;" {
			t.Errorf("the row is %+v, %v", r, err)
		}
		clustertest.Must(t, s.Rollback(ctx))
		if cents := bank.Balance(t, s, 0); cents != sqltest.Opening {
			t.Errorf("after a rollback: %d", cents)
		}
		other := sqltest.Session(t, d, mode, "")
		clustertest.Must(t, other.Begin(ctx, true))
		_, err = sqltest.Do(ctx, other, sqltest.With(sql("DELETE FROM things"), nil))
		sqltest.WantError(t, "a write in a transaction that reads", err, db.Fatal, "")
		clustertest.Must(t, other.Begin(ctx, false)) // the session is ready
		clustertest.Must(t, other.Close())
		clustertest.Must(t, sqltest.Transact(ctx, s, false, false, bank.Touch(1, 0)))
	})
	sqltest.BadStatements(t, d, bank, []sqltest.Bad{
		{Statement: sqltest.With(sql("UPDTE accounts"), nil), Code: "SQLITE_ERROR"},
		{Statement: sqltest.With(sql("DELETE FROM nowhere"), nil), Code: "SQLITE_ERROR"},
		{Statement: sqltest.With(sql("INSERT INTO things VALUES (9, 'one', 1, 'x')"), nil), Code: "SQLITE_CONSTRAINT"},
		{Statement: sqltest.With(&db.Statement{SQL: "SELECT ban FROM accounts", Columns: []db.Type{db.Text}}, nil)},
		{Statement: sqltest.With(&db.Statement{SQL: "SELECT 1, 2", Columns: []db.Type{db.Integer}}, nil)},
	})
}

func constraints(t *testing.T, d db.SQL) {
	bank.Make(t, d, 3)
	const code = "SQLITE_CONSTRAINT"
	sqltest.Constraints(t, d, bank, []sqltest.Refused{
		{Name: "check", Statement: bank.Touch(0, -1001_00), Kind: db.CheckFailed, Code: code},
		{Name: "not null", Statement: sqltest.With(sql("UPDATE accounts SET balance = NULL"), nil), Kind: db.NotNull, Code: code},
		{Name: "foreign key", Statement: sqltest.With(sql("INSERT INTO ledger VALUES (1, 1, 'NOBODY', 1, 1, 1)"), nil), Kind: db.ForeignKey, Code: code},
		{Name: "unique", Statement: sqltest.With(sql("INSERT INTO accounts VALUES ('ABCDEFGH', 1, 1, 0, 0, 0)"), nil), Kind: db.UniqueKey, Code: code},
	})
	sqltest.Rollbacks(t, d, bank)
}

// load loads more rows than one statement takes, and reads them from the leader and from a copy of the node.
func load(t *testing.T, d db.SQL, c cluster.Local) {
	const rows = 1000
	given := int64(0)
	loaded, err := d.(db.BulkLoader).BulkLoad(t.Context(), db.BulkLoad{
		Before: []string{"CREATE TABLE loaded (id INTEGER PRIMARY KEY, s TEXT) STRICT"}, Table: "loaded",
		Columns: []string{"id", "s"}, Types: []db.Type{db.Integer, db.Text},
		Next: func(row []db.Value) bool {
			given++
			row[0], row[1] = db.Value{Int: given}, db.Value{Text: fmt.Appendf(nil, "text %d", given)}
			return given <= rows
		},
		After: []string{"CREATE INDEX by_s ON loaded (s)"},
	})
	if err != nil || loaded != rows {
		t.Fatalf("BulkLoad: %d, %v", loaded, err)
	}
	clustertest.Must(t, c.WaitHealthy(clustertest.Within(t, clustertest.WaitLimit)))
	for _, url := range []string{c.URL(), c.NodeURL(0)} {
		opened, err := dqlite.Open(t.Context(), url)
		clustertest.Must(t, err)
		s := sqltest.Session(t, opened.(db.SQL), db.Interactive, "")
		seen := int64(0)
		clustertest.Must(t, s.Query(t.Context(), &db.Statement{SQL: "SELECT id, s FROM loaded ORDER BY id", Columns: []db.Type{db.Integer, db.Text}}, nil, func(row []db.Value) error {
			seen++
			if row[0].Int != seen || string(row[1].Text) != fmt.Sprintf("text %d", seen) {
				return fmt.Errorf("row %d is %d, %s", seen, row[0].Int, row[1].Text)
			}
			return nil
		}))
		if seen != rows {
			t.Errorf("%s has %d rows", url, seen)
		}
		clustertest.Must(t, opened.Close())
	}
}
