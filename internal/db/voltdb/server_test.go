package voltdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	voltdbcluster "stroppy/internal/cluster/voltdb"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/voltdb"
)

// start starts a VoltDB alone, with security.
func start(t *testing.T) *voltdbcluster.Cluster {
	t.Helper()
	c, err := voltdbcluster.Starter(voltdb.Hosts)(clustertest.Within(t, clustertest.WaitLimit), cluster.Options{
		Nodes: 1, InMemory: true, Loopback: true, Unsupervised: true,
		Params: url.Values{"jars": {os.Getenv(voltdbcluster.Variable)}, "security": {"on"}},
	})
	clustertest.Need(t, "voltdb", err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	return c
}

func procedure(name, body string, params ...db.Type) *db.Procedure {
	return db.NewProcedure(name, params, nil, map[db.Language]string{db.VoltSQL: "CREATE PROCEDURE PROCEDURE_NAME " + body})
}

// What the tests call. The sum must stay within BIGINT, and the row that is asked for be there.
var (
	put   = procedure("put", "AS INSERT INTO driver_test (id, amount, word) VALUES (?, ?, ?)", db.Integer, db.Decimal, db.Text)
	read  = procedure("read", "AS SELECT id, amount, word FROM driver_test WHERE id = ?", db.Integer)
	check = procedure("check", "AS BEGIN SELECT 9223372036854775807 + ? FROM driver_test WHERE id = 1; SELECT 1 / COUNT(*) FROM driver_test WHERE id = ?; END", db.Integer, db.Integer)
)

func values(id, amount int64, word string) []db.Value {
	return []db.Value{{Int: id}, {Int: amount}, {Text: []byte(word)}}
}

// TestServer asks everything of one real server.
func TestServer(t *testing.T) {
	s := start(t)
	// A login takes more than the cluster's second where the machine has much else to do.
	patient := strings.Replace(s.URL(), "connect_timeout=1s", "connect_timeout=20s", 1)
	d := drivertest.Open(t, voltdb.Open, patient)
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	drivertest.Must(t, d.Exec(ctx, "CREATE TABLE driver_test (id BIGINT NOT NULL, amount DECIMAL NOT NULL, word VARCHAR(64 BYTES), PRIMARY KEY (id))", "PARTITION TABLE driver_test ON COLUMN id"))
	drivertest.Must(t, d.Define(ctx, put, read, check))
	drivertest.Must(t, d.Define(ctx, put, read, check)) // which are there
	t.Run("outcomes", func(t *testing.T) { testOutcomes(t, d) })
	t.Run("streams", func(t *testing.T) { testStreams(t, d) })
	t.Run("cut", func(t *testing.T) { testCut(t, d, patient, false) })
	t.Run("cut a shared connection", func(t *testing.T) { testCut(t, d, patient, true) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, s.URL()) })
	t.Run("frozen", func(t *testing.T) { testFrozen(t, s, patient) })
}

func session(t *testing.T, d *voltdb.Database) db.ProcedureSession {
	t.Helper()
	s, err := d.ProcedureSession(t.Context(), db.SessionOptions{})
	drivertest.Must(t, err)
	drivertest.Close(t, s)
	return s
}

// called is a call as tests hold it.
func called(t *testing.T, s db.ProcedureSession, class db.Class, kind db.ConstraintKind, p *db.Procedure, args ...db.Value) {
	t.Helper()
	if _, err := s.Call(t.Context(), p, args); err == nil || db.ClassOf(err) != class || db.ConstraintOf(err) != kind {
		t.Errorf("%s is %v of kind %d: %v", p.Name, db.ClassOf(err), db.ConstraintOf(err), err)
	}
}

func testOutcomes(t *testing.T, d *voltdb.Database) {
	s := session(t, d)
	if _, err := s.Call(t.Context(), put, values(1, -12345, "one")); err != nil {
		t.Fatal(err)
	}
	r, err := s.Call(t.Context(), read, []db.Value{{Int: 1}})
	if err != nil || r.Rows() != 1 || r.Row(0)[1].Int != -12345 || string(r.Row(0)[2].Text) != "one" {
		t.Fatalf("reads %+v, %v", r, err)
	}
	called(t, s, db.Constraint, db.UniqueKey, put, values(1, 1, "again")...)
	called(t, s, db.Constraint, db.NotNull, put, db.Value{Int: 2}, db.Value{Null: true}, db.Value{Null: true})
	called(t, s, db.Constraint, db.CheckFailed, check, db.Value{Int: 1}, db.Value{Int: 1})
	called(t, s, db.Constraint, db.ForeignKey, check, db.Value{Int: 0}, db.Value{Int: 99})
	called(t, s, db.Fatal, 0, read)
	called(t, s, db.Aborted, 0, procedure("absent", "AS SELECT 1", db.Integer), db.Value{Int: 1})
	info, err := d.Info(t.Context())
	if err != nil || info.Name != "VoltDB" || !strings.HasPrefix(info.Version, "10.") {
		t.Errorf("it is %+v, %v", info, err)
	}
	if bytes, err := d.Footprint(t.Context()); err != nil || bytes <= 0 {
		t.Errorf("its footprint is %d, %v", bytes, err)
	}
	testStatus(t, d)
	if _, err := d.Claim("repeatable read"); err == nil {
		t.Error("it has more than one isolation")
	}
}

// testStatus: a sample says what each node does.
func testStatus(t *testing.T, d *voltdb.Database) {
	sample, err := d.Monitor().Sample(t.Context())
	text := sample.State
	drivertest.Must(t, err)
	var status map[string][]map[string]any
	drivertest.Must(t, json.Unmarshal(text, &status))
	for part, column := range map[string]string{"nodes": "clustersafety", "memory": "rss", "cpu": "percent_used", "latency": "p99", "procedureprofile": "invocations", "topo": "leader"} {
		if rows := status[part]; len(rows) == 0 || rows[0][column] == nil {
			t.Errorf("of %s it says %v", part, rows)
		}
	}
	if len(text) > 8<<10 {
		t.Errorf("a sample of one node has %d bytes", len(text))
	}
	t.Logf("%s", text)
}

// testStreams: many sessions on one connection get each its own answers.
func testStreams(t *testing.T, d *voltdb.Database) {
	list, err := d.Streams(t.Context(), 50, db.SessionOptions{})
	drivertest.Must(t, err)
	var all sync.WaitGroup
	for i, s := range list {
		all.Go(func() {
			defer s.Close()
			for n := range 20 {
				id := int64(1000 + 100*i + n)
				if _, err := s.Call(t.Context(), put, values(id, id, "streams")); err != nil {
					t.Error(err)
				}
				r, err := s.Call(t.Context(), read, []db.Value{{Int: id}})
				if err != nil || r.Rows() != 1 || r.Row(0)[0].Int != id || r.Row(0)[1].Int != id {
					t.Errorf("stream %d reads %+v, %v", i, r, err)
				}
			}
		})
	}
	all.Wait()
}

// testCut: a connection that ends while a call is under way leaves the outcome unknown,
// whether the server got it or not.
func testCut(t *testing.T, direct *voltdb.Database, address string, shared bool) {
	var c drivertest.Cutter
	d := drivertest.Open(t, voltdb.Open, c.Stand(t, address))
	observer := session(t, direct)
	id := int64(10)
	if shared {
		id = 20
	}
	for when, applied := range map[drivertest.Moment]int{drivertest.BeforeRequest: 0, drivertest.WithRequest: -1, drivertest.BeforeAnswer: 1} {
		var s db.ProcedureSession
		if shared {
			list, err := d.Streams(t.Context(), 1, db.SessionOptions{})
			drivertest.Must(t, err)
			s = list[0]
		} else {
			s = session(t, d)
		}
		id++
		c.Cut(when, math.MaxInt)
		called(t, s, db.Unknown, 0, put, values(id, 1, "cut")...)
		called(t, s, db.Unavailable, 0, put, values(id, 1, "before the reset")...)
		c.Rest()
		drivertest.Must(t, s.Reset(t.Context()))
		if _, err := s.Call(t.Context(), read, []db.Value{{Int: id}}); err != nil {
			t.Errorf("after the reset: %v", err)
		}
		time.Sleep(50 * time.Millisecond) // what the server got it has carried out then
		r, err := observer.Call(t.Context(), read, []db.Value{{Int: id}})
		if err != nil || applied >= 0 && r.Rows() != applied {
			t.Errorf("cut %d: %d rows, %v, want %d", when, r.Rows(), err, applied)
		}
		drivertest.Must(t, s.Close())
	}
}

// testRefusals: whom no VoltDB lets in gets one sentence, soon.
func testRefusals(t *testing.T, address string) {
	u, err := url.Parse(address)
	drivertest.Must(t, err)
	good := u.Host
	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	drivertest.Must(t, err)
	defer silent.Close()
	other := drivertest.Serve(t, func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	for _, test := range []struct {
		url, says string
		class     db.Class
	}{
		{"voltdb://stroppy:s3cr3t@" + good, `wrong user or password: nobody is let in as user "stroppy" with this password`, db.Fatal},
		{"voltdb://" + good, "nobody is let in without a user", db.Fatal},
		{"voltdb://" + other, "is no VoltDB server", db.Fatal},
		{"voltdb://" + silent.Addr().String() + "?connect_timeout=300ms", "no answer within 300ms", db.Unavailable},
		{"voltdb://127.0.0.1:1", "connection refused", db.Unavailable},
	} {
		began := time.Now()
		_, err := voltdb.Open(t.Context(), test.url)
		if err == nil || db.ClassOf(err) != test.class || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", test.url, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s is refused after %v", test.url, took)
		}
	}
}

// testFrozen: an answer that does not come leaves the outcome unknown within the time for
// one, on a connection of its own and on a shared one, and a context ends a call.
func testFrozen(t *testing.T, s *voltdbcluster.Cluster, address string) {
	d := drivertest.Open(t, voltdb.Open, address+"&answer_timeout=700ms")
	alone := session(t, d)
	list, err := d.Streams(t.Context(), 2, db.SessionOptions{})
	drivertest.Must(t, err)
	node := s.Nodes()[0].(cluster.LocalNode)
	drivertest.Must(t, node.Pause(t.Context()))
	began := time.Now()
	called(t, alone, db.Unknown, 0, put, values(30, 1, "frozen")...)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := list[1].Call(ctx, put, values(32, 1, "frozen")); !errors.Is(err, context.DeadlineExceeded) || db.ClassOf(err) != db.Unknown {
		t.Errorf("a call whose context ends: %v", err)
	}
	called(t, list[0], db.Unknown, 0, put, values(31, 1, "frozen")...)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("answers are given up after %v", took)
	}
	drivertest.Must(t, node.Resume(t.Context()))
	for _, s := range []db.ProcedureSession{alone, list[0], list[1]} {
		drivertest.Must(t, s.Reset(t.Context()))
		if _, err := s.Call(t.Context(), read, []db.Value{{Int: 1}}); err != nil {
			t.Errorf("after the reset: %v", err)
		}
	}
	drivertest.Must(t, errors.Join(list[0].Close(), list[1].Close()))
}
