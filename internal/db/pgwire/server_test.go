package pgwire

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// TestFlavor and BulkLoader belong to PostgreSQL. The package's external tests set them, because the flavor's package
// imports this one.
var (
	TestFlavor *Flavor
	BulkLoader func(*Database) db.BulkLoader
)

func TestMain(m *testing.M) { servers.Main(m) }

// servers run without fsync, because no test cuts the power.
var servers = drivertest.Servers[*server.Server]{
	Launch: func(ctx context.Context, settings map[string]string) (*server.Server, error) {
		all := map[string]string{"fsync": "off"}
		maps.Copy(all, settings)
		return server.Start(ctx, cluster.Alone(all))
	},
	Missing: func(err error) string {
		if missing := new(host.MissingError); errors.As(err, missing) {
			return "skipped engine: postgres: install the Debian package " + missing.Package
		}
		return ""
	},
}

// start starts a server for the test.
func start(t testing.TB, settings map[string]string) *server.Server {
	t.Helper()
	return servers.Start(t, settings)
}

// fresh returns the shared server, and the name and address of a new, empty database on it.
func fresh(t testing.TB) (shared *server.Server, name, url string) {
	t.Helper()
	shared, name = servers.Shared(t), servers.Name()
	sqltest.Execute(t, drivertest.Open(t, openURL, shared.URL()), "CREATE DATABASE "+name)
	return shared, name, shared.URLFor(server.Superuser, "", name)
}

// openFresh opens a new, empty database.
func openFresh(t testing.TB) *Database {
	t.Helper()
	_, _, url := fresh(t)
	return drivertest.Open(t, openURL, url)
}

func openURL(ctx context.Context, url string) (*Database, error) { return Open(ctx, url, TestFlavor) }

func newSession(t testing.TB, d *Database, mode db.Mode, isolation string) *session {
	t.Helper()
	return sqltest.Session(t, d, mode, isolation).(*session)
}

// way is how the statements of a transaction are sent.
type way struct {
	name     string
	mode     db.Mode
	implicit bool // without BEGIN and COMMIT if nothing is flushed
	flush    bool // before the commit
}

var ways = []way{
	{"one by one", db.Interactive, true, false},
	{"implicit", db.Pipelined, true, false},
	{"explicit", db.Pipelined, false, false},
	{"flushed", db.Pipelined, true, true},
}

// together reports whether the commit is sent with the statements.
func (w way) together() bool { return w.mode == db.Pipelined && !w.flush }

func eachWay(t *testing.T, test func(*testing.T, way)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { test(t, w) })
	}
}

// on returns the database for sessions of this way.
func (w way) on(d *Database) *Database {
	own := *d
	own.implicit = w.implicit
	return &own
}

func (w way) session(t testing.TB, d *Database, isolation string) *session {
	t.Helper()
	return newSession(t, w.on(d), w.mode, isolation)
}

func (w way) transact(ctx context.Context, s *session, statements ...sqltest.Statement) error {
	return sqltest.Transact(ctx, s, false, w.flush, statements...)
}

// impatient returns a function that sets the time-out of a session or, for nil, of the database.
func impatient(d *Database) func(db.SQLSession, time.Duration) {
	return func(s db.SQLSession, limit time.Duration) {
		if s == nil {
			d.timeout = limit
		} else {
			s.(*session).Limit = limit
		}
	}
}

// bank holds the schema, and statements on it.
var (
	bank = sqltest.Bank{Update: updateAccount, Read: readAccount, Schema: []string{
		`CREATE TABLE accounts (
			bic VARCHAR(8) COLLATE "C" NOT NULL, ban BIGINT NOT NULL,
			balance NUMERIC(20,2) NOT NULL CHECK (balance >= 0),
			version BIGINT NOT NULL, last_transfer BIGINT NOT NULL, previous_transfer BIGINT NOT NULL,
			PRIMARY KEY (bic, ban)) WITH (fillfactor = 50)`,
		`CREATE TABLE ledger (
			transfer BIGINT NOT NULL, leg BIGINT NOT NULL,
			bic VARCHAR(8) COLLATE "C" NOT NULL, ban BIGINT NOT NULL,
			amount NUMERIC(20,2) NOT NULL, version BIGINT NOT NULL,
			PRIMARY KEY (transfer, leg), FOREIGN KEY (bic, ban) REFERENCES accounts)`,
	}}
	updateAccount = &db.Statement{
		SQL: `UPDATE accounts SET balance = balance + $1, version = version + 1,
			previous_transfer = last_transfer, last_transfer = $2
			WHERE bic = $3 AND ban = $4 RETURNING version, balance, previous_transfer`,
		Params:  []db.Type{db.Decimal, db.Integer, db.Text, db.Integer},
		Columns: []db.Type{db.Integer, db.Decimal, db.Integer},
	}
	insertLeg = &db.Statement{
		SQL: `INSERT INTO ledger (transfer, leg, bic, ban, amount, version)
			SELECT $1, $2, bic, ban, $5, version FROM accounts WHERE bic = $3 AND ban = $4`,
		Params: []db.Type{db.Integer, db.Integer, db.Text, db.Integer, db.Decimal},
	}
	readAccount = &db.Statement{
		SQL:     `SELECT balance, version FROM accounts WHERE bic = $1 AND ban = $2`,
		Params:  []db.Type{db.Text, db.Integer},
		Columns: []db.Type{db.Decimal, db.Integer},
	}
)

var bic = sqltest.BIC

const secret = sqltest.Secret

// transfer queues a transfer of two legs.
type transfer struct{ args [4][5]db.Value }

func (x *transfer) queue(ctx context.Context, s db.SQLSession, id, from, to, cents int64) error {
	for i, leg := range [...]struct{ account, cents int64 }{{min(from, to), cents}, {max(from, to), -cents}} {
		if from < to {
			leg.cents = -leg.cents
		}
		u := &x.args[2*i]
		u[0].Int, u[1].Int, u[2].Text, u[3].Int = leg.cents, id, bic, leg.account
		if _, err := s.Do(ctx, updateAccount, u[:4]); err != nil {
			return err
		}
		l := &x.args[2*i+1]
		l[0].Int, l[1].Int, l[2].Text, l[3].Int, l[4].Int = id, int64(i), bic, leg.account, leg.cents
		if _, err := s.Do(ctx, insertLeg, l[:]); err != nil {
			return err
		}
	}
	return nil
}
