package appends

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/memory"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

func testConfig(clients int) *Config {
	return &Config{Clients: clients, Seed: 7, Length: 16, Operations: 4, Reads: 0.5, ReadOnly: 0.1, Range: 4, ZipfExponent: 0.6}
}

func TestElementIdentifiesItsAppend(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		id := history.NewID(1+r.Uint64N(1<<history.RunBits-1), r.Uint64N(1<<history.ClientBits), 1+r.Uint64N(1<<history.SequenceBits-1))
		n, object := r.Uint64N(1<<numberBits), newObject(id.Run(), r.Uint64N(1<<keyBits))
		e := newElement(id, n)
		if int64(e) < 0 || int64(object) < 0 || writer(object, e) != id || numberOf(e) != uint32(n) || !madeBy(e, id) || madeBy(e+1<<numberBits, id) {
			t.Fatalf("element %d of %v in list %d", e, id, object)
		}
		if got, err := (names{}).Number(listName(object)); err != nil || got != object {
			t.Fatalf("%s is %d, %v, not %d", listName(object), got, err, object)
		}
	}
}

func TestListTextRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var want []uint64
		var text []byte
		for range r.IntN(40) {
			want = append(want, 1<<sequenceAt|r.Uint64()>>(1+r.IntN(40)))
			text = appendText(text, want[len(want)-1])
		}
		if got, ok := appendParsed(nil, text); !ok || !slices.Equal(got, want) {
			t.Fatalf("%q came back as %v, %v, not %v", text, got, ok, want)
		}
	}
	for _, bad := range []string{",", "g", "0,", "1,", "zzzzz,", "80000", "8000000000000000000000,", "200000,,", "200000,x,", "A00000,"} {
		if got, ok := appendParsed([]uint64{5}, []byte(bad)); ok || len(got) != 1 {
			t.Errorf("%q is taken for %v", bad, got)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("200000,"))
	f.Add(appendText(appendText(nil, 1<<62), 1<<sequenceAt))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, ok := appendParsed(nil, text)
		if !ok {
			return
		}
		var again []byte
		for _, e := range list {
			again = appendText(again, e)
		}
		if list2, ok := appendParsed(nil, again); !ok || !slices.Equal(list, list2) || len(again) > len(text) || len(list) == 0 != (len(text) == 0) {
			t.Errorf("%q is %v, which is written %q", text, list, again)
		}
		if bytes.Contains(text, []byte{0}) {
			t.Errorf("%q is taken", text)
		}
	})
}

// TestChoicesDependOnlyOnSeedAndReads checks that outcomes move the window of lists and change no other choice.
func TestChoicesDependOnlyOnSeedAndReads(t *testing.T) {
	a, b := newChooser(testConfig(8), 7, 1, 3), newChooser(testConfig(8), 7, 1, 3)
	other := newChooser(testConfig(8), 7, 1, 4)
	same := 0
	for range 1000 {
		var x, y, z history.Transaction
		a.Next(&x)
		b.Next(&y)
		other.Next(&z)
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("%+v and %+v", x, y)
		}
		if reflect.DeepEqual(x.Ops, z.Ops) {
			same++
		}
		if !slices.IsSortedFunc(x.Ops, func(p, q history.Op) int { return int(int64(p.Object) - int64(q.Object)) }) {
			t.Fatalf("not in the order of the lists: %+v", x.Ops)
		}
	}
	if same > 200 {
		t.Errorf("%d of 1000 transactions of two clients are the same", same)
	}
}

func TestFullListMovesTheWindow(t *testing.T) {
	h := newChooser(testConfig(8), 7, 1, 0)
	h.learn(&history.Transaction{Ops: []history.Op{
		{Object: newObject(1, 40), Observed: true, Value: 15}, {Object: newObject(1, 50), Write: true, Observed: true, Value: 99},
		{Object: newObject(1, 20), Observed: true, Value: 16}, {Object: newObject(1, 30), Value: 16},
	}})
	if h.first != 21 {
		t.Errorf("the window begins with %d", h.first)
	}
}

// TestTransactionAllocatesNothing checks the workload alone, on sessions that keep nothing, because the
// reference's sessions allocate.
func TestTransactionAllocatesNothing(t *testing.T) {
	records, _ := db.RecordsOf(keepsNothing{})
	s, err := records.RecordSession(t.Context(), db.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lists := &db.Collection{Name: table, ID: db.Integer, Fields: []db.Field{{Name: "elements", Type: db.Text}}}
	model := &recordModel{lists: lists, replace: &db.Update{Collection: lists, Set: []int{1}}}
	c := &valueClient{chooser: newChooser(testConfig(64), 7, 1, 0), RecordSession: s, model: model, together: true}
	var tx history.Transaction
	round := func() {
		for range 100 {
			c.Next(&tx)
			if err := c.Attempt(t.Context(), &tx); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 50 {
		round()
	}
	if got := testing.AllocsPerRun(50, round); got > 0 {
		t.Errorf("%v allocations in 100 transactions", got)
	}
}

func TestRunOnReferenceDatabaseIsValid(t *testing.T) {
	d, err := memory.Open("memory:")
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(d, *testConfig(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := l.Client(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lists := map[uint64][]uint64{}
	var tx history.Transaction
	for range 2000 {
		c.Next(&tx)
		if err := c.Attempt(t.Context(), &tx); err != nil || tx.Outcome != history.Committed {
			t.Fatalf("%v %v", tx.Outcome, err)
		}
		elements, n := tx.Elements, uint64(0)
		for _, op := range tx.Ops {
			if got := elements[:op.Value]; op.Observed && !slices.Equal(got, lists[op.Object]) {
				t.Fatalf("%s is %v, not %v", listName(op.Object), got, lists[op.Object])
			}
			elements = elements[op.Value:]
			if op.Write {
				lists[op.Object] = append(lists[op.Object], newElement(tx.ID, n))
				n++
			} else if !op.Observed {
				t.Fatalf("a read of %s is not observed", listName(op.Object))
			}
		}
	}
	for object, list := range lists {
		if len(list) > 40 {
			t.Errorf("%s has %d elements", listName(object), len(list))
		}
	}
	if len(lists) < 100 {
		t.Errorf("only %d lists were made", len(lists))
	}
	tx.Outcome = history.Unknown
	if err := c.Attempt(t.Context(), &tx); tx.Kind != onlyReads && err == nil {
		t.Error("a second try of what was applied succeeds")
	}
}

var _ workload.Objects = names{}

// TestGarbageCollectorKeepsMemoryTarget checks that a small check keeps Go's default, and that a larger check
// stays below the memory target if it can.
func TestGarbageCollectorKeepsMemoryTarget(t *testing.T) {
	for _, c := range []struct{ transactions, want int }{{0, 100}, {1_000_000, 100}, {5_000_000, 100}, {7_000_000, 53}, {10_000_000, 10}, {100_000_000, 10}} {
		if got := garbagePercent(c.transactions); got != c.want {
			t.Errorf("%d transactions: %d %%, not %d", c.transactions, got, c.want)
		}
	}
}
