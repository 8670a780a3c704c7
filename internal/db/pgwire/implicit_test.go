package pgwire

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/patroni"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// recorder records what is written to a connection: for each write a line with the names of the executed
// statements, and S for a Sync.
type recorder struct {
	net.Conn
	lines []string
}

func record(s *session) *recorder {
	r := &recorder{Conn: s.Conn}
	s.Conn = r
	return r
}

func (r *recorder) Write(b []byte) (int, error) {
	var words []string
	for rest := b; len(rest) > 0; rest = rest[1+binary.BigEndian.Uint32(rest[1:]):] {
		switch rest[0] {
		case 'B':
			name, _, _ := strings.Cut(string(rest[6:]), "\x00") // after the unnamed portal
			words = append(words, name)
		case 'S':
			words = append(words, "S")
		case 'E':
		default:
			words = append(words, "unexpected "+string(rest[:1]))
		}
	}
	r.lines = append(r.lines, strings.Join(words, " "))
	return r.Conn.Write(b)
}

func (r *recorder) take() string {
	text := strings.Join(r.lines, "; ")
	r.lines = nil
	return text
}

// TestEachModeSendsExpectedMessages checks the messages and round trips of each mode.
func TestEachModeSendsExpectedMessages(t *testing.T) {
	d := openFresh(t)
	if !d.implicit {
		t.Error("PostgreSQL is said not to keep what stands before one Sync in one transaction")
	}
	bank.Make(t, d, 2)
	sent := map[string]struct{ writes, reads, empty string }{
		"one by one": {"b s1 S; s2 S; c S", "r s1 S; s1 S; c S", ""},
		"implicit":   {"s1 s2 S", "s1 s1 S", ""},
		"explicit":   {"b s1 s2 c S", "r s1 s1 c S", ""},
		"flushed":    {"b s1 s2 S; c S", "r s1 s1 S; c S", ""},
	}
	eachWay(t, func(t *testing.T, w way) {
		s, ctx, want := w.session(t, d, ""), t.Context(), sent[w.name]
		drivertest.Must(t, w.transact(ctx, s, bank.See(0), bank.Touch(0, 1))) // prepares
		r := record(s)
		for _, x := range []struct {
			what, want string
			do         func() error
		}{
			{"a write", want.writes, func() error { return w.transact(ctx, s, bank.See(0), bank.Touch(0, 1)) }},
			{"reads", want.reads, func() error { return sqltest.Transact(ctx, s, true, w.flush, bank.See(0), bank.See(1)) }},
			{"nothing", want.empty, func() error { return w.transact(ctx, s) }},
		} {
			err := x.do()
			if got := r.take(); err != nil || got != x.want {
				t.Errorf("%s was sent as %q, want %q: %v", x.what, got, x.want, err)
			}
		}
	})
}

// TestStatementsShareOneTransaction checks that all statements have the same transaction number and the requested
// isolation.
func TestStatementsShareOneTransaction(t *testing.T) {
	_, name, url := fresh(t)
	sqltest.Execute(t, drivertest.Open(t, openURL, url), "ALTER DATABASE "+name+" SET default_transaction_isolation = 'repeatable read'")
	d := drivertest.Open(t, openURL, url)
	number := sqltest.With(&db.Statement{
		SQL:     "SELECT txid_current(), current_setting('transaction_isolation')",
		Columns: []db.Type{db.Integer, db.Text},
	}, nil)
	eachWay(t, func(t *testing.T, w way) {
		for _, isolation := range []string{"", "read uncommitted", "read committed", "repeatable read", "serializable"} {
			s, want, last := w.session(t, d, isolation), isolation, int64(0)
			if isolation == "" {
				want = "repeatable read"
			}
			for range 3 {
				drivertest.Must(t, w.transact(t.Context(), s, number, number, number))
				first := s.Result(0).Row(0)[0].Int
				for i := range 3 {
					if row := s.Result(i).Row(0); row[0].Int != first || string(row[1].Text) != want {
						t.Errorf("isolation %q: statement %d is in transaction %d at %s, the first in %d", isolation, i, row[0].Int, row[1].Text, first)
					}
				}
				if first <= last {
					t.Errorf("isolation %q: transaction %d after %d", isolation, first, last)
				}
				last = first
			}
		}
	})
}

// gate is an advisory lock that a transaction waits for.
type gate struct{ holder *session }

var (
	lockGate   = &db.Statement{SQL: "SELECT pg_advisory_lock(7)"}
	unlockGate = &db.Statement{SQL: "SELECT pg_advisory_unlock(7)"}
	passGate   = sqltest.With(&db.Statement{SQL: "SELECT pg_advisory_xact_lock(7)"}, nil)
	atGate     = &db.Statement{SQL: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'", Columns: []db.Type{db.Integer}}
)

func (g gate) query(t *testing.T, s *db.Statement) (n int64) {
	t.Helper()
	drivertest.Must(t, g.holder.Query(t.Context(), s, nil, func(row []db.Value) error {
		if len(row) > 0 {
			n = row[0].Int
		}
		return nil
	}))
	return n
}

// meanwhile runs do while the other transaction waits at the gate, and returns that transaction's error.
func (g gate) meanwhile(t *testing.T, other func() error, do func()) error {
	t.Helper()
	g.query(t, lockGate)
	done := make(chan error, 1)
	go func() { done <- other() }()
	for g.query(t, atGate) == 0 {
		select {
		case err := <-done:
			t.Fatalf("the transaction did not wait at the gate: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	do()
	g.query(t, unlockGate)
	return <-done
}

// TestPipelinedStatementsKeepTheirIsolation lets another transaction commit between two statements, and lets a
// commit fail because of serialization.
func TestPipelinedStatementsKeepTheirIsolation(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 4)
	g := gate{newSession(t, d, db.Interactive, "")}
	eachWay(t, func(t *testing.T, w way) {
		ctx, other := t.Context(), newSession(t, d, db.Interactive, "serializable")
		for isolation, moved := range map[string]int64{"read committed": 1, "repeatable read": 0, "serializable": 0} {
			s := w.session(t, d, isolation)
			drivertest.Must(t, g.meanwhile(t,
				func() error { return w.transact(ctx, s, bank.See(0), passGate, bank.See(0)) },
				func() { drivertest.Must(t, sqltest.Transact(ctx, other, false, false, bank.Touch(0, 1))) }))
			if seen := s.Result(2).Row(0)[0].Int - s.Result(0).Row(0)[0].Int; seen != moved {
				t.Errorf("%s: the second read saw %d more than the first, want %d", isolation, seen, moved)
			}
		}
		s := w.session(t, d, "serializable")
		before := bank.Balance(t, s, 1)
		drivertest.Must(t, other.Begin(ctx, false))
		for _, x := range []sqltest.Statement{bank.See(1), bank.Touch(2, 1)} {
			_, err := sqltest.Do(ctx, other, x)
			drivertest.Must(t, err)
		}
		err := g.meanwhile(t,
			func() error { return w.transact(ctx, s, bank.See(2), bank.Touch(1, 1), passGate) },
			func() { drivertest.Must(t, other.Commit(ctx)) })
		sqltest.WantError(t, "write skew", err, db.Aborted, "40001")
		if !strings.Contains(err.Error(), "during commit attempt") {
			t.Errorf("this test needs an error of the commit itself: %v", err)
		}
		if after := bank.Balance(t, s, 1); after != before { // and the session is ready
			t.Errorf("an aborted transaction moved %d to %d", before, after)
		}
	})
}

// TestStandbyRefusesWrites checks that a server in recovery refuses a transaction that writes.
func TestStandbyRefusesWrites(t *testing.T) {
	servers.Shared(t) // skips without PostgreSQL
	c, err := patroni.Start(t.Context(), cluster.Options{Nodes: 2, Loopback: true})
	if missing := (host.MissingError{}); errors.As(err, &missing) {
		t.Skipf("skipped engine: install the Debian package %s", missing.Package)
	}
	drivertest.Must(t, err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	leader, err := c.Leader(t.Context())
	drivertest.Must(t, err)
	bank.Make(t, drivertest.Open(t, openURL, c.NodeURL(leader)), 2)
	d := drivertest.Open(t, openURL, c.NodeURL(1-leader))
	if !d.implicit {
		t.Error("a standby is said not to keep what stands before one Sync in one transaction")
	}
	eachWay(t, func(t *testing.T, w way) {
		s := w.session(t, d, "")
		sqltest.WantError(t, "a write on a standby", w.transact(t.Context(), s, bank.See(0), bank.Touch(0, 1)), db.Unavailable, "25006")
		drivertest.Must(t, s.Reset(t.Context()))
		if err := w.transact(t.Context(), s, bank.See(0), bank.See(1)); err != nil || s.Result(1).Row(0)[0].Int != sqltest.Opening {
			t.Errorf("a read on a standby: %v", err)
		}
		s = w.session(t, d, "serializable")
		sqltest.WantError(t, "serializable on a standby", w.transact(t.Context(), s, bank.See(0)), db.Fatal, "0A000")
	})
}

// TestTransactionStillOpenAfterCommitIsUnknown checks that the outcome is unknown if ReadyForQuery reports an open
// transaction after the commit.
func TestTransactionStillOpenAfterCommitIsUnknown(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	s := newSession(t, d, db.Pipelined, "")
	begin := sqltest.With(&db.Statement{SQL: "BEGIN"}, nil)
	sqltest.WantError(t, "BEGIN among the statements", sqltest.Transact(t.Context(), s, false, false, bank.Touch(0, 1), begin), db.Unknown, "")
	sqltest.WantError(t, "a broken session", s.Begin(t.Context(), false), db.Unavailable, "")
	drivertest.Must(t, s.Reset(t.Context()))
	if cents := bank.Balance(t, s, 0); cents != sqltest.Opening {
		t.Errorf("what was never committed is there: %d", cents)
	}
}

// cut is a connection that ends during its next write, without the last bytes.
type cut struct {
	net.Conn
	without  int  // bytes at the end
	reported bool // by an error of the write; otherwise the answer is lost
}

var errCut = errors.New("cut")

func (c *cut) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b[:max(0, len(b)-c.without)])
	if err == nil && c.reported {
		err = errCut
	}
	return n, errors.Join(err, c.Conn.SetReadDeadline(time.Unix(1, 0)))
}

// TestConnectionLostBeforeAnswerIsUnknown checks the outcome if the connection is lost before the first byte,
// before the Sync, and before the answer.
func TestConnectionLostBeforeAnswerIsUnknown(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	observer := newSession(t, d, db.Interactive, "")
	for _, w := range ways {
		if !w.together() {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			ctx := t.Context()
			// COMMIT takes effect without the Sync after it.
			early := int64(1)
			if w.implicit {
				early = 0
			}
			for _, tc := range []struct {
				name     string
				without  int
				reported bool
				class    db.Class
				moved    int64
			}{
				{"before all", 1 << 20, true, db.Unavailable, 0},
				{"before the Sync", len(syncAll), true, db.Unknown, early},
				{"before the Sync, silently", len(syncAll), false, db.Unknown, early},
				{"before the answer", 0, false, db.Unknown, 1},
			} {
				s, before := w.session(t, d, ""), bank.Balance(t, observer, 0)
				drivertest.Must(t, w.transact(ctx, s, bank.Touch(1, 1))) // prepares
				s.Conn = &cut{s.Conn, tc.without, tc.reported}
				sqltest.WantError(t, tc.name, w.transact(ctx, s, bank.Touch(0, 1)), tc.class, "")
				if s.link != nil {
					t.Errorf("%s: the session goes on", tc.name)
				}
				settled(t, ctx, observer)
				if after := bank.Balance(t, observer, 0); after != before+tc.moved {
					t.Errorf("%s: the balance was %d and is %d", tc.name, before, after)
				}
			}
		})
	}
}

// settled waits until the server has ended all other sessions, so that everything that reached it is done.
func settled(t *testing.T, ctx context.Context, observer *session) {
	t.Helper()
	others := &db.Statement{
		SQL:     `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
		Columns: []db.Type{db.Integer},
	}
	for n := int64(1); n > 0; time.Sleep(time.Millisecond) {
		drivertest.Must(t, observer.Query(ctx, others, nil, func(row []db.Value) error { n = row[0].Int; return nil }))
	}
}
