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

// recordFile writes a history with a client for each that the ids name, each transaction in a
// block of its own, those of all clients in an order drawn by rng.
func recordFile(t *testing.T, s *store, rng *rand.Rand) *history.Reader {
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
		if err := w.Client(int(c)).Flush(); err != nil {
			t.Fatal(err)
		}
		clients[c] = clients[c][1:]
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

// oneByOne hides that a source has blocks.
type oneByOne struct{ r *history.Reader }

func (o oneByOne) Header() history.Header                         { return o.r.Header() }
func (o oneByOne) Complete() bool                                 { return o.r.Complete() }
func (o oneByOne) Transactions() iter.Seq2[history.Record, error] { return o.r.Transactions() }

// TestWorkersAndOrderChangeNothing: one worker and several find the same of the same file,
// in the same words, and of a file whose blocks stand in another order the same verdicts,
// as often.
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
		file, other := recordFile(t, s, rng), recordFile(t, s, rng)
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

// TestTwoWritesOfOneID: the writes of a damaged history are found by their records.
func TestTwoWritesOfOneID(t *testing.T) {
	s := busyStore()
	tx := *s.tx(kindPut, 0)
	tx.Ops = []history.Op{{Object: 3, Write: true, Amount: 64}}
	s.Txns = append(s.Txns, tx)
	s.do(kindGet, 3, 0).Ops[0].Writer = tx.ID
	s.do(kindGet, 0, 0)
	if r := checkKV(t, s.input())[Values]; r.Status != check.Valid {
		t.Errorf("%+v", r)
	}
}
