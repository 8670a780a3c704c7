package registers

import (
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// recordFile writes a history with the clients of the IDs. The order of the clients is random, and each
// transaction ends its block with the given probability.
func recordFile(t *testing.T, s *store, rng *rand.Rand, share float64) *history.Reader {
	t.Helper()
	dir := t.TempDir()
	clients := map[uint64][]*history.Transaction{}
	var order []uint64
	for i := range s.Txns {
		c := s.Txns[i].ID.Client()
		clients[c] = append(clients[c], &s.Txns[i])
		order = append(order, c)
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	w, err := history.Create(dir, history.Header{Run: s.Run}, int(slices.Max(order))+1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range order {
		if err := w.Client(int(c)).Append(clients[c][0]); err != nil {
			t.Fatal(err)
		}
		if clients[c] = clients[c][1:]; len(clients[c]) > 0 && rng.Float64() >= share {
			continue
		}
		if err := w.Client(int(c)).Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// oneByOne hides the blocks of a source.
type oneByOne struct{ r *history.Reader }

func (o oneByOne) Header() history.Header                         { return o.r.Header() }
func (o oneByOne) Complete() bool                                 { return o.r.Complete() }
func (o oneByOne) Transactions() iter.Seq2[history.Record, error] { return o.r.Transactions() }

// TestWorkersAndOrderChangeNothing checks that one worker and several find the same in the same file, with
// equal texts. A different order of blocks must give the same verdicts and counts.
func TestWorkersAndOrderChangeNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	outcome := func(source check.Source, s *store, workers int) (*checker, []check.Result) {
		in := s.input()
		in.History = []check.Source{source}
		k := newChecker(t.Context(), in)
		k.workers = workers
		return k, k.results(k.read())
	}
	invalid := 0
	for i := range 60 {
		s := erratic(rng, 40, rng.Float64())
		if i%2 == 0 {
			s = busyStore()
			kvLies[rng.IntN(len(kvLies))].bend(s)
		}
		file, other := recordFile(t, s, rng, 1), recordFile(t, s, rng, 1)
		one, want := outcome(oneByOne{file}, s, 1)
		for _, workers := range []int{1, 2, 5} {
			if _, got := outcome(file, s, workers); !reflect.DeepEqual(got, want) {
				t.Fatalf("history %d, %d workers: %+v, want %+v", i, workers, got, want)
			}
		}
		two, again := outcome(other, s, 2)
		for j := range want {
			if want[j].Status == check.Invalid {
				invalid++
			}
			if again[j].Status != want[j].Status {
				t.Fatalf("history %d: in another order of the blocks %s is %v, want %v", i, want[j].Name, again[j].Status, want[j].Status)
			}
		}
		for of := range one.found {
			if one.found[of].Count != two.found[of].Count {
				t.Fatalf("history %d: in another order of the blocks there are %d of %d, want %d", i, two.found[of].Count, of, one.found[of].Count)
			}
		}
	}
	if invalid < 30 {
		t.Errorf("only %d checks were invalid", invalid)
	}
}

// TestTransactionTwiceIsUnknown checks that a history with a repeated ID decides nothing.
func TestTransactionTwiceIsUnknown(t *testing.T) {
	s := busyStore()
	tx := *s.tx(kindPut, 0)
	tx.Ops = []history.Op{{Object: 3, Write: true, Amount: 64}}
	s.Txns = append(s.Txns, tx)
	s.do(kindGet, 3, 0).Ops[0].Writer = tx.ID
	s.do(kindGet, 0, 0)
	for name, r := range checkKV(t, s.input()) {
		if r.Status != check.Unknown {
			t.Errorf("%s is %v: %s", name, r.Status, said(r))
		}
	}
}

// TestLayOutSortsAllWrites checks that all writes are sorted by record and ID and can be found by ID, for any
// blocks and any number of workers.
func TestLayOutSortsAllWrites(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 11))
	for i := range 40 {
		s := newStore(uint64(rng.IntN(30)))
		clients, last := 1+rng.IntN(5), map[uint64]uint64{}
		var want []history.ID
		for range rng.IntN(2000) {
			tx := s.do(kindPut, 0, 0)
			if tx.Ops[0].Object = uint64(rng.IntN(20)); rng.IntN(4) == 0 {
				tx.Ops[0].Object = numberOfInsert(uint64(rng.IntN(20)))
			}
			c := uint64(rng.IntN(clients))
			last[c] += 1 + uint64(rng.IntN(3)/2)
			tx.ID = history.NewID(1, c, last[c])
			want = append(want, tx.ID)
		}
		if len(want) == 0 {
			continue
		}
		twice := i%8 == 7 // a damaged history
		if twice {
			tx := s.Txns[rng.IntN(len(s.Txns))]
			tx.Ops = slices.Clone(tx.Ops)
			tx.Ops[0].Object++
			s.Txns = append(s.Txns, tx)
			want = append(want, tx.ID)
		}
		for _, source := range []check.Source{&s.History, recordFile(t, s, rng, rng.Float64()), recordFile(t, s, rng, 0)} {
			for _, workers := range []int{1, 3} {
				in := s.input()
				in.History = []check.Source{source}
				k := newChecker(t.Context(), in)
				k.workers = workers
				k.groupClocks()
				if err := k.readWrites(); err != nil {
					t.Fatal(err)
				}
				if !twice {
					laidOut(t, k, want)
				}
				if k.places.twice != twice {
					t.Errorf("history %d: an id has several writes: %v", i, k.places.twice)
				}
			}
		}
	}
}

// laidOut checks that exactly these writes are in place.
func laidOut(t *testing.T, k *checker, want []history.ID) {
	t.Helper()
	var got []history.ID
	for i := range k.keys {
		key := &k.keys[i]
		list := k.appendWrites(nil, key)
		if i > 0 && (k.keys[i-1].n >= key.n || k.keys[i-1].to != key.from) {
			t.Fatalf("record %d comes after %d", key.n, k.keys[i-1].n)
		}
		if list[0].id != 0 || k.writeOn(key.n, 0) != list[0] || k.keyOf(key.n) != key || len(list) < 2 {
			t.Fatalf("record %d begins with %+v", key.n, list[0])
		}
		for j := range list {
			w := list[j]
			if w.n != key.n || w.readsEnd != never || w.readsStart != always || j > 0 && list[j-1].id >= w.id {
				t.Fatalf("record %d has write %+v", key.n, w)
			}
			if found := k.writeOn(key.n, w.id); found != w {
				t.Fatalf("%+v was found in place of %+v", found, w)
			}
			if j > 0 {
				got = append(got, w.id)
			}
		}
	}
	slices.Sort(got)
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) || k.writers != uint64(len(want)) {
		t.Fatalf("the writes are %v, want %v", got, want)
	}
}
