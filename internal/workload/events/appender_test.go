package events

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/load"
	"stroppy/internal/workload/dataset"
)

func TestEveryStreamHasAClient(t *testing.T) {
	for _, shape := range []struct{ streams, clients uint64 }{{1, 1}, {8, 8}, {2, 8}, {19, 8}, {100, 7}, {3, 4}} {
		owners := map[uint64][]uint64{}
		for client := range shape.clients {
			a := newAppender(&Config{Clients: int(shape.clients), Batch: 1, Size: Size{32, 32}}, formula{1}, shape.streams, 1, client)
			mine := map[uint64]bool{}
			for range 3 * shape.streams {
				var tx history.Transaction
				a.Next(&tx)
				mine[tx.Ops[0].Object] = true
			}
			for stream := range mine {
				owners[stream] = append(owners[stream], client)
			}
		}
		for stream := range shape.streams {
			n := len(owners[stream])
			if n == 0 || shape.streams >= shape.clients && n != 1 {
				t.Errorf("%d streams of %d clients: stream %d belongs to %v", shape.streams, shape.clients, stream, owners[stream])
			}
		}
		if len(owners) != int(shape.streams) {
			t.Errorf("%d streams of %d clients: %d are appended to", shape.streams, shape.clients, len(owners))
		}
	}
}

func TestSeedDeterminesAppends(t *testing.T) {
	appends := func(seed uint64) (list []history.Transaction) {
		a := newAppender(&Config{Clients: 2, Batch: 3, Size: Size{32, 1000}}, formula{seed}, 5, 4, 1)
		for range 20 {
			var tx history.Transaction
			a.Next(&tx)
			tx.Ops = slices.Clone(tx.Ops)
			list = append(list, tx)
		}
		return list
	}
	same := func(a, b history.Transaction) bool {
		return a.ID == b.ID && a.Kind == b.Kind && slices.Equal(a.Ops, b.Ops)
	}
	if !slices.EqualFunc(appends(1), appends(1), same) || slices.EqualFunc(appends(1), appends(2), same) {
		t.Error("the seed does not decide what is appended")
	}
}

// still is a database of either model that takes everything and keeps nothing, for
// counting what is ours. Each stream is there and has no entry, unless it is empty.
type still struct {
	result db.Result
	empty  bool
}

func (*still) Info(context.Context) (db.Info, error) { return db.Info{}, nil }
func (*still) Claim(string) (db.Claim, error)        { return db.Claim{}, nil }
func (*still) Begin(context.Context, bool) error     { return nil }
func (*still) Flush(context.Context) error           { return nil }
func (*still) Commit(context.Context) error          { return nil }
func (*still) Reset(context.Context) error           { return nil }
func (*still) Close() error                          { return nil }
func (s *still) Result(int) *db.Result               { return &s.result }
func (*still) Exec(context.Context, string) error    { return nil }
func (*still) Limits() db.Limits                     { return db.Limits{Writes: 1 << 20} }
func (s *still) Read(_ context.Context, _ [][]byte, out []db.Entry) error {
	clear(out)
	if !s.empty {
		out[0] = db.Entry{Value: noEntry, Found: true}
	}
	return nil
}

// noEntry is the end of a stream without an entry.
var noEntry = make([]byte, 16)

func (*still) Set(_, _ []byte) {}
func (*still) Delete([]byte)   {}
func (*still) Scan(context.Context, []byte, []byte, func(key, value []byte) error) error {
	return nil
}

func (*still) Do(context.Context, *db.Statement, []db.Value) (int, error) { return 0, nil }
func (*still) Query(context.Context, *db.Statement, []db.Value, func([]db.Value) error) error {
	return nil
}

type stillSQL struct{ *still }

func (stillSQL) Dialect() *db.Dialect {
	return &db.Dialect{Placeholder: func(int) string { return "?" }, IntegerType: "BIGINT", TextType: func(int) string { return "TEXT" }}
}
func (d stillSQL) Session(context.Context, db.SessionOptions) (db.SQLSession, error) { return d, nil }
func (stillSQL) Rollback(context.Context) error                                      { return nil }

type stillKV struct{ *still }

func (d stillKV) KVSession(context.Context, db.SessionOptions) (db.KVSession, error) { return d, nil }
func (stillKV) Rollback()                                                            {}

// clientOf opens a client of either model.
func clientOf(t testing.TB, database db.Database) load.Client {
	t.Helper()
	e, err := New(database, Config{Clients: 1, Seed: 1, Streams: 1, Batch: 5, Size: Size{1024, 1024}, Fragment: 300})
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.model.client(t.Context(), newAppender(&e.config, formula{1}, 1, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var databasesOfModels = map[string]func() db.Database{
	"SQL": func() db.Database { return stillSQL{&still{result: origin}} },
	"KV":  func() db.Database { return stillKV{&still{}} },
}

// origin is the last place of a stream without an entry.
var origin = db.Result{Columns: 1, Values: make([]db.Value, 1)}

func TestAppendToMissingStreamIsRejected(t *testing.T) {
	missing := map[string]db.Database{
		"SQL": stillSQL{&still{empty: true, result: db.Result{Columns: 1, Values: []db.Value{{Null: true}}}}},
		"KV":  stillKV{&still{empty: true}},
	}
	for name, database := range missing {
		c, tx := clientOf(t, database), new(history.Transaction)
		c.Next(tx)
		if err := c.Attempt(t.Context(), tx); err != nil || tx.Outcome != history.Rejected || tx.Reason != noSuchStream {
			t.Errorf("%s: %v, %v, reason %d", name, err, tx.Outcome, tx.Reason)
		}
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	for name, open := range databasesOfModels {
		t.Run(name, func(t *testing.T) {
			c, tx := clientOf(t, open()), new(history.Transaction)
			allocated := testing.AllocsPerRun(100, func() {
				c.Next(tx)
				if err := c.Attempt(t.Context(), tx); err != nil || tx.Outcome != history.Committed {
					t.Fatal(err, tx.Outcome)
				}
			})
			if allocated != 0 {
				t.Errorf("%v allocations an append", allocated)
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for name, open := range databasesOfModels {
		b.Run(name, func(b *testing.B) {
			c, tx := clientOf(b, open()), new(history.Transaction)
			b.ReportAllocs()
			b.SetBytes(5 * 1024)
			for b.Loop() {
				c.Next(tx)
				if err := c.Attempt(b.Context(), tx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestTablesExcludeWarmupAndAbortedBatches checks the tables of a small run by hand: batches of 4, one of them in
// the warm-up and one aborted.
func TestTablesExcludeWarmupAndAbortedBatches(t *testing.T) {
	dir := t.TempDir()
	e := &Log{Set: new(dataset.Set), config: Config{Clients: 1, Batch: 4, Size: Size{100, 100}, Fragment: 100}}
	h := e.Header()
	h.Workload, h.Run, h.Seed, h.Objects, h.Clients = Name, 1, 1, 1, 1
	w, err := history.Create(filepath.Join(dir, "history"), h, 1)
	if err != nil {
		t.Fatal(err)
	}
	const ms = 1_000_000
	for i, tx := range []history.Transaction{
		{Outcome: history.Committed, Warmup: true, Sent: 0, End: 900 * ms},
		{Outcome: history.Committed, Sent: 1000 * ms, End: 1008 * ms},
		{Outcome: history.Aborted, Sent: 1008 * ms, End: 1900 * ms},
		{Outcome: history.Committed, Sent: 1900 * ms, End: 1904 * ms},
		{Outcome: history.Committed, LookedUp: true, Sent: 1904 * ms, End: 2000 * ms},
	} {
		tx.ID, tx.Kind, tx.Attempts = history.NewID(1, 0, uint64(i+1)), appends, 1
		tx.Due, tx.Try = tx.Sent, tx.Sent
		tx.Ops = []history.Op{{Write: true, Observed: tx.Outcome == history.Committed, Amount: 400}}
		if err := w.Client(0).Append(&tx); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Client(0).Flush(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	recorded, err := history.Open(filepath.Join(dir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	list, err := tables(t.Context(), recorded)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d tables, %v", len(list), err)
	}
	want := [][]string{
		{"event", "12", "9.000000", "24.000000", "1.000000"}, {"commit", "3", "36.000000", "96.000000", "4.000000"},
		{"events", "12", "12.0"}, {"commits", "3", "3.0"}, {"bytes of values", "1200", "1200.0"},
	}
	got := slices.Concat(list[0].Rows, list[1].Rows)
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("the rows are %q", got)
	}
	checked, err := Spec().Check(t.Context(), []string{dir}, isolation.StrictSerializable, nil)
	if err != nil || !reflect.DeepEqual(checked.Tables, list) {
		t.Errorf("the checks measure\n%v, %v, not\n%v", checked.Tables, err, list)
	}
	several, err := measure(h) // by workers that take turns
	if err != nil {
		t.Fatal(err)
	}
	workers, turn := several.Workers(3), 0
	for rec, err := range recorded.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		workers[turn%3](rec.Transaction)
		turn++
	}
	if got := several.tables(); !reflect.DeepEqual(got, list) {
		t.Errorf("several workers measure\n%v, not\n%v", got, list)
	}
	notes := strings.Join(slices.Concat(list[0].Notes, list[1].Notes), " ")
	for _, words := range []string{"divided by 3.", "divided by 4,", "divided by 1.000000 s", "found by a look-up: 1."} {
		if !strings.Contains(notes, words) {
			t.Errorf("no note says %q: %s", words, notes)
		}
	}
}

func TestStreamIsFoundByNameOrNumber(t *testing.T) {
	list := names(12)
	for _, text := range []string{list.Name(11), "11", "stream 11"} {
		if n, err := list.Number(text); err != nil || n != 11 {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"12", "", "x", "-1"} {
		if n, err := list.Number(text); err == nil {
			t.Errorf("%q is stream %d", text, n)
		}
	}
}
