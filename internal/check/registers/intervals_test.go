package registers

import (
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
)

// byWorkers divides a history between two workers whose clocks have errors.
func byWorkers(s *store, errors [2]int64) (list []check.Source) {
	for worker, error := range errors {
		h := &checktest.History{Run: 1, Keys: map[string]string{check.KeyClock: check.Clock{ID: "boot", From: 1000 - error, To: 1000 + error}.String()}}
		for _, tx := range s.Txns {
			if (tx.ID.Client() == 2) == (worker == 1) {
				h.Txns = append(h.Txns, tx)
			}
		}
		list = append(list, h)
	}
	return list
}

// foreseen reports whether a value was read before the only try of its write began, which is impossible.
func (o definitions) foreseen() bool {
	for i := range o.s.Txns {
		r := &o.s.Txns[i]
		op := &r.Ops[0]
		if r.Outcome != history.Committed || !op.Observed || op.Writer == 0 {
			continue
		}
		if w := o.write(op.Object, op.Writer); w != nil && w.Sent == w.Try && r.End < w.Try {
			return true
		}
	}
	return false
}

// TestIntervalsAgainstPorcupine compares linearizable with its definition when the clocks of two workers have bounded
// errors. The result may be valid only if every record has an order for every pair of errors. It may be invalid only if
// a record has no order for any pair.
func TestIntervalsAgainstPorcupine(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 7))
	counts := map[string]int{}
	for i := range checktest.Rounds(1500, 20000) {
		s := erratic(rng, 3+rng.IntN(9), 0.5+rng.Float64()/2)
		errors := [2]int64{rng.Int64N(8), rng.Int64N(8)}
		in := s.input()
		in.History = byWorkers(s, errors)
		r := checkKV(t, in)[Linearizable]
		all, none, feasible := true, true, false
		for by := -errors[0] - errors[1]; by <= errors[0]+errors[1]; by++ { // relative error
			moved := definitions{&store{End: s.End, loaded: s.loaded}}
			for _, tx := range s.Txns {
				if tx.ID.Client() == 2 {
					tx.Sent, tx.Try, tx.End = tx.Sent+by, tx.Try+by, tx.End+by
				}
				moved.s.Txns = append(moved.s.Txns, tx)
			}
			if moved.foreseen() {
				continue // the clocks cannot differ by this
			}
			feasible = true
			ok := moved.linearizable(0) && moved.linearizable(numberOfInsert(0))
			all, none = all && ok, none && !ok
		}
		switch {
		case !feasible:
			continue
		case r.Status == check.Valid && !all:
			t.Fatalf("history %d, errors %v: it is valid, and not for every error\n%s", i, errors, storeText(s))
		case r.Status == check.Invalid && !none:
			t.Fatalf("history %d, errors %v: it is invalid, and for some errors it is not: %s\n%s", i, errors, said(r), storeText(s))
		}
		counts[r.Status.String()]++
		switch {
		case all && r.Status != check.Valid:
			counts["missed valid"]++
		case none && r.Status != check.Invalid:
			counts["missed invalid"]++
		}
	}
	t.Logf("%v", counts)
	if counts["valid"] < 100 || counts["invalid"] < 100 || counts["unknown"] < 100 {
		t.Errorf("too few histories of one kind: %v", counts)
	}
}

// TestStaleAcrossWorkers checks stale reads between two workers. If the delay exceeds the clock errors, the
// read is found; otherwise the check is undecided. Within one worker, it is always found.
func TestStaleAcrossWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		client uint64 // the reader
		late   int64  // ns after the write was acknowledged
		want   check.Status
	}{
		"beyond": {2, 50, check.Invalid}, "within": {2, 15, check.Unknown}, "the same worker": {1, 1, check.Invalid},
		"begun before": {2, -40, check.Valid},
	} {
		s := newStore(1)
		s.Txns = []history.Transaction{
			{ID: history.NewID(1, 0, 1), Kind: kindPut, Outcome: history.Committed, Sent: 100, Try: 100, End: 200, Ops: []history.Op{{Object: 0, Write: true, Amount: valueBytes}}},
			{ID: history.NewID(1, c.client, 1), Kind: kindGet, Outcome: history.Committed, Sent: 200 + c.late, Try: 200 + c.late, End: 400,
				Ops: []history.Op{{Object: 0, Observed: true, State: history.Whole, Value: valueBytes}}},
		}
		s.ObjectRows = []history.Object{{N: 0, Value: valueBytes, State: history.Whole, Writer: history.NewID(1, 0, 1)}}
		in := s.input()
		in.History = byWorkers(s, [2]int64{10, 10})
		if r := checkKV(t, in)[Fresh]; r.Status != c.want {
			t.Errorf("%s: %v and not %v: %s", name, r.Status, c.want, said(r))
		}
	}
}
