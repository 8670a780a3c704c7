package registers

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
)

// windowOf returns a part of a store's history, as a check of a growing recording sees it.
func windowOf(rng *rand.Rand, s *store) *store {
	w := *s
	w.Incomplete = true
	w.Txns = checktest.Window(rng, s.Txns, func(tx history.Transaction) uint64 { return tx.ID.Client() }, 6)
	for i := range w.Txns {
		w.Txns[i].Ops = slices.Clone(w.Txns[i].Ops)
	}
	return &w
}

// partOf returns the checks' input for a window.
func partOf(w *store) Input {
	in := w.input()
	in.End, in.Part = nil, true
	return in
}

// busyClients runs transactions of all kinds and outcomes. Each takes effect at an instant between its
// beginning and its end.
func busyClients(rng *rand.Rand, count int) *store {
	s := newStore(1 + uint64(rng.IntN(6)))
	clients := 1 + rng.IntN(5)
	free, sequence := make([]int64, clients), make([]uint64, clients)
	now, inserts := int64(0), uint64(0)
	for range count {
		now += 1 + rng.Int64N(20)
		kind := []history.Kind{kindGet, kindPut, kindModify, kindInsert, kindScan}[rng.IntN(5)]
		n := uint64(rng.IntN(int(s.loaded)))
		if inserts > 0 && rng.IntN(3) == 0 {
			n = numberOfInsert(uint64(rng.IntN(int(inserts) + 1)))
		}
		if kind == kindInsert {
			n = numberOfInsert(inserts)
			inserts++
		}
		if (kind == kindPut || kind == kindModify) && s.at(n) == nil {
			kind = kindGet // there is nothing to write
		}
		rows := slices.Clone(s.ObjectRows)
		tx := s.do(kind, n, 1+rng.IntN(9))
		c := rng.IntN(clients)
		sequence[c]++
		was := tx.ID
		tx.ID = history.NewID(s.Run, uint64(c), sequence[c])
		for i := range s.ObjectRows {
			if s.ObjectRows[i].Writer == was {
				s.ObjectRows[i].Writer = tx.ID
			}
		}
		tx.Try = max(free[c], now-rng.Int64N(60))
		now = max(now, tx.Try)
		tx.Sent, tx.Due, tx.End = tx.Try, tx.Try, now+rng.Int64N(60)
		free[c] = tx.End + 1
		switch rng.IntN(12) {
		case 0:
			if tx.Outcome = history.Unknown; rng.IntN(2) == 0 {
				s.ObjectRows = rows
			}
		case 1:
			tx.Outcome, s.ObjectRows = history.Aborted, rows
		}
	}
	return s
}

// TestWindowsOfValidHistories checks that no window of a valid history shows a violation.
func TestWindowsOfValidHistories(t *testing.T) {
	rounds := checktest.Rounds(600, 6000)
	seen := 0
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 31))
		s := busyClients(rng, 10+rng.IntN(120))
		if seed%10 == 0 {
			for name, r := range checkKV(t, s.input()) {
				if r.Status != check.Valid && r.Status != check.NotApplicable {
					t.Fatalf("seed %d: %s of the whole history is %v: %s", seed, name, r.Status, said(r))
				}
			}
		}
		for range 3 {
			w := windowOf(rng, s)
			seen += len(w.Txns)
			for name, r := range checkKV(t, partOf(w)) {
				if r.Status == check.Invalid {
					t.Fatalf("seed %d: %s: %s\n%s", seed, name, said(r), storeText(w))
				}
			}
		}
	}
	if seen < 50*int(rounds) {
		t.Errorf("the windows have %d transactions only", seen)
	}
}

// TestWindowsAgainstDefinitions checks that a window shows what the definitions find in it, and nothing that
// the whole history does not show.
func TestWindowsAgainstDefinitions(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 4000
	}
	rng := rand.New(rand.NewPCG(7, 5))
	judged := func(in Input) *checker {
		k := newChecker(t.Context(), in)
		if err := k.read(); err != nil {
			t.Fatal(err)
		}
		return k
	}
	disorders, stales, hidden := 0, 0, 0
	for i := range rounds {
		s := erratic(rng, 3+rng.IntN(12), rng.Float64())
		w := windowOf(rng, s)
		o := definitions{w}
		in := s.input()
		in.End = nil // a window has no end state
		whole, k := judged(in), judged(partOf(w))
		for key := range k.keys {
			n := k.keys[key].n
			want := o.linearizable(n)
			if got := !k.keys[key].broken; got != want {
				t.Fatalf("history %d: in a window record %d is linearizable: %v, and porcupine says %v\n%s", i, n, got, want, storeText(w))
			}
			if !want {
				disorders++
			}
		}
		if want := o.stale(); k.found[stale].Count != want {
			t.Fatalf("history %d: %d stale reads in a window, and by the definition %d\n%s", i, k.found[stale].Count, want, storeText(w))
		} else if want > 0 {
			stales++
		}
		for of := range k.found {
			switch shows := k.found[of].Count > 0; {
			case shows && whole.found[of].Count == 0:
				t.Fatalf("history %d: a window shows %q, which the whole does not\n%s\n%s", i, k.foundText(kind(of)), storeText(w), storeText(s))
			case !shows && whole.found[of].Count > 0:
				hidden++
			}
		}
	}
	t.Logf("%d records without an order, %d windows with stale reads, %d that hid something", disorders, stales, hidden)
	if min(disorders, stales, hidden) < rounds/20 {
		t.Errorf("of %d windows %d had a record without an order, %d stale reads, and %d hid something", rounds, disorders, stales, hidden)
	}
}

// windowPlants falsify a window and return the name of the check that must detect it. They return an empty
// string if the window has no suitable place.
var windowPlants = map[string]func(rng *rand.Rand, w *store) string{
	"a broken value": func(rng *rand.Rand, w *store) string {
		return onOp(rng, w, Values, func(tx *history.Transaction, op *history.Op) bool {
			op.State = history.Broken
			return tx.Outcome == history.Committed && tx.Kind != kindInsert
		})
	},
	"no record of the load": func(rng *rand.Rand, w *store) string {
		return onOp(rng, w, Values, func(tx *history.Transaction, op *history.Op) bool {
			op.State, op.Writer = history.Absent, 0
			return tx.Outcome == history.Committed && op.Object < w.loaded && tx.Kind == kindGet
		})
	},
	"a value of the load in an insert's record": func(rng *rand.Rand, w *store) string {
		return onOp(rng, w, Values, func(tx *history.Transaction, op *history.Op) bool {
			op.State, op.Writer = history.Whole, 0
			return tx.Outcome == history.Committed && op.Object >= w.loaded && tx.Kind != kindInsert
		})
	},
	"a dirty read": func(rng *rand.Rand, w *store) string {
		return onPair(rng, w, Values, func(read, write *history.Transaction) bool {
			read.Ops[0].State, read.Ops[0].Writer = history.Whole, write.ID
			return write.Outcome == history.Aborted && read.Kind == kindGet
		})
	},
	"a read before its write": func(rng *rand.Rand, w *store) string {
		return onPair(rng, w, Values, func(read, write *history.Transaction) bool {
			read.Ops[0].State, read.Ops[0].Writer = history.Whole, write.ID
			return write.Outcome == history.Committed && read.Kind == kindGet && read.End < write.Try
		})
	},
	"a stale read": func(rng *rand.Rand, w *store) string {
		return onPair(rng, w, Fresh, func(read, write *history.Transaction) bool {
			read.Ops[0].State, read.Ops[0].Writer = history.Whole, 0
			return write.Outcome == history.Committed && write.Ops[0].Object < w.loaded && read.Kind == kindGet && write.End < read.Try
		})
	},
	"a lost update": func(rng *rand.Rand, w *store) string {
		return onPair(rng, w, NoLostUpdate, func(read, write *history.Transaction) bool {
			read.Ops[0].Writer = write.Ops[0].Writer
			return write.Outcome == history.Committed && read.Kind == kindModify && write.Kind == kindModify && read.ID != write.ID
		})
	},
	"a scan without an insert": func(rng *rand.Rand, w *store) string {
		return onScan(rng, w, func(scan *history.Transaction, i int) bool {
			insert := w.inserted(scan.Ops[i].Object)
			return insert != nil && insert.Outcome == history.Committed && insert.End < scan.Try
		})
	},
	"a scan without a record of the load": func(rng *rand.Rand, w *store) string {
		return onScan(rng, w, func(scan *history.Transaction, i int) bool { return scan.Ops[i].Object < w.loaded })
	},
}

// inserted returns the insert of a record, or nil if the history has none.
func (s *store) inserted(n uint64) *history.Transaction {
	for i := range s.Txns {
		if tx := &s.Txns[i]; tx.Kind == kindInsert && tx.Ops[0].Object == n {
			return tx
		}
	}
	return nil
}

// onOp falsifies the result of one operation, if do accepts it.
func onOp(rng *rand.Rand, w *store, name string, do func(tx *history.Transaction, op *history.Op) bool) string {
	for _, i := range rng.Perm(len(w.Txns)) {
		tx := &w.Txns[i]
		op := &tx.Ops[rng.IntN(len(tx.Ops))]
		was := *op
		if op.Observed && do(tx, op) {
			return name
		}
		*op = was
	}
	return ""
}

// onPair falsifies what a transaction read of a record that another one wrote.
func onPair(rng *rand.Rand, w *store, name string, do func(read, write *history.Transaction) bool) string {
	for _, i := range rng.Perm(len(w.Txns)) {
		for _, j := range rng.Perm(len(w.Txns)) {
			read, write := &w.Txns[i], &w.Txns[j]
			was := read.Ops[0]
			if read.Outcome != history.Committed || !was.Observed || !write.Ops[0].Write || write.Ops[0].Object != was.Object {
				continue
			}
			if do(read, write) {
				return name
			}
			read.Ops[0] = was
		}
	}
	return ""
}

// onScan removes a record from a scan, but not the first one.
func onScan(rng *rand.Rand, w *store, may func(scan *history.Transaction, i int) bool) string {
	for _, at := range rng.Perm(len(w.Txns)) {
		tx := &w.Txns[at]
		if tx.Kind != kindScan || tx.Outcome != history.Committed || len(tx.Ops) < 2 {
			continue
		}
		if i := 1 + rng.IntN(len(tx.Ops)-1); may(tx, i) {
			tx.Ops = slices.Delete(tx.Ops, i, i+1)
			tx.Limit = max(tx.Limit, uint32(len(tx.Ops))+1)
			return Scans
		}
	}
	return ""
}

// TestWindowsFindPlants checks that a contradiction within a window is detected there.
func TestWindowsFindPlants(t *testing.T) {
	rounds := uint64(1500)
	if testing.Short() {
		rounds = 200
	}
	for name, plant := range windowPlants {
		t.Run(name, func(t *testing.T) {
			planted := 0
			for seed := range rounds {
				rng := rand.New(rand.NewPCG(seed, 37))
				w := windowOf(rng, busyClients(rng, 30+rng.IntN(60)))
				wanted := plant(rng, w)
				if wanted == "" {
					continue
				}
				planted++
				if r := checkKV(t, partOf(w))[wanted]; r.Status != check.Invalid {
					t.Fatalf("seed %d: %s is %v: %s\n%s", seed, wanted, r.Status, said(r), storeText(w))
				}
			}
			if planted < int(rounds)/10 {
				t.Errorf("%d windows had a place for it", planted)
			}
		})
	}
}

// TestPartTakesNoMemoryByTheData checks that a part of a history needs memory for the part only, however many
// records exist.
func TestPartTakesNoMemoryByTheData(t *testing.T) {
	s := busyStore()
	s.loaded = mostPlaces
	s.Incomplete = true
	in := partOf(s)
	k := newChecker(t.Context(), in)
	if err := k.read(); err != nil {
		t.Fatal(err)
	}
	if k.workers != 1 || len(k.index.loaded) > 0 || len(k.scanned.loaded) > 0 {
		t.Errorf("%d workers, an array of %d records, and %d places", k.workers, len(k.index.loaded), len(k.scanned.loaded))
	}
}
