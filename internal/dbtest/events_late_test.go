package dbtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/events"
)

// errLate is the error of a commit that the test delays.
var errLate = &db.Error{Class: db.Unknown, Op: "commit", Err: errors.New("the test keeps the commit under way")}

// late delays the next commit of a session until the test calls send. It simulates a server process that has not yet
// noticed the end of its connection.
type late struct {
	armed bool
	send  func(ctx context.Context) error
	close func() error
}

type lateSQL struct {
	db.SQL
	late *late
}

type lateSQLSession struct {
	db.SQLSession
	database db.SQL
	options  db.SessionOptions
	late     *late
}

func (d lateSQL) Session(ctx context.Context, o db.SessionOptions) (db.SQLSession, error) {
	s, err := d.SQL.Session(ctx, o)
	return &lateSQLSession{s, d.SQL, o, d.late}, err
}

func (s *lateSQLSession) Commit(ctx context.Context) error {
	if !s.late.armed {
		return s.SQLSession.Commit(ctx)
	}
	*s.late = late{send: s.SQLSession.Commit, close: s.SQLSession.Close}
	return errLate
}

func (s *lateSQLSession) Reset(ctx context.Context) (err error) {
	s.SQLSession, err = s.database.Session(ctx, s.options)
	return err
}

type lateKV struct {
	db.KV
	late *late
}

type lateKVSession struct {
	db.KVSession
	database db.KV
	options  db.SessionOptions
	late     *late
}

func (d lateKV) KVSession(ctx context.Context, o db.SessionOptions) (db.KVSession, error) {
	s, err := d.KV.KVSession(ctx, o)
	return &lateKVSession{s, d.KV, o, d.late}, err
}

func (s *lateKVSession) Commit(ctx context.Context) error {
	if !s.late.armed {
		return s.KVSession.Commit(ctx)
	}
	*s.late = late{send: s.KVSession.Commit, close: s.KVSession.Close}
	return errLate
}

func (s *lateKVSession) Reset(ctx context.Context) (err error) {
	s.KVSession, err = s.database.KVSession(ctx, s.options)
	return err
}

// delayed wraps a database so that a commit can be delayed.
func delayed(database db.Database, l *late) db.Database {
	if d, ok := database.(db.SQL); ok {
		return lateSQL{d, l}
	}
	return lateKV{database.(db.KV), l}
}

// eachLate calls test for every database that executes nothing of a transaction on the server before the commit. On
// these databases a commit can be delayed.
func eachLate(t *testing.T, test func(t *testing.T, database db.Database)) {
	t.Run("memory", func(t *testing.T) { test(t, openMemory(t, "memory:")) })
	t.Run("etcd", func(t *testing.T) { useEtcd(t); test(t, openEtcd(t)) })
	t.Run("redis", func(t *testing.T) { test(t, openRedis(t, startRedis(t, 1, "no").URL())) })
	t.Run("postgres", func(t *testing.T) { d, _ := openPostgres(t); test(t, d) })
	t.Run("mariadb", func(t *testing.T) { d, _ := openSharedMariaDB(t); test(t, d) })
}

// twoClients loads a log with one stream and opens two clients of the stream.
func twoClients(t *testing.T, database db.Database) (e *events.Log, c events.Config, first, second load.Client) {
	t.Helper()
	c = fewEvents()
	c.Clients, c.Streams = 2, 1
	e, err := events.New(database, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list [2]load.Client
	for i := range list {
		if list[i], err = e.Client(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { list[i].Close() })
	}
	return e, c, list[0], list[1]
}

// prepared returns the next transaction of a client.
func prepared(c load.Client) *history.Transaction {
	tx := new(history.Transaction)
	c.Next(tx)
	return tx
}

// settled resets the client and resolves the outcome of a transaction.
func settled(t *testing.T, c load.Client, tx *history.Transaction) {
	t.Helper()
	if err := errors.Join(c.Reset(t.Context()), c.ResolveUnknown(t.Context(), tx)); err != nil {
		t.Fatal(err)
	}
	tx.LookedUp = tx.Outcome != history.Unknown
}

// TestEventsLookUpBlocksLateCommit checks that an append which a look-up has reported as not applied cannot be applied
// later.
func TestEventsLookUpBlocksLateCommit(t *testing.T) {
	t.Parallel()
	eachLate(t, func(t *testing.T, database db.Database) {
		l := new(late)
		e, c, first, second := twoClients(t, delayed(database, l))
		one := prepared(first)
		attempt(t, first, one)
		l.armed = true
		two := prepared(first)
		if err := first.Attempt(t.Context(), two); db.ClassOf(err) != db.Unknown {
			t.Fatalf("the error is %v", err)
		}
		settled(t, first, two)
		wantOutcome(t, two, history.Aborted, 0)
		if err := l.send(t.Context()); err == nil {
			t.Error("the append was applied although a look-up had reported it as not applied")
		}
		if err := l.close(); err != nil {
			t.Log(err) // the session may be broken
		}
		settled(t, first, two) // a second look-up gives the same answer
		wantOutcome(t, two, history.Aborted, 0)
		three := prepared(second)
		attempt(t, second, three)
		if op := three.Ops[0]; !op.Observed || op.Version != uint64(c.Batch)+1 {
			t.Errorf("the append after the tombstone has the operation %+v", op)
		}
		wantLog(t, database, e, c, one, two, three)
	})
}

// TestEventsLookUpFindsAppliedAppend checks the look-up of an append that was applied, and of an append whose position
// another append has taken.
func TestEventsLookUpFindsAppliedAppend(t *testing.T) {
	t.Parallel()
	eachLate(t, func(t *testing.T, database db.Database) {
		l := new(late)
		e, c, first, second := twoClients(t, delayed(database, l))
		l.armed = true
		one := prepared(first)
		if err := first.Attempt(t.Context(), one); db.ClassOf(err) != db.Unknown {
			t.Fatalf("the error is %v", err)
		}
		if err := l.send(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		settled(t, first, one)
		wantOutcome(t, one, history.Committed, 0)
		if op := one.Ops[0]; !op.Observed || op.Version != 0 {
			t.Errorf("the look-up reported %+v", op)
		}
		l.armed = true
		two := prepared(first)
		if err := first.Attempt(t.Context(), two); db.ClassOf(err) != db.Unknown {
			t.Fatalf("the error is %v", err)
		}
		three := prepared(second)
		attempt(t, second, three)
		settled(t, first, two)
		wantOutcome(t, two, history.Aborted, 0)
		if err := l.send(t.Context()); err == nil {
			t.Error("the append was applied although another append has its position")
		}
		if err := l.close(); err != nil {
			t.Log(err)
		}
		wantLog(t, database, e, c, one, two, three)
	})
}

// TestEventsLookUpWaitsForOpenTransaction checks that a look-up waits if a server process has inserted the rows and
// has not committed. The look-up reports the outcome once the process commits or rolls back.
func TestEventsLookUpWaitsForOpenTransaction(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, database db.Database) {
		l := new(late)
		delayed := delayed(database, l)
		for _, applied := range []bool{true, false} {
			e, c := interactiveLog(t, delayed)
			client, err := e.Client(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			tx := prepared(client)
			l.armed = true
			if err := client.Attempt(t.Context(), tx); db.ClassOf(err) != db.Unknown {
				t.Fatalf("the error is %v", err)
			}
			if err := client.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			reported := make(chan error, 1)
			go func() { reported <- client.ResolveUnknown(t.Context(), tx) }()
			select {
			case err := <-reported:
				t.Fatalf("the look-up did not wait: %v, %v", tx.Outcome, err)
			case <-time.After(300 * time.Millisecond):
			}
			want := history.Aborted
			if applied {
				want = history.Committed
				if err := l.send(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.close(); err != nil {
				t.Fatal(err)
			}
			if err := <-reported; err != nil {
				t.Fatal(err)
			}
			wantOutcome(t, tx, want, 0)
			tx.LookedUp = true
			wantLog(t, database, e, c, tx)
		}
	}
	t.Run("postgres", func(t *testing.T) { d, _ := openPostgres(t); test(t, d) })
	t.Run("mariadb", func(t *testing.T) { d, _ := openSharedMariaDB(t); test(t, d) })
}

// interactiveLog loads a log whose clients send each statement separately.
func interactiveLog(t *testing.T, database db.Database) (*events.Log, events.Config) {
	t.Helper()
	c := fewEvents()
	c.Clients, c.Streams, c.Mode = 1, 1, workload.Interactive
	e, err := events.New(database, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e, c
}

// TestEventsRetryFindsAppliedAppend checks that a retry notices an append that was reported as aborted and applied.
func TestEventsRetryFindsAppliedAppend(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]db.Database{"memory": openMemory(t, "memory:"), "sqlite": openSQLite(t)} {
		t.Run(name, func(t *testing.T) {
			l := new(late)
			_, _, first, second := twoClients(t, delayed(database, l))
			l.armed = true
			tx := prepared(first)
			if err := first.Attempt(t.Context(), tx); db.ClassOf(err) != db.Unknown {
				t.Fatalf("the error is %v", err)
			}
			if err := errors.Join(l.send(t.Context()), l.close()); err != nil {
				t.Fatal(err)
			}
			other := prepared(second)
			attempt(t, second, other)
			if err := first.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := first.Attempt(t.Context(), tx); !errors.Is(err, load.ErrAlreadyApplied) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// wantLog fails the test unless the log has exactly the appends that the transactions report, and all checks are
// valid.
func wantLog(t *testing.T, database db.Database, e *events.Log, c events.Config, all ...*history.Transaction) {
	t.Helper()
	r := newTrial(t, database, e, c.Isolation)
	const clients = 2
	writer, err := history.Create(r.history(), e.Header(), clients)
	if err != nil {
		t.Fatal(err)
	}
	for i, tx := range all {
		tx.Attempts, tx.Due, tx.Sent, tx.Try, tx.End = 1, int64(10*i), int64(10*i), int64(10*i), int64(10*i+5)
		if err := writer.Client(int(tx.ID.Client())).Append(tx); err != nil {
			t.Fatal(err)
		}
	}
	for i := range clients {
		if err := writer.Client(i).Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	r.download(t)
	r.check(t)
	r.wantAllValid(t)
}
