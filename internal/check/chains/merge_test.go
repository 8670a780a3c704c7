package chains

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// timed returns a history in a file, with transactions of several clients on one object. Crowds of
// transactions alternate with rare long pauses, so the number of transactions differs between windows of
// equal length.
func timed(t *testing.T, rng *rand.Rand, clients, each int) (*history.Reader, []history.Transaction) {
	t.Helper()
	dir := t.TempDir()
	out, err := history.Create(dir, history.Header{Workload: "bank", Run: 1, Objects: objects, Clients: clients}, clients)
	if err != nil {
		t.Fatal(err)
	}
	var all []history.Transaction
	for client := range clients {
		at := rng.Int64N(100)
		for n := range each {
			at += rng.Int64N(4)
			if rng.IntN(200) == 0 {
				at += 1 << rng.IntN(40)
			}
			tx := history.Transaction{
				ID: history.NewID(1, uint64(client), uint64(n+1)), Kind: history.Numbered, Outcome: history.Committed, Attempts: 1, Due: at, Sent: at, Try: at,
			}
			at += rng.Int64N(9)
			tx.End = at
			tx.Ops = append(tx.Ops, history.Op{Object: rng.Uint64N(objects), Write: rng.IntN(2) == 0, Observed: true})
			all = append(all, tx)
			if err := out.Client(client).Append(&tx); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Client(client).Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	return reader, all
}

// TestMergerOrdersByEnd checks that every transaction is passed on once, in the order of ends. A transaction
// that does not overwrite everything it read must also be passed on before all ends after its beginning.
func TestMergerOrdersByEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ clients, each int }{{1, 5000}, {2, 3000}, {300, 40}, {3000, 5}} {
		source, all := timed(t, rng, c.clients, c.each)
		in := Input{
			Objects: objects, History: []Recording{{Source: source}},
			Look: func() func(*history.Transaction) error { return func(*history.Transaction) error { return nil } },
		}
		f, err := newFeed(&check.Watch{Ctx: t.Context()}, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		begun, ended, last := map[history.ID]int{}, map[history.ID]int{}, int64(math.MinInt64)
		events, most := 0, 0
		for m := newMerger(f); ; {
			window, err := m.next()
			if err != nil {
				t.Fatal(err)
			}
			if len(window) == 0 {
				break
			}
			most = max(most, len(m.window)-6*m.wanted)
			for _, e := range window {
				if events++; e.began() {
					begun[e.t.id] = events
					continue
				}
				if e.t.end < last {
					t.Fatalf("%v ended at %d and was handed over after one that ended at %d", e.t.id, e.t.end, last)
				}
				if ended[e.t.id] != 0 {
					t.Fatalf("%v was handed over twice", e.t.id)
				}
				ended[e.t.id], last = events, e.t.end
				if e.t.batch.done(); e.t.has(reader) && begun[e.t.id] == 0 {
					t.Fatalf("%v ended and did not begin", e.t.id)
				}
			}
		}
		f.stop()
		if len(ended) != len(all) || most > 0 {
			t.Errorf("%d of %d were handed over, %d too many at once", len(ended), len(all), most)
		}
		slices.SortFunc(all, func(a, b history.Transaction) int { return cmp.Compare(a.End, b.End) })
		places := make([]int, len(all)+1) // by end: index from which the other ends follow
		places[len(all)] = math.MaxInt
		for i := range slices.Backward(all) {
			places[i] = min(places[i+1], ended[all[i].ID])
		}
		for _, tx := range all {
			from, _ := slices.BinarySearchFunc(all, tx.Try, func(a history.Transaction, try int64) int { return cmp.Compare(a.End, try) })
			if !tx.Ops[0].Write && begun[tx.ID] > places[from] {
				t.Fatalf("%v began after something had ended after it", tx.ID)
			}
		}
	}
}

// TestSortedAgainstStableSort checks lists of any length with any distance between the moments.
func TestSortedAgainstStableSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	var spare []event
	for range 2000 {
		list := make([]event, rng.IntN(600))
		first, width := moment(rng.Uint64()), rng.IntN(64)
		for i := range list {
			list[i] = event{first + moment(rng.Uint64()>>width), new(transaction)}
			if rng.IntN(100) == 0 {
				list[i].at = [2]moment{math.MinInt64, never}[rng.IntN(2)]
			}
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		list, spare = sorted(list, spare)
		for i := range want {
			if list[i].at != want[i].at {
				t.Fatalf("%d is %d and not %d", i, list[i].at, want[i].at)
			}
		}
	}
}
