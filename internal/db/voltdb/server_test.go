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
	"slices"
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

// The collections of the tests. The second has lists, which copy versions from the first.
var (
	accounts = &db.Collection{Name: "driver_test", ID: db.Integer, Fields: []db.Field{
		{Name: "amount", Type: db.Decimal, Additive: true, NonNegative: true}, {Name: "version", Type: db.Integer, Additive: true}, {Name: "word", Type: db.Text},
	}}
	journal = &db.Collection{Name: "driver_journal", ID: db.Integer, List: "legs", From: accounts, Copied: 2, Items: []db.Field{
		{Name: "account", Type: db.Integer}, {Name: "delta", Type: db.Decimal}, {Name: "version", Type: db.Integer},
	}}
	grouped   = &db.Collection{Name: "driver_grouped", ID: db.Text, Group: 2, Fields: []db.Field{{Name: "word", Type: db.Text}}}
	undefined = &db.Collection{Name: "driver_facts", ID: db.Text, Fields: []db.Field{{Name: "word", Type: db.Text}}}

	withdraw = &db.Update{Collection: accounts, AtLeast: 1, Add: []int{1, 2}}
	rename   = &db.Update{Collection: accounts, Set: []int{3}}
	extend   = &db.Update{Collection: accounts, Append: []int{3}}
	view     = &db.Update{Collection: accounts}
)

func values(id, amount int64, word string) []db.Value {
	return []db.Value{{Int: id}, {Int: amount}, {Int: 1}, {Text: []byte(word)}}
}

// TestSessionsWorkOnRealServer checks all functions of the driver on one real server.
func TestSessionsWorkOnRealServer(t *testing.T) {
	s := start(t)
	// On a busy machine a login takes longer than the cluster's limit of one second.
	patient := strings.Replace(s.URL(), "connect_timeout=1s", "connect_timeout=20s", 1)
	d := drivertest.Open(t, voltdb.Open, patient)
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	drivertest.Must(t, d.Declare(accounts, journal, grouped))
	for _, c := range []*db.Collection{accounts, accounts, journal, undefined} {
		drivertest.Must(t, d.Create(ctx, c))
		if there, err := d.Exists(ctx, c); !there || err != nil {
			t.Fatalf("%s is there: %t, %v", c.Name, there, err)
		}
	}
	t.Run("outcomes", func(t *testing.T) { testOutcomes(t, d) })
	t.Run("records", func(t *testing.T) { testRecords(t, d) })
	t.Run("lists", func(t *testing.T) { testLists(t, d) })
	t.Run("groups", func(t *testing.T) { testGroups(t, d) })
	t.Run("drop", func(t *testing.T) { testDrop(t, d) })
	t.Run("streams", func(t *testing.T) { testStreams(t, d) })
	t.Run("cut", func(t *testing.T) { testCut(t, d, patient, false) })
	t.Run("cut a shared connection", func(t *testing.T) { testCut(t, d, patient, true) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, s.URL()) })
	t.Run("frozen", func(t *testing.T) { testFrozen(t, s, patient) })
}

func session(t *testing.T, d *voltdb.Database) db.RecordSession {
	t.Helper()
	s, err := d.RecordSession(t.Context(), db.SessionOptions{})
	drivertest.Must(t, err)
	drivertest.Close(t, s)
	return s
}

// transact carries out one transaction.
func transact(t *testing.T, s db.RecordSession, steps ...func() error) error {
	return transactWithin(t.Context(), s, steps...)
}

func transactWithin(ctx context.Context, s db.RecordSession, steps ...func() error) error {
	err := s.Begin(ctx, false)
	for _, step := range steps {
		if err == nil {
			err = step()
		}
	}
	if err == nil {
		err = s.Commit(ctx)
	}
	return err
}

// put inserts an account.
func put(s db.RecordSession, id, amount int64, word string) func() error {
	return func() error { return s.Insert(context.Background(), accounts, values(id, amount, word)) }
}

// change changes an account, and returns it as it was before.
func change(s db.RecordSession, u *db.Update, id int64, before *db.Record, args ...db.Value) func() error {
	return func() (err error) {
		*before, err = s.FindAndUpdate(context.Background(), u, db.Value{Int: id}, args)
		return err
	}
}

// read finds accounts.
func read(t *testing.T, s db.RecordSession, ids ...int64) []db.Record {
	t.Helper()
	asked, found := make([]db.Value, len(ids)), make([]db.Record, len(ids))
	for i, id := range ids {
		asked[i].Int = id
	}
	drivertest.Must(t, s.Begin(t.Context(), true))
	drivertest.Must(t, s.Find(t.Context(), accounts, asked, found))
	drivertest.Must(t, s.Commit(t.Context()))
	return found
}

// refused reports an error of another class or kind.
func refused(t *testing.T, err error, class db.Class, kind db.ConstraintKind) {
	t.Helper()
	if err == nil || db.ClassOf(err) != class || db.ConstraintOf(err) != kind {
		t.Errorf("the error is %v of kind %d: %v", db.ClassOf(err), db.ConstraintOf(err), err)
	}
}

func minus(cents int64) []db.Value { return []db.Value{{Int: cents}, {Int: -cents}, {Int: 1}} }

func testOutcomes(t *testing.T, d *voltdb.Database) {
	s := session(t, d)
	drivertest.Must(t, transact(t, s, put(s, 1, 12345, "it's one"), put(s, 2, 5, "two")))
	if r := read(t, s, 1); !r[0].Found || r[0].Values[1].Int != 12345 || string(r[0].Values[3].Text) != "it's one" {
		t.Fatalf("reads %+v", r)
	}
	if r := read(t, s, 2, 99, 1); !r[0].Found || r[1].Found || r[0].Values[1].Int != 5 || r[2].Values[1].Int != 12345 {
		t.Fatalf("reads %+v", r)
	}
	var before, ignored db.Record
	found := make([]db.Record, 1)
	drivertest.Must(t, transact(t, s, change(s, withdraw, 2, &before, minus(4)...)))
	if before.Values[1].Int != 5 || before.Values[2].Int != 1 || string(before.Values[3].Text) != "two" {
		t.Errorf("before it was %+v", before)
	}
	refused(t, transact(t, s, put(s, 3, 1, "not kept"), put(s, 1, 1, "again")), db.Constraint, db.UniqueKey)
	refused(t, transact(t, s, put(s, 3, 1, "not kept"), change(s, withdraw, 2, &before, minus(2)...)), db.Constraint, db.CheckFailed)
	refused(t, transact(t, s, put(s, 3, 1, "not kept"), change(s, withdraw, 99, &before, minus(0)...)), db.Constraint, db.ForeignKey)
	absent := func() error {
		_, err := s.Update(t.Context(), rename, []db.Value{{Int: 99}}, []db.Value{{Text: []byte("nobody")}})
		return err
	}
	refused(t, transact(t, s, absent), db.Constraint, db.ForeignKey)
	refused(t, transact(t, s, put(s, 3, 1, "not kept"), absent), db.Constraint, db.ForeignKey)
	if r := read(t, s, 3, 2); r[0].Found || r[1].Values[1].Int != 1 || r[1].Values[2].Int != 2 {
		t.Errorf("what was refused left %+v", r)
	}
	var absents db.Record
	more := db.Value{Text: []byte(" more")}
	drivertest.Must(t, transact(t, s, change(s, extend, 2, &before, more), change(s, view, 1, &ignored), change(s, view, 99, &absents)))
	if string(before.Values[3].Text) != "two" || string(ignored.Values[3].Text) != "it's one" || !absents.Values[3].Null {
		t.Errorf("the commit has read %+v, %+v and %+v", before, ignored, absents)
	}
	drivertest.Must(t, transact(t, s, func() error { return s.Find(t.Context(), accounts, []db.Value{{Int: 2}}, found) }, change(s, extend, 2, &before, more)))
	if r := read(t, s, 2); string(r[0].Values[3].Text) != "two more more" {
		t.Errorf("two texts were put behind %+v", r)
	}
	refused(t, transact(t, s, change(s, extend, 99, &before, more)), db.Constraint, db.ForeignKey)
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

// testStatus checks that a sample has the state of each node.
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

// testRecords checks that a commit is refused if another transaction has changed a record that was read.
func testRecords(t *testing.T, d *voltdb.Database) {
	s, other := session(t, d), session(t, d)
	drivertest.Must(t, transact(t, s, put(s, 50, 100, "fifty"), put(s, 51, 100, "next")))
	found := make([]db.Record, 1)
	find := func(id int64) func() error {
		return func() error { return s.Find(t.Context(), accounts, []db.Value{{Int: id}}, found) }
	}
	meanwhile := func(step func() error) func() error {
		return func() error { return transact(t, other, step) }
	}
	var before, ignored db.Record
	refused(t, transact(t, s, find(50), meanwhile(change(other, withdraw, 50, &ignored, minus(1)...)), change(s, withdraw, 50, &before, minus(1)...)), db.Aborted, 0)
	refused(t, transact(t, s, find(52), meanwhile(put(other, 52, 1, "new")), put(s, 53, 1, "not kept")), db.Aborted, 0)
	refused(t, transact(t, s, find(50), find(51), meanwhile(change(other, withdraw, 51, &ignored, minus(1)...))), db.Aborted, 0)
	drivertest.Must(t, transact(t, s, find(51), meanwhile(change(other, withdraw, 51, &ignored, minus(1)...)))) // one read is one moment
	drivertest.Must(t, transact(t, s, find(50), change(s, withdraw, 50, &before, minus(9)...), find(50)))
	if before.Values[1].Int != 99 || found[0].Values[1].Int != 90 {
		t.Errorf("before it was %+v, and then %+v", before, found[0])
	}
	drivertest.Must(t, transact(t, s, find(60), put(s, 60, 1, "sixty")))
	assume := func(amount int64) func() error {
		return func() error {
			s.(db.Assumer).Assume(accounts, values(60, amount, "sixty"))
			return nil
		}
	}
	refused(t, transact(t, s, assume(2), change(s, withdraw, 60, &before, minus(1)...)), db.Aborted, 0)
	drivertest.Must(t, transact(t, s, assume(1), change(s, withdraw, 60, &before, minus(1)...)))
	var ids []int64
	drivertest.Must(t, s.Scan(t.Context(), accounts, db.Value{Int: 50}, 3, func(values []db.Value) error {
		ids = append(ids, values[db.ID].Int)
		return nil
	}))
	if !slices.Equal(ids, []int64{50, 51, 52}) {
		t.Errorf("a scan brings %v", ids)
	}
	fact := []db.Value{{Text: []byte("a 'fact'")}, {Null: true}}
	drivertest.Must(t, transact(t, s, func() error { return s.Insert(t.Context(), undefined, fact) }))
	drivertest.Must(t, transact(t, s, func() error { return s.Find(t.Context(), undefined, fact[:1], found) }, put(s, 61, 1, "compared with NULL")))
	if !found[0].Found || !found[0].Values[1].Null {
		t.Errorf("the fact is %+v", found[0])
	}
}

// testLists checks that the items of a list copy the records that they name, as the transaction leaves them.
func testLists(t *testing.T, d *voltdb.Database) {
	s := session(t, d)
	leg := func(account, sum int64) []db.Value { return []db.Value{{Int: account}, {Int: sum}, {}} }
	var before db.Record
	drivertest.Must(t, transact(t, s, put(s, 70, 10, "payer"), put(s, 71, 10, "payee")))
	drivertest.Must(t, transact(t, s, change(s, withdraw, 70, &before, minus(3)...), func() error {
		return s.Insert(t.Context(), journal, slices.Concat([]db.Value{{Int: 7}}, leg(70, -3), leg(71, 3)))
	}))
	tombstone := func() error { return s.Insert(t.Context(), journal, []db.Value{{Int: 5}}) }
	drivertest.Must(t, transact(t, s, tombstone))
	refused(t, transact(t, s, tombstone), db.Constraint, db.UniqueKey)
	refused(t, transact(t, s, func() error {
		return s.Insert(t.Context(), journal, slices.Concat([]db.Value{{Int: 5}}, leg(70, -3)))
	}), db.Constraint, db.UniqueKey)
	refused(t, transact(t, s, func() error { return s.Insert(t.Context(), journal, []db.Value{{Int: 7}}) }), db.Constraint, db.UniqueKey)
	want := "[[5] [7 70 -3 2 71 3 1]]"
	var scanned [][]int64
	numbers := func(values []db.Value) (list []int64) {
		for _, v := range values {
			list = append(list, v.Int)
		}
		return list
	}
	drivertest.Must(t, s.Scan(t.Context(), journal, db.Value{Null: true}, 0, func(values []db.Value) error {
		scanned = append(scanned, numbers(values))
		return nil
	}))
	if fmt.Sprint(scanned) != want {
		t.Errorf("the journal has %v, not %s", scanned, want)
	}
	found := make([]db.Record, 1)
	drivertest.Must(t, transact(t, s, func() error { return s.Find(t.Context(), journal, []db.Value{{Int: 7}}, found) }))
	if got := fmt.Sprint(numbers(found[0].Values)); got != "[7 70 -3 2 71 3 1]" {
		t.Errorf("the entry is %s", got)
	}
}

// testGroups checks that a scan of many pages returns each record once, in the order of the ids.
func testGroups(t *testing.T, d *voltdb.Database) {
	s, err := d.RecordSession(t.Context(), db.SessionOptions{Loading: true})
	drivertest.Must(t, err)
	drivertest.Close(t, s)
	var want []string
	var records [][]db.Value
	for i := range 100 {
		id := fmt.Sprintf("%02x/%03d", i/7, i)
		want = append(want, id)
		records = append(records, []db.Value{{Text: []byte(id)}, {Text: []byte("word")}})
	}
	for range 2 { // a second try inserts nothing
		drivertest.Must(t, transact(t, s, func() error { return s.Insert(t.Context(), grouped, records...) }))
	}
	var got []string
	drivertest.Must(t, s.Scan(t.Context(), grouped, db.Value{Null: true}, 0, func(values []db.Value) error {
		got = append(got, string(values[db.ID].Text))
		return nil
	}))
	if !slices.Equal(got, want) {
		t.Errorf("the scan brings %q", got)
	}
}

// testDrop checks that a collection gets its procedures again after it was dropped and created.
func testDrop(t *testing.T, d *voltdb.Database) {
	s := session(t, d)
	insert := func() error {
		return s.Insert(t.Context(), grouped, []db.Value{{Text: []byte("ff/1")}, {Text: []byte("word")}})
	}
	drivertest.Must(t, transact(t, s, insert))
	for range 2 {
		drivertest.Must(t, d.Drop(t.Context(), grouped))
	}
	refused(t, transact(t, s, insert), db.Aborted, 0)
	drivertest.Must(t, d.Create(t.Context(), grouped))
	drivertest.Must(t, transact(t, s, insert))
}

// testStreams checks that each of many sessions on one connection gets its own answers.
func testStreams(t *testing.T, d *voltdb.Database) {
	list, err := d.Streams(t.Context(), 50, db.SessionOptions{})
	drivertest.Must(t, err)
	var all sync.WaitGroup
	for i, s := range list {
		all.Go(func() {
			defer s.Close()
			for n := range 20 {
				id := int64(1000 + 100*i + n)
				if err := transact(t, s, put(s, id, id, "streams")); err != nil {
					t.Error(err)
				}
				if r := read(t, s, id); !r[0].Found || r[0].Values[1].Int != id {
					t.Errorf("stream %d reads %+v", i, r)
				}
			}
		})
	}
	all.Wait()
}

// testCut checks that the outcome is unknown if a connection ends during a call, whether the server received the call
// or not.
func testCut(t *testing.T, direct *voltdb.Database, address string, shared bool) {
	var c drivertest.Cutter
	d := drivertest.Open(t, voltdb.Open, c.Stand(t, address))
	observer := session(t, direct)
	id := int64(10)
	if shared {
		id = 20
	}
	for when, applied := range map[drivertest.Moment]int{drivertest.BeforeRequest: 0, drivertest.WithRequest: -1, drivertest.BeforeAnswer: 1} {
		var s db.RecordSession
		if shared {
			list, err := d.Streams(t.Context(), 1, db.SessionOptions{})
			drivertest.Must(t, err)
			s = list[0]
		} else {
			s = session(t, d)
		}
		id++
		c.Cut(when, math.MaxInt)
		refused(t, transact(t, s, put(s, id, 1, "cut")), db.Unknown, 0)
		refused(t, transact(t, s, put(s, id, 1, "before the reset")), db.Unavailable, 0)
		c.Rest()
		drivertest.Must(t, s.Reset(t.Context()))
		read(t, s, id)
		time.Sleep(50 * time.Millisecond) // by then the server has carried out each call that it has received
		if r := read(t, observer, id); applied >= 0 && r[0].Found != (applied == 1) {
			t.Errorf("cut %d: found %t, want %d", when, r[0].Found, applied)
		}
		drivertest.Must(t, s.Close())
	}
}

// testRefusals checks that a refused client gets an error of one sentence within a short time.
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

// testFrozen checks calls without an answer, on a session's own connection and on a shared connection. The outcome is
// unknown within the time limit of a call. A context ends a call.
func testFrozen(t *testing.T, s *voltdbcluster.Cluster, address string) {
	d := drivertest.Open(t, voltdb.Open, address+"&answer_timeout=700ms")
	alone := session(t, d)
	list, err := d.Streams(t.Context(), 2, db.SessionOptions{})
	drivertest.Must(t, err)
	node := s.Nodes()[0].(cluster.LocalNode)
	drivertest.Must(t, node.Pause(t.Context()))
	began := time.Now()
	refused(t, transact(t, alone, put(alone, 30, 1, "frozen")), db.Unknown, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := transactWithin(ctx, list[1], put(list[1], 32, 1, "frozen")); !errors.Is(err, context.DeadlineExceeded) || db.ClassOf(err) != db.Unknown {
		t.Errorf("a call whose context ends: %v", err)
	}
	refused(t, transact(t, list[0], put(list[0], 31, 1, "frozen")), db.Unknown, 0)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("answers are given up after %v", took)
	}
	drivertest.Must(t, node.Resume(t.Context()))
	for _, s := range []db.RecordSession{alone, list[0], list[1]} {
		drivertest.Must(t, s.Reset(t.Context()))
		read(t, s, 1)
	}
	drivertest.Must(t, errors.Join(list[0].Close(), list[1].Close()))
}
