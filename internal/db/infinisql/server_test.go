package infinisql_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	infinisqlcluster "stroppy/internal/cluster/infinisql"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/infinisql"
)

// rows is the collection of the tests, and add adds to its amount.
var (
	rows = &db.Collection{Name: "driver_test", ID: db.Integer, Fields: []db.Field{{Name: "amount", Type: db.Integer}, {Name: "word", Type: db.Text}}}
	add  = &db.Update{Collection: rows, Add: []int{1}}
	word = db.Value{Text: []byte("word")}
)

// TestSessionsWorkOnRealServer checks outcomes, tables and faults on one real server.
func TestSessionsWorkOnRealServer(t *testing.T) {
	c, err := infinisqlcluster.Starter(infinisql.Prepare)(clustertest.Within(t, clustertest.WaitLimit), cluster.Options{Nodes: 1, InMemory: true, Loopback: true})
	clustertest.Need(t, "InfiniSQL", err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	d := drivertest.Open(t, infinisql.Open, c.URL())
	drivertest.Must(t, d.Create(t.Context(), rows))
	for _, test := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"outcomes", func(t *testing.T) { testOutcomes(t, d) }},
		{"tables", func(t *testing.T) { testTables(t, d) }},
		{"misuse", func(t *testing.T) { testMisuse(t, d) }},
		{"cut", func(t *testing.T) { testCut(t, d, c.URL()) }},
		{"refusals", func(t *testing.T) { testRefusals(t, c.URL()) }},
		{"frozen", func(t *testing.T) { testFrozen(t, c) }},
		{"restarted", func(t *testing.T) { testRestarted(t, d, c) }},
	} {
		t.Run(test.name, test.run)
	}
}

func session(t *testing.T, d *infinisql.Database) db.RecordSession {
	t.Helper()
	s, err := d.RecordSession(t.Context(), db.SessionOptions{})
	drivertest.Must(t, err)
	drivertest.Close(t, s)
	return s
}

func number(n int64) []db.Value { return []db.Value{{Int: n}} }

// grow adds to the amount of a record in a transaction, and returns how many records it found.
func grow(t *testing.T, s db.RecordSession, amount, id int64) int {
	t.Helper()
	found, err := s.Update(t.Context(), add, number(id), number(amount))
	drivertest.Must(t, err)
	return found
}

// transact runs a change as a transaction.
func transact(t *testing.T, s db.RecordSession, change func() error) {
	t.Helper()
	drivertest.Must(t, s.Begin(t.Context(), false))
	drivertest.Must(t, change())
	drivertest.Must(t, s.Commit(t.Context()))
}

// put inserts a record in a transaction of its own.
func put(t *testing.T, s db.RecordSession, id, amount int64) {
	t.Helper()
	transact(t, s, func() error { return s.Insert(t.Context(), rows, []db.Value{{Int: id}, {Int: amount}, word}) })
}

// find reads the record of an id in a transaction that is open.
func find(ctx context.Context, s db.RecordSession, id int64) (db.Record, error) {
	var found [1]db.Record
	err := s.Find(ctx, rows, number(id), found[:])
	return found[0], err
}

// amount reads the committed amount of a record.
func amount(t *testing.T, s db.RecordSession, id int64) int64 {
	t.Helper()
	drivertest.Must(t, s.Begin(t.Context(), true))
	r, err := find(t.Context(), s, id)
	drivertest.Must(t, err)
	drivertest.Must(t, s.Commit(t.Context()))
	if !r.Found {
		t.Fatalf("no record has the id %d", id)
	}
	return r.Values[1].Int
}

// wants checks the class and the code of an error.
func wants(t *testing.T, what string, err error, class db.Class, code string) {
	t.Helper()
	var e *db.Error
	if !errors.As(err, &e) || e.Class != class || e.Code != code {
		t.Errorf("%s: %v of class %v, want class %v and code %q", what, err, db.ClassOf(err), class, code)
	}
}

func testOutcomes(t *testing.T, d *infinisql.Database) {
	s, other, ctx := session(t, d), session(t, d), t.Context()
	for id := range int64(2) {
		put(t, s, id, -12345)
	}
	drivertest.Must(t, s.Begin(ctx, false))
	if before, err := s.FindAndUpdate(ctx, add, db.Value{}, number(5)); err != nil || !before.Found || before.Values[1].Int != -12345 || string(before.Values[2].Text) != "word" {
		t.Errorf("the record was %+v, %v", before, err)
	}
	if n := grow(t, s, 5, 99); n != 0 {
		t.Errorf("%d records are updated, and the id is not there", n)
	}

	// Each statement refuses a lock of another transaction at once. The whole transaction that met the lock is undone.
	drivertest.Must(t, other.Begin(ctx, false))
	grow(t, other, 7, 1)
	_, err := other.Update(ctx, add, number(0), number(7))
	wants(t, "an update of a locked row", err, db.Aborted, "42000")
	if got := amount(t, other, 1); got != -12345 {
		t.Errorf("a refused transaction has left the amount %d", got)
	}
	if got := amount(t, other, 0); got != -12345 {
		t.Errorf("another transaction reads the amount %d before the commit", got)
	}
	drivertest.Must(t, s.Commit(ctx))
	if got := amount(t, other, 0); got != -12340 {
		t.Errorf("the amount is %d", got)
	}

	// A read before the first write does not lose the write.
	transact(t, s, func() error {
		if _, err := find(ctx, s, 1); err != nil {
			return err
		}
		_, err := s.Update(ctx, add, number(1), number(45))
		return err
	})
	if got := amount(t, other, 1); got != -12300 {
		t.Errorf("after a read and an update the amount is %d", got)
	}

	drivertest.Must(t, s.Begin(ctx, false))
	err = s.Insert(ctx, rows, []db.Value{{}, {}, word})
	var e *db.Error
	if !errors.As(err, &e) || e.Class != db.Aborted || e.Code != "42000" && e.Code != "23000" {
		t.Errorf("a key that is there: %v", err)
	}
	drivertest.Must(t, s.Begin(ctx, false))
	grow(t, s, 1, 0)
	drivertest.Must(t, s.Rollback(ctx))
	if got := amount(t, other, 0); got != -12340 {
		t.Errorf("after the rollback the amount is %d", got)
	}
	calls, err := d.ProcedureSession(ctx, db.SessionOptions{})
	drivertest.Must(t, err)
	drivertest.Close(t, calls)
	if _, err := calls.Call(ctx, absent, number(1)); db.ClassOf(err) != db.Aborted {
		t.Errorf("a procedure that is not there: %v", err)
	}
}

// absent is a procedure that the server does not have.
var absent = &db.Procedure{Name: "Absent", Params: []db.Type{db.Integer}}

// testTables checks that a collection that was dropped is empty when it is created again, and that a scan gives every
// record.
func testTables(t *testing.T, d *infinisql.Database) {
	ctx := t.Context()
	there, err := d.Exists(ctx, &db.Collection{Name: "absent", ID: db.Integer})
	if there || err != nil {
		t.Errorf("a table that is not there: %v, %v", there, err)
	}
	drivertest.Must(t, d.Drop(ctx, rows))
	drivertest.Must(t, d.Create(ctx, rows))
	s, found, sum := session(t, d), 0, int64(0)
	count := func() {
		found, sum = 0, 0
		drivertest.Must(t, s.Scan(ctx, rows, db.Value{Null: true}, 0, func(row []db.Value) error {
			found, sum = found+1, sum+row[0].Int
			return nil
		}))
	}
	if count(); found != 0 {
		t.Errorf("%d records are there after Drop and Create", found)
	}
	transact(t, s, func() error {
		for id := range int64(500) {
			if err := s.Insert(ctx, rows, []db.Value{{Int: id << 40}, {Int: id}, word}); err != nil {
				return err
			}
		}
		return nil
	})
	if count(); found != 500 || sum != 500*499/2<<40 {
		t.Errorf("%d records are there with the sum %d", found, sum)
	}
	if err := d.Define(ctx, absent); db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "cannot load") {
		t.Errorf("a library that is not there: %v", err)
	}
	info, err := d.Info(ctx)
	if err != nil || info.Name != "InfiniSQL" || len(info.Settings) != 2 {
		t.Errorf("it is %+v, %v", info, err)
	}
	if _, err := d.Claim("serializable"); err == nil {
		t.Error("it has more than one isolation")
	}
}

func testMisuse(t *testing.T, d *infinisql.Database) {
	s, ctx := session(t, d), t.Context()
	wants(t, "COMMIT without BEGIN", s.Commit(ctx), db.Fatal, "")
	_, err := s.Update(ctx, add, number(1), number(1))
	wants(t, "a statement without BEGIN", err, db.Fatal, "")
	drivertest.Must(t, s.Rollback(ctx))
	drivertest.Must(t, s.Begin(ctx, false))
	wants(t, "BEGIN twice", s.Begin(ctx, false), db.Fatal, "")
}

// testCut checks connections that end. If a connection ends during COMMIT, the outcome is unknown, whether the server
// received COMMIT or not. If it ends before, the transaction is surely not applied.
func testCut(t *testing.T, direct *infinisql.Database, address string) {
	var c drivertest.Cutter
	d := drivertest.Open(t, infinisql.Open, c.Stand(t, address))
	observer, ctx := session(t, direct), t.Context()
	put(t, observer, 7, 0)
	for when, moved := range map[drivertest.Moment][]int64{drivertest.BeforeRequest: {0}, drivertest.WithRequest: {0, 1}, drivertest.BeforeAnswer: {1}} {
		s, before := session(t, d), amount(t, observer, 7)
		drivertest.Must(t, s.Begin(ctx, false))
		grow(t, s, 1, 7)
		c.Cut(when, 1)
		err := s.Commit(ctx)
		c.Rest()
		wants(t, "COMMIT", err, db.Unknown, "")
		wants(t, "a broken session", s.Begin(ctx, false), db.Unavailable, "")
		after := seen(t, observer, 7) - before
		if found := fmt.Sprint(moved); !strings.Contains(found, fmt.Sprint(after)) {
			t.Errorf("cut %d: the amount grew by %d, want one of %v", when, after, moved)
		}
		drivertest.Must(t, s.Reset(ctx))
		transact(t, s, func() error { grow(t, s, 1, 7); return nil })
	}
	s, before := session(t, d), amount(t, observer, 7)
	drivertest.Must(t, s.Begin(ctx, false))
	grow(t, s, 1, 7)
	c.Cut(drivertest.BeforeAnswer, 1)
	_, err := find(ctx, s, 7)
	c.Rest()
	wants(t, "a statement", err, db.Unavailable, "")
	if after := seen(t, observer, 7); after != before {
		t.Errorf("cut before COMMIT: the amount was %d and is %d", before, after)
	}
}

// seen reads the amount of a record after the lock of an interrupted transaction is gone.
func seen(t *testing.T, s db.RecordSession, id int64) int64 {
	t.Helper()
	drivertest.Must(t, wait.Retry(clustertest.Within(t, 10*time.Second), func() error {
		if err := s.Begin(t.Context(), false); err != nil {
			return err
		}
		_, err := s.Update(t.Context(), add, number(id), number(0))
		return errors.Join(err, s.Rollback(t.Context()))
	}))
	return amount(t, s, id)
}

// testRefusals checks that a refused client gets an error of one sentence within a short time.
func testRefusals(t *testing.T, address string) {
	u, err := url.Parse(address)
	drivertest.Must(t, err)
	other := drivertest.Serve(t, func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	_, port, _ := net.SplitHostPort(other)
	admin := "?admin_port=" + u.Query().Get("admin_port")
	for _, test := range []struct {
		url, says string
		class     db.Class
	}{
		{"infinisql://benchmark:s3cr3t@" + u.Host + "/benchmark" + admin, "check the user and the password", db.Fatal},
		{"infinisql://benchmark:s3cr3t@" + u.Host + "/benchmark?admin_port=" + port, "check that admin_port", db.Unavailable},
		{"infinisql://benchmark:s3cr3t@" + u.Host + "/benchmark?admin_port=1", "connection refused", db.Unavailable},
		{"infinisql://benchmark:stroppy@127.0.0.1:1/benchmark" + admin, "connection refused", db.Unavailable},
	} {
		began := time.Now()
		_, err := infinisql.Open(t.Context(), test.url)
		if err == nil || db.ClassOf(err) != test.class || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", test.url, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s is refused after %v", test.url, took)
		}
	}
}

// testFrozen checks that a call without an answer ends within the time limit of an answer, and that a context ends a
// statement.
func testFrozen(t *testing.T, c *infinisqlcluster.Cluster) {
	d := drivertest.Open(t, infinisql.Open, c.URL()+"&answer_timeout=700ms")
	s, other, ctx := session(t, d), session(t, d), t.Context()
	for id, one := range []db.RecordSession{s, other} {
		drivertest.Must(t, one.Begin(ctx, false))
		grow(t, one, 0, int64(id)<<40)
	}
	node := c.Nodes()[0].(cluster.LocalNode)
	drivertest.Must(t, node.Pause(ctx))
	began := time.Now()
	wants(t, "COMMIT", s.Commit(ctx), db.Unknown, "")
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := find(short, other, 1); !errors.Is(err, context.DeadlineExceeded) || db.ClassOf(err) != db.Unavailable {
		t.Errorf("a statement whose context ends: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("answers are given up after %v", took)
	}
	drivertest.Must(t, node.Resume(ctx))
	drivertest.Must(t, s.Reset(ctx))
	drivertest.Must(t, s.Scan(ctx, rows, db.Value{Null: true}, 0, func([]db.Value) error { return nil }))
}

// testRestarted checks that a restarted server has lost everything, and that no statement counts as applied there.
func testRestarted(t *testing.T, d *infinisql.Database, c *infinisqlcluster.Cluster) {
	s, ctx := session(t, d), clustertest.Within(t, clustertest.WaitLimit)
	node := c.Nodes()[0].(cluster.LocalNode)
	drivertest.Must(t, node.Kill(ctx))
	drivertest.Must(t, s.Begin(ctx, false))
	_, err := s.Update(ctx, add, number(1), number(1))
	wants(t, "a write to a dead server", err, db.Unavailable, "")
	wants(t, "a reset", s.Reset(ctx), db.Unavailable, "")
	drivertest.Must(t, node.Restart(ctx))
	drivertest.Must(t, s.Reset(ctx))
	drivertest.Must(t, s.Begin(ctx, false))
	_, err = s.Update(ctx, add, number(1), number(1))
	wants(t, "a table that was lost", err, db.Aborted, "42704")
	if there, err := d.Exists(ctx, rows); there || err != nil {
		t.Errorf("the table is there: %v, %v", there, err)
	}
	drivertest.Must(t, d.Create(ctx, rows))
}
