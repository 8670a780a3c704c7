package pgwire

import (
	"context"
	"strings"
	"sync"
	"testing"

	"stroppy/internal/cluster/postgres/pgbouncer"
	postgrescluster "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// pool starts a pooler before a server with the given number of sessions, each assigned for one transaction.
func pool(t *testing.T, s *postgrescluster.Server, size string) *pgbouncer.Pooler {
	t.Helper()
	return poolWith(t, s, map[string]string{"default_pool_size": size})
}

// TestPooledSessionsKeepTheirIsolation checks that sessions that share two of the server's sessions keep their own
// isolation, and that no transfer is torn.
func TestPooledSessionsKeepTheirIsolation(t *testing.T) {
	server, name, url := fresh(t)
	p := pool(t, server, "2")
	direct := drivertest.Open(t, openURL, url)
	d := drivertest.Open(t, openURL, p.URL("anybody", name, "prepare=false"))
	if !d.implicit {
		t.Error("PgBouncer is said not to keep what stands before one Sync in one transaction")
	}
	const count, each = 8, 50
	bank.Make(t, direct, count)
	reader := newSession(t, direct, db.Interactive, "")
	eachWay(t, func(t *testing.T, w way) {
		before := bank.Balance(t, reader, 0)
		var group sync.WaitGroup
		for i := range count {
			isolation := []string{"", "read committed", "repeatable read", "serializable"}[i%4]
			s := w.session(t, d, isolation)
			if isolation == "" {
				isolation = "read committed"
			}
			group.Go(func() {
				for range each {
					err := touchAt(t, w, s, isolation, int64(i))
					for isolation == "serializable" && db.ClassOf(err) == db.Aborted { // rows of one page can look dependent
						err = touchAt(t, w, s, isolation, int64(i))
					}
					if err != nil {
						t.Errorf("%s: %v", isolation, err)
						return
					}
				}
			})
		}
		group.Wait()
		for i := range count {
			if got := bank.Balance(t, reader, int64(i)); got != before+each {
				t.Errorf("account %d has %d, not %d", i, got, before+each)
			}
		}
	})
}

// TestPreparedStatementsWorkBehindPooler checks that, with prepare=true, transactions have their own isolation in
// any session of the server, and leave none there. With one session, the pooler need not track prepared
// statements.
func TestPreparedStatementsWorkBehindPooler(t *testing.T) {
	server, name, url := fresh(t)
	p := pool(t, server, "1")
	direct := drivertest.Open(t, openURL, url)
	bank.Make(t, direct, 1)
	others := drivertest.Open(t, openURL, p.URL("anybody", name, "prepare=false"))
	leave := func(isolation string) {
		t.Helper()
		err := others.Control(t.Context(), "set the isolation", func(ctx context.Context, c *Control) error {
			return c.Run(ctx, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL "+isolation)
		})
		drivertest.Must(t, err)
	}
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			eachWay(t, func(t *testing.T, w way) {
				d := drivertest.Open(t, openURL, p.URL("anybody", name, "prepare=true"))
				leave("repeatable read")
				s := w.session(t, d, isolation)
				drivertest.Must(t, touchAt(t, w, s, isolation, 0))
				leave("read committed")
				drivertest.Must(t, touchAt(t, w, s, isolation, 0))
				drivertest.Must(t, touchAt(t, w, w.session(t, others, ""), "read committed", 0))
				err := others.Control(t.Context(), "forget what is prepared", func(ctx context.Context, c *Control) error { return c.Run(ctx, "DEALLOCATE ALL") })
				drivertest.Must(t, err)
			})
		})
	}
}

// touchAt changes an account in a transaction that also returns its isolation.
func touchAt(t *testing.T, w way, s *session, isolation string, account int64) error {
	ctx := t.Context()
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	level, err := s.Do(ctx, showIsolation, nil)
	if err == nil && w.flush {
		err = s.Flush(ctx)
	}
	if err == nil {
		x := bank.Touch(account, 1)
		_, err = s.Do(ctx, x.S, x.Args)
	}
	if err == nil {
		err = s.Commit(ctx)
	}
	if err == nil {
		if got := string(s.Result(level).Row(0)[0].Text); got != isolation {
			t.Errorf("a transaction ran at %s, not at %s", got, isolation)
		}
	}
	return err
}

var showIsolation = &db.Statement{SQL: "SELECT current_setting('transaction_isolation')", Columns: []db.Type{db.Text}}

// TestStreamsWorkBehindPooler checks that transactions of several streams sent together work through a pooler.
func TestStreamsWorkBehindPooler(t *testing.T) {
	server, name, _ := fresh(t)
	d := drivertest.Open(t, openURL, pool(t, server, "2").URL("anybody", name, "prepare=false"))
	bank.Make(t, d, 8)
	reader := sqltest.Session(t, d, db.Interactive, "")
	before := bank.Balance(t, reader, 0)
	streams := openStreams(t, d, 8)
	together(streams, func(i int, l *session) {
		for range 50 {
			if err := sqltest.Transact(t.Context(), l, false, false, bank.Touch(int64(i), 1)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 8 {
		if got := bank.Balance(t, reader, int64(i)); got != before+50 {
			t.Errorf("account %d has %d, not %d", i, got, before+50)
		}
	}
}

// TestPreparedStatementsLostByPoolerAreExplained checks that the error names the change to make if the URL demands
// prepared statements and the pooler loses them.
func TestPreparedStatementsLostByPoolerAreExplained(t *testing.T) {
	server, name, _ := fresh(t)
	d := drivertest.Open(t, openURL, pool(t, server, "1").URL("anybody", name, "prepare=true"))
	bank.Make(t, d, 1)
	first, err := d.Session(t.Context(), db.SessionOptions{Mode: db.Pipelined})
	drivertest.Must(t, err)
	defer first.Close()
	_, err = d.Session(t.Context(), db.SessionOptions{Mode: db.Pipelined})
	sqltest.WantError(t, "a second session on one of the server's", err, db.Fatal, "42P05")
	if !strings.Contains(err.Error(), "prepare=false") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

// TestHiddenWarningsAreRefusedBehindPooler checks that sessions that hide warnings are refused behind a pooler. A
// warning reports a commit that no standby has.
func TestHiddenWarningsAreRefusedBehindPooler(t *testing.T) {
	_, name, url := fresh(t)
	direct := drivertest.Open(t, openURL, url)
	sqltest.Execute(t, direct, "ALTER DATABASE "+name+" SET client_min_messages = 'error'")
	d := drivertest.Open(t, openURL, url+"&prepare=false")
	_, err := d.Session(t.Context(), db.SessionOptions{Mode: db.Pipelined})
	sqltest.WantError(t, "a session that hides warnings", err, db.Fatal, "")
}

// TestColumnTypesAreRequestedOnce checks that a second session reuses the column types that the first one asked
// for, and so needs one round trip.
func TestColumnTypesAreRequestedOnce(t *testing.T) {
	_, _, url := fresh(t)
	d := drivertest.Open(t, openURL, url+"&prepare=false")
	bank.Make(t, d, 2)
	touch, see := bank.Touch(0, 1), bank.See(0)
	var trips []int
	for range 2 {
		s := newSession(t, d, db.Pipelined, "")
		r := record(s)
		if err := sqltest.Transact(t.Context(), s, false, false, touch, see); err != nil {
			t.Fatal(err)
		}
		trips = append(trips, len(r.lines))
	}
	if trips[0] != 3 || trips[1] != 1 {
		t.Errorf("the sessions made %v round trips, want 3 and 1", trips)
	}
}
