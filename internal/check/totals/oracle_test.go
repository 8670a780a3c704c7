package totals

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// weak runs a few transactions on a store with stale reads, where versions follow the order of commits. Every
// read anomaly occurs.
func weak(rng *rand.Rand, accounts, count int) *world {
	w := newWorld(accounts)
	past := make([][]history.Object, accounts)
	for n := range past {
		past[n] = []history.Object{w.ObjectRows[n]}
	}
	for range count {
		tx := w.begin([]history.Kind{kindInquiry, kindJoint, kindTransfer}[rng.IntN(3)])
		tx.Try -= rng.Int64N(4000)
		tx.Sent, tx.Due = tx.Try, tx.Try
		order := rng.Perm(accounts)
		if tx.Kind != kindTransfer {
			for _, n := range order[2:min(accounts, 2+1+rng.IntN(2))] {
				back := min(rng.IntN(3), len(past[n])-1)
				a := past[n][len(past[n])-1-back]
				tx.Ops = append(tx.Ops, history.Op{Object: a.N, Observed: true, Version: a.Version, Value: a.Value, Writer: a.Writer})
			}
		}
		if tx.Kind != kindInquiry {
			amount := rng.Int64N(9) + 1
			w.leg(tx, uint64(order[0]), -amount)
			w.leg(tx, uint64(order[1]), amount)
			for _, n := range order[:2] {
				past[n] = append(past[n], w.ObjectRows[n])
			}
		}
	}
	return w
}

// possible reports, by trying every order, whether one explains every read: the definition of serializability
// and, with real, of strict serializability.
func possible(w *world, real bool) bool {
	if !real {
		return explained(w, nil)
	}
	return explained(w, func(ended, began *history.Transaction) bool { return ended.End < began.Try })
}

// explained is like possible, with real time given as a relation; nil means no real time.
func explained(w *world, real func(ended, began *history.Transaction) bool) bool {
	type state struct {
		version []uint64
		last    []history.ID
	}
	n := len(w.Txns)
	s := state{make([]uint64, len(w.ObjectRows)), make([]history.ID, len(w.ObjectRows))}
	var search func(done uint) bool
	search = func(done uint) bool {
		if done == 1<<n-1 {
			return true
		}
	next:
		for i := range w.Txns {
			if done&(1<<i) != 0 {
				continue
			}
			tx := &w.Txns[i]
			for j := range w.Txns {
				if real != nil && j != i && done&(1<<j) == 0 && real(&w.Txns[j], tx) {
					continue next
				}
			}
			for _, op := range tx.Ops {
				if s.version[op.Object] != op.Version || s.last[op.Object] != op.Writer {
					continue next
				}
			}
			for _, op := range tx.Ops {
				if op.Write {
					s.version[op.Object]++
					s.last[op.Object] = tx.ID
				}
			}
			ok := search(done | 1<<i)
			for _, op := range tx.Ops {
				if op.Write {
					s.version[op.Object]--
					s.last[op.Object] = op.Writer
				}
			}
			if ok {
				return true
			}
		}
		return false
	}
	return search(0)
}

// TestOrderAgainstDefinition compares both graph checks with the definition on thousands of small histories,
// about half of which are wrong.
func TestOrderAgainstDefinition(t *testing.T) {
	var counts [2][2]int
	for seed := range checktest.Rounds(4000, 20000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := weak(rng, 3+rng.IntN(3), 2+rng.IntN(6))
		results := checktest.ByName(checked(w.input(isolation.StrictSerializable)))
		for i, name := range []string{check.Serializable, check.Strict} {
			want := check.Invalid
			if possible(w, i == 1) {
				want = check.Valid
			}
			counts[i][want-check.Valid]++
			if got := results[name].Status; got != want {
				t.Fatalf("seed %d: %s is %v, the oracle says %v: %s", seed, name, got, want, results[name].Detail)
			}
		}
	}
	for i, c := range counts {
		if c[0] < 200 || c[1] < 200 {
			t.Errorf("check %d: %d valid and %d invalid histories are too few of one kind to prove anything", i, c[0], c[1])
		}
	}
}

// TestSnapshotStoreKeepsItsLevel compares the decision about snapshot isolation with a store that provides
// exactly that. No history may break the claim, and some must break serializability.
func TestSnapshotStoreKeepsItsLevel(t *testing.T) {
	skews := 0
	for seed := range uint64(400) {
		w := snapshotStore(rand.New(rand.NewPCG(seed, 9)), 6, 40)
		results := checked(w.input(isolation.SnapshotIsolation))
		if checktest.Verdict(results) != check.Valid {
			t.Fatalf("seed %d: a snapshot-isolated history is called %v: %+v", seed, checktest.Verdict(results), checktest.ByName(results)[check.Serializable])
		}
		if checktest.ByName(results)[check.Serializable].Status == check.Invalid {
			skews++
		}
	}
	if skews < 20 {
		t.Errorf("only %d of 400 histories had a write skew", skews)
	}
}

// snapshotStore interleaves transactions that read from the snapshot at their beginning. They commit only if
// no other transaction changed what they write.
func snapshotStore(rng *rand.Rand, accounts, count int) *world {
	w := newWorld(accounts)
	type open struct {
		tx       int
		snapshot []history.Object
	}
	var running []open
	for range count {
		if len(running) < 3 {
			w.begin(kindJoint)
			running = append(running, open{len(w.Txns) - 1, append([]history.Object(nil), w.ObjectRows...)})
			continue
		}
		k := rng.IntN(len(running))
		o := running[k]
		running = append(running[:k], running[k+1:]...)
		tx := &w.Txns[o.tx]
		order := rng.Perm(accounts)
		w.now += 1000
		tx.End = w.now
		for _, n := range order[2:4] {
			a := o.snapshot[n]
			tx.Ops = append(tx.Ops, history.Op{Object: a.N, Observed: true, Version: a.Version, Value: a.Value, Writer: a.Writer})
		}
		if o.snapshot[order[0]] != w.ObjectRows[order[0]] || o.snapshot[order[1]] != w.ObjectRows[order[1]] {
			tx.Outcome, tx.Ops = history.Aborted, nil
			continue
		}
		w.leg(tx, uint64(order[0]), -1)
		w.leg(tx, uint64(order[1]), 1)
	}
	for _, o := range running {
		w.Txns[o.tx].Outcome = history.Aborted
	}
	return w
}

// TestCutOffAccusesNobody checks that missing records are not evidence, with or without the end state.
func TestCutOffAccusesNobody(t *testing.T) {
	for seed := range uint64(400) {
		w := busy(seed, 12, 200)
		w.Incomplete = true
		rng := rand.New(rand.NewPCG(seed, 3))
		w.Txns = slices.DeleteFunc(w.Txns, func(history.Transaction) bool { return rng.IntN(8) == 0 })
		in := w.input(isolation.StrictSerializable)
		in.Audited = []uint64{1}
		if seed%2 == 0 {
			in.End = nil
		}
		for _, r := range checked(in) {
			if r.Status == check.Invalid {
				t.Fatalf("seed %d, end state %v: %s is invalid: %s", seed, in.End != nil, r.Name, r.Detail)
			}
		}
	}
}

// TestMissingInputIsUndecided checks that missing inputs make checks unknown, never valid.
func TestMissingInputIsUndecided(t *testing.T) {
	w := newWorld(4)
	w.transfer(0, 1, 5)
	for _, tc := range []struct {
		name    string
		bend    func(in *AccountsInput)
		unknown []string
	}{
		{"no end state", func(in *AccountsInput) { in.End = nil }, []string{check.Total, check.NonNegative, check.Ledger, check.Durable, check.NoGhost, check.ExactlyOnce, check.Serializable, check.Strict}},
		{"no history", func(in *AccountsInput) { in.History = nil }, []string{check.Durable, check.NoGhost, check.ExactlyOnce, check.Serializable, check.Strict}},
		{"cut off", func(in *AccountsInput) { w.Incomplete = true }, []string{check.NoGhost, check.Serializable, check.Strict}},
		{"unreadable", func(in *AccountsInput) { w.Err = errUnreadable; w.Incomplete = false }, []string{check.Total, check.Ledger, check.Durable, check.NoGhost, check.Serializable}},
	} {
		in := w.input(isolation.Serializable)
		tc.bend(&in)
		results := checked(in)
		for _, name := range tc.unknown {
			if r := checktest.ByName(results)[name]; r.Status != check.Unknown || r.Detail == "" {
				t.Errorf("%s: %s is %v (%s)", tc.name, name, r.Status, r.Detail)
			}
		}
		if checktest.Verdict(results) != check.Unknown {
			t.Errorf("%s: verdict %v", tc.name, checktest.Verdict(results))
		}
	}
	if checktest.Verdict(nil) != check.Unknown {
		t.Error("no results at all must be unknown")
	}
}

type unreadable struct{}

func (unreadable) Error() string { return "block at 17 is damaged" }

var errUnreadable = unreadable{}

func BenchmarkBank(b *testing.B) {
	w := newWorld(10000)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200_000 {
		from := rng.Uint64N(10000)
		w.transfer(from, (from+1+rng.Uint64N(9999))%10000, 1)
	}
	in := w.input(isolation.StrictSerializable)
	b.ResetTimer()
	for b.Loop() {
		if checktest.Verdict(checked(in)) == check.Invalid {
			b.Fatal("invalid")
		}
	}
	b.ReportMetric(float64(len(w.Txns))*float64(b.N)/b.Elapsed().Seconds(), "transactions/s")
}

// overwriting interleaves transfers that read, wait, and then write what they had computed, which READ
// COMMITTED allows. Updates are lost, but every read is of a committed value.
func overwriting(rng *rand.Rand, accounts, count int) *world {
	w := newWorld(accounts)
	type open struct {
		tx   int
		seen []history.Object
	}
	var running []open
	for range count {
		if len(running) < 4 && rng.IntN(2) == 0 || len(running) == 0 {
			tx := w.begin(kindTransfer)
			order := rng.Perm(accounts)
			o := open{tx: len(w.Txns) - 1}
			for i, n := range order[:2] {
				a := w.ObjectRows[n]
				o.seen = append(o.seen, a)
				tx.Ops = append(tx.Ops, history.Op{
					Object: a.N, Write: true, Amount: int64(2*i - 1), Observed: true, Version: a.Version, Value: a.Value, Writer: a.Writer,
				})
			}
			running = append(running, o)
			continue
		}
		k := rng.IntN(len(running))
		o := running[k]
		running = append(running[:k], running[k+1:]...)
		tx := &w.Txns[o.tx]
		w.now += 1000
		tx.End = w.now
		for i, a := range o.seen {
			w.ObjectRows[a.N] = history.Object{N: a.N, Value: a.Value + tx.Ops[i].Amount, Version: a.Version + 1, Writer: tx.ID}
			w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: tx.ID, Number: uint32(i), Object: a.N, Amount: tx.Ops[i].Amount, Version: a.Version + 1})
		}
	}
	for _, o := range running {
		w.Txns[o.tx].Outcome = history.Aborted
	}
	return w
}

// TestLostUpdatesAccuseNoWeakerLevel checks that lost updates do not lead to violations of READ COMMITTED.
// With lost updates, version numbers define no order.
func TestLostUpdatesAccuseNoWeakerLevel(t *testing.T) {
	lost := 0
	for seed := range uint64(400) {
		w := overwriting(rand.New(rand.NewPCG(seed, 11)), 4, 80)
		r := checktest.ByName(checked(w.input(isolation.ReadCommitted)))[check.Serializable]
		for _, a := range r.Anomalies {
			if a.Forbidden <= isolation.ReadCommitted {
				t.Fatalf("seed %d: %s is named: %s", seed, a.Name, a.Detail)
			}
			if a.Name == "lost update (P4)" {
				lost++
			}
		}
		if r.Status == check.Invalid && r.Required {
			t.Fatalf("seed %d: a claim of READ COMMITTED is broken: %s", seed, r.Detail)
		}
	}
	if lost < 300 {
		t.Errorf("only %d of 400 histories lost an update", lost)
	}
}
