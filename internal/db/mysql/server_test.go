package mysql

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

func TestMain(m *testing.M) { servers.Main(m) }

// servers run without fsync, because no test cuts the power. Commits are still written to files, so they
// survive kill -9.
var servers = drivertest.Servers[*mysqlcluster.Server]{
	Launch: func(ctx context.Context, settings map[string]string) (*mysqlcluster.Server, error) {
		all := map[string]string{"innodb-flush-log-at-trx-commit": "2", "innodb-buffer-pool-size": "32M", "innodb-flush-method": "nosync"}
		maps.Copy(all, settings)
		return mysqlcluster.Start(ctx, cluster.Alone(all))
	},
	Missing: func(err error) string {
		if missing := new(host.MissingError); errors.As(err, missing) {
			return "skipped engine: mariadb: install the Debian package " + missing.Package
		}
		return ""
	},
}

// start starts a server for the test.
func start(t testing.TB, settings map[string]string) *mysqlcluster.Server {
	t.Helper()
	return servers.Start(t, settings)
}

// fresh returns the shared server and the address of a new, empty database on it.
func fresh(t testing.TB) (*mysqlcluster.Server, string) {
	t.Helper()
	shared, name := servers.Shared(t), servers.Name()
	if _, err := shared.SQL(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return shared, shared.URLFor(mysqlcluster.Superuser, "", name)
}

// openFresh opens a new, empty database on the shared server.
func openFresh(t testing.TB) *Database {
	t.Helper()
	_, url := fresh(t)
	return drivertest.Open(t, Open, url)
}

func newSession(t testing.TB, d *Database, mode db.Mode, isolation string) *session {
	t.Helper()
	return sqltest.Session(t, d, mode, isolation).(*session)
}

// impatient returns a function that sets the time-out of a session or, for nil, of the database.
func impatient(d *Database) func(db.SQLSession, time.Duration) {
	return func(s db.SQLSession, limit time.Duration) {
		if s == nil {
			d.limit = limit
		} else {
			s.(*session).Limit = limit
		}
	}
}

// ask returns the first row of a query on another connection, with spaces between the columns.
func ask(t testing.TB, d *Database, sql string) string {
	t.Helper()
	var answer string
	err := d.control(t.Context(), "ask", func(_ context.Context, c *link) error {
		rows, err := c.table(sql)
		if err == nil && len(rows) > 0 {
			answer = strings.Join(rows[0], " ")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// until repeats a query until the answer is not empty.
func until(t testing.TB, d *Database, sql string) string {
	t.Helper()
	for t.Context().Err() == nil {
		if answer := ask(t, d, sql); answer != "" {
			return answer
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal(t.Context().Err())
	return ""
}

// bank holds the schema, and statements on it.
var (
	bank = sqltest.Bank{Update: updateAccount, Read: readAccount, Schema: []string{
		`CREATE TABLE accounts (
			bic VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, ban BIGINT NOT NULL,
			balance DECIMAL(20,2) NOT NULL CHECK (balance >= 0),
			version BIGINT NOT NULL, last_transfer BIGINT NOT NULL, previous_transfer BIGINT NOT NULL,
			PRIMARY KEY (bic, ban)) ENGINE=InnoDB`,
		`CREATE TABLE ledger (
			transfer BIGINT NOT NULL, leg BIGINT NOT NULL,
			bic VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, ban BIGINT NOT NULL,
			amount DECIMAL(20,2) NOT NULL, version BIGINT NOT NULL,
			PRIMARY KEY (transfer, leg), FOREIGN KEY (bic, ban) REFERENCES accounts (bic, ban)) ENGINE=InnoDB`,
	}}
	updateAccount = &db.Statement{
		SQL: `UPDATE accounts SET balance = balance + ?, version = version + 1,
			previous_transfer = last_transfer, last_transfer = ? WHERE bic = ? AND ban = ?`,
		Params: []db.Type{db.Decimal, db.Integer, db.Text, db.Integer},
	}
	setBalance = &db.Statement{
		SQL:    `UPDATE accounts SET balance = ? WHERE bic = ? AND ban = ?`,
		Params: []db.Type{db.Decimal, db.Text, db.Integer},
	}
	insertLeg = &db.Statement{
		SQL: `INSERT INTO ledger (transfer, leg, bic, ban, amount, version)
			VALUES (?, ?, ?, ?, ?, (SELECT version FROM accounts WHERE bic = ? AND ban = ?))`,
		Params: []db.Type{db.Integer, db.Integer, db.Text, db.Integer, db.Decimal, db.Text, db.Integer},
	}
	readAccount = &db.Statement{
		SQL:     `SELECT balance, version FROM accounts WHERE bic = ? AND ban = ?`,
		Params:  []db.Type{db.Text, db.Integer},
		Columns: []db.Type{db.Decimal, db.Integer},
	}
)

var bic = sqltest.BIC

const secret = sqltest.Secret
