package logs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// windowOf returns a part of a diary's history, as a check of a growing recording sees it.
func windowOf(rng *rand.Rand, d *diary) *diary {
	w := *d
	w.cut, w.endless = true, true
	w.txns = nil
	for _, tx := range checktest.Window(rng, d.txns, func(tx *history.Transaction) uint64 { return tx.ID.Client() }, 5) {
		own := *tx
		own.Ops = slices.Clone(tx.Ops)
		w.txns = append(w.txns, &own)
	}
	return &w
}

// TestWindowsOfCorrectLogs checks that no window of a correct log's history shows a violation.
func TestWindowsOfCorrectLogs(t *testing.T) {
	rounds := uint64(4000)
	if testing.Short() {
		rounds = 500
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 4))
		d := someDiary(rng, 20+rng.IntN(100))
		for range 3 {
			for name, r := range windowOf(rng, d).check(t) {
				if r.Status != check.Unknown || !r.Required {
					t.Fatalf("seed %d: %s is %v, required %v: %s", seed, name, r.Status, r.Required, said(r))
				}
			}
		}
	}
}

// TestWindowsAgainstDefinitions checks that a window is invalid if two of its appends contradict each other. The whole
// with its end state is then invalid too.
func TestWindowsAgainstDefinitions(t *testing.T) {
	rounds := uint64(6000)
	if testing.Short() {
		rounds = 1000
	}
	all, invalid, found := mutants(), 0, map[string]int{}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 5))
		d := someDiary(rng, 5+rng.IntN(20))
		for range rng.IntN(4) {
			switch m := all[rng.IntN(len(all))]; {
			case rng.IntN(2) == 0: // the client was given a position of another one, or near it
				if a, b := d.txns[rng.IntN(len(d.txns))], d.txns[rng.IntN(len(d.txns))]; a.Outcome == history.Committed && b.Outcome == history.Committed {
					a.Ops[0].Version = max(b.Ops[0].Version+1, 2) - 2 + uint64(rng.IntN(3))
				}
			case len(d.legs) > 0 && m.name != "a stream is gone":
				m.spoil(rng, d)
			}
		}
		w := windowOf(rng, d)
		results, want := w.check(t), contradicts(w)
		for name, r := range results {
			if bad := want && name == Order; bad != (r.Status == check.Invalid) || !bad && r.Status != check.Unknown {
				t.Fatalf("seed %d: %s is %v, and two appends contradict each other: %v\n%s", seed, name, r.Status, want, said(r))
			}
		}
		if !want {
			continue
		}
		invalid++
		for _, f := range results[Order].Findings {
			found[f.Kind()]++
		}
		r := d.check(t)[Order]
		if _, damaged := r.Why.(fact.Unreadable); r.Status != check.Invalid && !damaged {
			t.Fatalf("seed %d: order is invalid in a window, and of the whole %v: %s\n%s", seed, r.Status, said(r), said(results[Order]))
		}
	}
	t.Log(invalid, found)
	if len(found) < 3 || invalid < int(rounds)/20 {
		t.Errorf("of %d windows %d were invalid, for %v", rounds, invalid, found)
	}
}
