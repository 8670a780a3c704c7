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
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/infinisql"
)

// rows is the table of the tests, and their statements.
var (
	rows = &db.Table{Name: "driver_test", Columns: []db.TableColumn{{Name: "id", Type: db.Integer}, {Name: "amount", Type: db.Integer}, {Name: "word", Type: db.Text, Length: 12}}}

	put  = &db.Statement{SQL: "INSERT INTO driver_test VALUES ($1, $2, $3)", Params: []db.Type{db.Integer, db.Integer, db.Text}}
	add  = &db.Statement{SQL: "UPDATE driver_test SET amount = amount + $1 WHERE id = $2", Params: []db.Type{db.Integer, db.Integer}, Counted: true}
	read = &db.Statement{SQL: "SELECT amount, word FROM driver_test WHERE id = $1", Params: []db.Type{db.Integer}, Columns: []db.Type{db.Integer, db.Text}}
	all  = &db.Statement{SQL: "SELECT id, amount FROM driver_test", Columns: []db.Type{db.Integer, db.Integer}}
)

// TestServer asks everything of one real server.
func TestServer(t *testing.T) {
	c, err := infinisqlcluster.Starter(infinisql.Prepare)(clustertest.Within(t, clustertest.WaitLimit), cluster.Options{Nodes: 1, InMemory: true, Loopback: true})
	clustertest.Need(t, "InfiniSQL", err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	d := drivertest.Open(t, infinisql.Open, c.URL())
	drivertest.Must(t, d.MakeTables(t.Context(), rows))
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

func session(t *testing.T, d *infinisql.Database) db.TableSession {
	t.Helper()
	s, err := d.Session(t.Context(), db.SessionOptions{})
	drivertest.Must(t, err)
	drivertest.Close(t, s)
	return s
}

func numbers(list ...int64) (values []db.Value) {
	for _, n := range list {
		values = append(values, db.Value{Int: n})
	}
	return values
}

// do is a statement of a transaction that must succeed.
func do(t *testing.T, s db.TableSession, statement *db.Statement, args ...db.Value) *db.Result {
	t.Helper()
	r, err := s.Do(t.Context(), statement, args)
	drivertest.Must(t, err)
	return s.Result(r)
}

// transact runs statements as a transaction of one argument list each.
func transact(t *testing.T, s db.TableSession, statement *db.Statement, args ...db.Value) {
	t.Helper()
	drivertest.Must(t, s.Begin(t.Context(), false))
	do(t, s, statement, args...)
	drivertest.Must(t, s.Commit(t.Context()))
}

// amount reads the amount of a row outside a transaction.
func amount(t *testing.T, s db.TableSession, id int64) (amount int64) {
	t.Helper()
	found := 0
	drivertest.Must(t, s.Query(t.Context(), read, numbers(id), func(row []db.Value) error {
		amount = row[0].Int
		found++
		return nil
	}))
	if found != 1 {
		t.Errorf("%d rows have the id %d", found, id)
	}
	return amount
}

// wants holds an error to its class and code.
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
		transact(t, s, put, db.Value{Int: id}, db.Value{Int: -12345}, db.Value{Text: []byte("word")})
	}
	drivertest.Must(t, s.Begin(ctx, false))
	if r := do(t, s, add, numbers(5, 0)...); r.Affected != 1 {
		t.Errorf("%d rows are updated", r.Affected)
	}
	if r := do(t, s, read, numbers(0)...); r.Rows() != 1 || r.Row(0)[0].Int != -12340 || string(r.Row(0)[1].Text) != "word" {
		t.Errorf("reads %+v", r)
	}
	if r := do(t, s, add, numbers(5, 99)...); r.Affected != 0 {
		t.Errorf("%d rows are updated of one that is not there", r.Affected)
	}

	// A lock that somebody else has is refused at once, by whatever statement, and all of the
	// transaction that met it is undone.
	drivertest.Must(t, other.Begin(ctx, false))
	do(t, other, add, numbers(7, 1)...)
	_, err := other.Do(ctx, add, numbers(7, 0))
	wants(t, "an update of a locked row", err, db.Aborted, "42000")
	drivertest.Must(t, other.Begin(ctx, false))
	_, err = other.Do(ctx, read, numbers(0))
	wants(t, "a read of a locked row", err, db.Aborted, "55P03")
	wants(t, "a query of a locked row", other.Query(ctx, read, numbers(0), nil), db.Aborted, "55P03")
	if got := amount(t, other, 1); got != -12345 {
		t.Errorf("a refused transaction has left the amount %d", got)
	}
	drivertest.Must(t, s.Commit(ctx))
	if got := amount(t, other, 0); got != -12340 {
		t.Errorf("the amount is %d", got)
	}

	drivertest.Must(t, s.Begin(ctx, false))
	_, err = s.Do(ctx, put, append(numbers(0, 1), db.Value{Text: []byte("again")}))
	var e *db.Error
	if !errors.As(err, &e) || e.Class != db.Aborted || e.Code != "42000" && e.Code != "23000" {
		t.Errorf("a key that is there: %v", err)
	}
	drivertest.Must(t, s.Begin(ctx, false))
	_, err = s.Do(ctx, &db.Statement{SQL: "SELECT a + FROM driver_test"}, nil)
	wants(t, "a statement that is none", err, db.Fatal, "42601")
	drivertest.Must(t, s.Begin(ctx, false))
	do(t, s, add, numbers(1, 0)...)
	drivertest.Must(t, s.Rollback(ctx))
	if got := amount(t, other, 0); got != -12340 {
		t.Errorf("after the rollback the amount is %d", got)
	}
	if _, err := s.Call(ctx, &db.OwnProcedure{Name: "Absent", Params: []db.Type{db.Integer}}, numbers(1)); db.ClassOf(err) != db.Aborted {
		t.Errorf("a procedure that is not there: %v", err)
	}
}

// testTables: tables take the place of those that were there, and a query gives every row.
func testTables(t *testing.T, d *infinisql.Database) {
	ctx := t.Context()
	there, err := d.Exists(ctx, &db.Table{Name: "absent", Columns: rows.Columns})
	if there || err != nil {
		t.Errorf("a table that is not there: %v, %v", there, err)
	}
	drivertest.Must(t, d.MakeTables(ctx, rows))
	s, found, sum := session(t, d), 0, int64(0)
	count := func() {
		found, sum = 0, 0
		drivertest.Must(t, s.Query(ctx, all, nil, func(row []db.Value) error {
			found, sum = found+1, sum+row[0].Int
			return nil
		}))
	}
	if count(); found != 0 {
		t.Errorf("%d rows are there after MakeTables", found)
	}
	drivertest.Must(t, s.Begin(ctx, false))
	for id := range int64(500) {
		do(t, s, put, db.Value{Int: id << 40}, db.Value{Int: id}, db.Value{Text: []byte("w")})
	}
	drivertest.Must(t, s.Commit(ctx))
	if count(); found != 500 || sum != 500*499/2<<40 {
		t.Errorf("%d rows are there with the sum %d", found, sum)
	}
	if err := d.Define(ctx, &db.OwnProcedure{Name: "Absent", Params: []db.Type{db.Integer}}); db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "cannot load") {
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
	_, err := s.Do(ctx, add, numbers(1, 1))
	wants(t, "a statement without BEGIN", err, db.Fatal, "")
	drivertest.Must(t, s.Rollback(ctx))
	drivertest.Must(t, s.Begin(ctx, false))
	wants(t, "BEGIN twice", s.Begin(ctx, false), db.Fatal, "")
	wants(t, "a query in a transaction", s.Query(ctx, all, nil, nil), db.Fatal, "")
}

// testCut: a connection that ends while COMMIT is under way leaves the outcome unknown,
// whether the server got it or not; one that ends before is surely not applied.
func testCut(t *testing.T, direct *infinisql.Database, address string) {
	var c drivertest.Cutter
	d := drivertest.Open(t, infinisql.Open, c.Stand(t, address))
	observer, ctx := session(t, direct), t.Context()
	transact(t, observer, put, db.Value{Int: 7}, db.Value{Int: 0}, db.Value{Text: []byte("w")})
	for when, moved := range map[drivertest.Moment][]int64{drivertest.BeforeRequest: {0}, drivertest.WithRequest: {0, 1}, drivertest.BeforeAnswer: {1}} {
		s, before := session(t, d), amount(t, observer, 7)
		drivertest.Must(t, s.Begin(ctx, false))
		do(t, s, add, numbers(1, 7)...)
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
		transact(t, s, add, numbers(1, 7)...)
	}
	s, before := session(t, d), amount(t, observer, 7)
	drivertest.Must(t, s.Begin(ctx, false))
	do(t, s, add, numbers(1, 7)...)
	c.Cut(drivertest.BeforeAnswer, 1)
	_, err := s.Do(ctx, read, numbers(7))
	c.Rest()
	wants(t, "a statement", err, db.Unavailable, "")
	if after := seen(t, observer, 7); after != before {
		t.Errorf("cut before COMMIT: the amount was %d and is %d", before, after)
	}
}

// seen reads the amount of a row when the lock of a transaction that was cut is gone.
func seen(t *testing.T, s db.TableSession, id int64) int64 {
	t.Helper()
	drivertest.Must(t, cluster.Retry(clustertest.Within(t, 10*time.Second), func() error {
		return s.Query(t.Context(), read, numbers(id), func([]db.Value) error { return nil })
	}))
	return amount(t, s, id)
}

// testRefusals: whom no InfiniSQL lets in gets one sentence, soon.
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

// testFrozen: an answer that does not come ends within the time for one, and a context ends
// a statement.
func testFrozen(t *testing.T, c *infinisqlcluster.Cluster) {
	d := drivertest.Open(t, infinisql.Open, c.URL()+"&answer_timeout=700ms")
	s, other, ctx := session(t, d), session(t, d), t.Context()
	for _, one := range []db.TableSession{s, other} {
		drivertest.Must(t, one.Begin(ctx, false))
	}
	node := c.Nodes()[0].(cluster.LocalNode)
	drivertest.Must(t, node.Pause(ctx))
	began := time.Now()
	wants(t, "COMMIT", s.Commit(ctx), db.Unknown, "")
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := other.Do(short, read, numbers(1)); !errors.Is(err, context.DeadlineExceeded) || db.ClassOf(err) != db.Unavailable {
		t.Errorf("a statement whose context ends: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("answers are given up after %v", took)
	}
	drivertest.Must(t, node.Resume(ctx))
	drivertest.Must(t, s.Reset(ctx))
	drivertest.Must(t, s.Query(ctx, all, nil, func([]db.Value) error { return nil }))
}

// testRestarted: a server that was restarted has lost everything, which no statement is
// believed to have changed.
func testRestarted(t *testing.T, d *infinisql.Database, c *infinisqlcluster.Cluster) {
	s, ctx := session(t, d), clustertest.Within(t, clustertest.WaitLimit)
	node := c.Nodes()[0].(cluster.LocalNode)
	drivertest.Must(t, node.Kill(ctx))
	wants(t, "BEGIN on a dead server", s.Begin(ctx, false), db.Unavailable, "")
	wants(t, "a reset", s.Reset(ctx), db.Unavailable, "")
	drivertest.Must(t, node.Restart(ctx))
	drivertest.Must(t, s.Reset(ctx))
	drivertest.Must(t, s.Begin(ctx, false))
	_, err := s.Do(ctx, add, numbers(1, 1))
	wants(t, "a table that was lost", err, db.Aborted, "42704")
	if there, err := d.Exists(ctx, rows); there || err != nil {
		t.Errorf("the table is there: %v, %v", there, err)
	}
	drivertest.Must(t, d.MakeTables(ctx, rows))
}
