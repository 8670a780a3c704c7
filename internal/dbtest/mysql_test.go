package dbtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"stroppy/internal/cluster"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/mysql"
	"stroppy/internal/workload"
	"stroppy/internal/workload/bank"
)

// startMariaDB starts a server for one test, with the given settings and without disk flushes. The test must not kill
// the server: see startMariaDBIn.
func startMariaDB(t *testing.T, settings map[string]string) *mysqlcluster.Server {
	t.Helper()
	return startMariaDBIn(t, "", true, settings)
}

// startMariaDBIn starts a server with the programs in a folder, or the installed programs if bin is empty. A server
// with data in memory must not be killed. InnoDB maps a log in /dev/shm like persistent memory. A commit then does not
// wait until other threads have written the log before it (log_write_up_to in MariaDB 10.11). After a kill, 2 of 25
// servers in memory had lost acknowledged transfers; none of 25 servers on disk had.
func startMariaDBIn(t *testing.T, bin string, inMemory bool, settings map[string]string) *mysqlcluster.Server {
	t.Helper()
	needsTime(t)
	s, err := newMariaDB(t.Context(), bin, inMemory, settings)
	return served(t, "mariadb", s, err)
}

// sharedMariaDB returns the shared server, which claims no snapshot isolation.
func sharedMariaDB(t *testing.T) *mysqlcluster.Server {
	t.Helper()
	needsTime(t)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.mariadb == nil && shared.mariadbErr == nil {
		shared.mariadb, shared.mariadbErr = newMariaDB(context.Background(), "", true, map[string]string{"innodb-snapshot-isolation": "OFF", "max-connections": "500"})
	}
	skipMissing(t, "mariadb", shared.mariadbErr)
	return shared.mariadb
}

// openSharedMariaDB opens a new, empty database on the shared server.
func openSharedMariaDB(t *testing.T) (d *mysql.Database, address string) {
	t.Helper()
	s := sharedMariaDB(t)
	name := fmt.Sprintf("bank%d", shared.databases.Add(1))
	return openMariaDB(t, s, name), s.URLFor(mysqlcluster.Superuser, "", name)
}

// newMariaDB starts a server.
func newMariaDB(ctx context.Context, bin string, inMemory bool, settings map[string]string) (*mysqlcluster.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	all := map[string]string{"innodb-flush-log-at-trx-commit": "2", "innodb-buffer-pool-size": "64M"}
	for name, value := range settings {
		all[name] = value
	}
	alone := cluster.Alone(all)
	alone.InMemory = inMemory
	if bin != "" {
		alone.Params.Set("bin", bin)
	}
	return mysqlcluster.Start(ctx, alone)
}

// openMariaDB opens a new, empty database on a server.
func openMariaDB(t *testing.T, s *mysqlcluster.Server, name string) *mysql.Database {
	t.Helper()
	if _, err := s.SQL(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	d, err := mysql.Open(t.Context(), s.URLFor(mysqlcluster.Superuser, "", name))
	return opened(t, d, err)
}

// TestBankSurvivesKilledMariaDB kills the server three times during a run. The clients look up interrupted commits
// after the restart. There are no read-only transactions, because they may see commits that a crash takes back: see
// docs/databases/mysql.md.
func TestBankSurvivesKilledMariaDB(t *testing.T) {
	t.Parallel()
	s := startMariaDBIn(t, "", false, nil)
	for _, mode := range []string{workload.Pipelined, workload.Interactive, workload.Procedure} {
		t.Run(mode, func(t *testing.T) {
			d := openMariaDB(t, s, "hurt_"+mode)
			ctx, cancel := context.WithCancel(t.Context())
			hurt := make(chan error, 1)
			count := counting(t, ctx, d)
			go func() { hurt <- killAt(ctx, s, count, 500, 1500, 2500) }()
			c := small()
			c.Mode, c.Audits, c.InquiryShare = mode, 0, 0
			o := conduct(t, d, newBank(t, d, func(own *bank.Config) { *own = c }), c.Isolation, 3000)
			cancel()
			if err := <-hurt; err != nil {
				t.Fatal(err)
			}
			o.wantSurvived(t)
		})
	}
}

// wantSurvived fails the test unless the run is valid, clients have reconnected and every outcome is known.
func (r *trial) wantSurvived(t *testing.T) {
	t.Helper()
	r.wantValid(t)
	if r.driven.Reconnects == 0 || r.driven.Unresolved > 0 {
		t.Errorf("%d reconnects, %d transactions unresolved: %+v", r.driven.Reconnects, r.driven.Unresolved, r.driven.Errors)
	}
}

// mortal is a server that a test can kill and restart.
type mortal interface {
	Kill(ctx context.Context) error
	Restart(ctx context.Context) error
}

// counting returns a function that counts the legs of the ledger on its own session. The session reconnects after the
// server has ended it.
func counting(t *testing.T, ctx context.Context, d db.SQL) func() (legs int64, err error) {
	t.Helper()
	s, err := d.Session(ctx, db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the server may have ended it
	counted := &db.Statement{SQL: "SELECT COUNT(*) FROM stroppy_ledger", Columns: []db.Type{db.Integer}}
	return func() (legs int64, err error) {
		err = s.Query(ctx, counted, nil, func(row []db.Value) error {
			legs = row[0].Int
			return nil
		})
		if err != nil {
			_ = s.Reset(ctx) // the server may not be ready
		}
		return legs, err
	}
}

// killAt kills and restarts the server each time that count reaches the next number of legs.
func killAt(ctx context.Context, s mortal, count func() (int64, error), legs ...int64) error {
	for _, want := range legs {
		for found := int64(0); found < want; {
			// The ledger may not exist yet, or the server may be down.
			if n, err := count(); err == nil {
				found = n
			}
			if wait.Sleep(ctx, 10*time.Millisecond) != nil {
				return fmt.Errorf("the run ended with %d legs before the kill at %d", found, want)
			}
		}
		if err := errors.Join(s.Kill(ctx), s.Restart(ctx)); err != nil {
			return err
		}
	}
	return nil
}
