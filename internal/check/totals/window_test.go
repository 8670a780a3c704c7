package totals

import (
	"math/rand/v2"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// windowed returns a part of the transactions, as a check of a growing recording sees them: four clients with
// different beginnings and ends.
func windowed(rng *rand.Rand, list []history.Transaction) []history.Transaction {
	return checktest.Window(rng, list, func(tx history.Transaction) uint64 { return tx.ID.Sequence() * 0x9e3779b9 >> 8 % 4 }, 6)
}

// TestPartAccusesNobody checks that a part of a correct recording has no violation.
func TestPartAccusesNobody(t *testing.T) {
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 24))
		w := parallel(rng, 3+rng.IntN(10), 1+rng.IntN(8), 20+rng.IntN(100), false)
		w.Txns, w.Incomplete = checktest.Window(rng, w.Txns, func(tx history.Transaction) uint64 { return tx.ID.Client() }, 6), true
		in := w.input(isolation.StrictSerializable)
		in.End, in.Audited = nil, []uint64{1}
		for _, r := range checked(in) {
			if r.Status == check.Invalid {
				t.Fatalf("seed %d: %s is invalid: %+v", seed, r.Name, r.Findings)
			}
		}
	}
}

// TestPartOfPredicatesAccusesNobody checks the same with predicates: a part may lack the transactions that
// took an account out of a predicate.
func TestPartOfPredicatesAccusesNobody(t *testing.T) {
	related := 0
	for seed := range checktest.Rounds(800, 4000) {
		b := newBranch(seed, 0)
		for range 20 + b.rng.IntN(100) {
			b.step()
		}
		in := b.input(1 << 40)
		b.Txns, b.Incomplete = windowed(b.rng, b.Txns), true
		in.End = nil
		for _, r := range checked(in) {
			if r.Status == check.Invalid && r.Name != check.NonNegative { // the paying accounts run out of money
				t.Fatalf("seed %d: %s is invalid: %s", seed, r.Name, r.Detail)
			}
		}
		all := newAccounts(t.Context(), in, 0)
		if err := all.read(); err != nil {
			t.Fatal(err)
		}
		related += len(all.predicates.missed)
	}
	if related < 1000 {
		t.Errorf("the windows have %d anti-dependencies of reads by predicate", related)
	}
}

// TestPartOfPredicatesShowsPhantoms checks that a violation in a part is one in the whole, and that many are
// found in a part.
func TestPartOfPredicatesShowsPhantoms(t *testing.T) {
	shown, hidden, phantoms := 0, 0, 0
	for seed := range checktest.Rounds(800, 4000) {
		b := newBranch(seed, 1+int(seed%2))
		for range 5 + b.rng.IntN(20) {
			b.step()
		}
		in := b.input(1 << 40)
		whole := checktest.ByName(checked(in))[check.Serializable]
		b.Txns, b.Incomplete = windowed(b.rng, b.Txns), true
		in.End = nil
		part := checktest.ByName(checked(in))[check.Serializable]
		switch invalid := part.Status == check.Invalid; {
		case invalid && whole.Status != check.Invalid:
			t.Fatalf("seed %d: a part is invalid and the whole is %v: %s", seed, whole.Status, part.Detail)
		case invalid:
			shown++
		case whole.Status == check.Invalid:
			hidden++
		}
		for _, f := range part.Findings {
			if missedByPredicate(f) {
				phantoms++
			}
		}
	}
	t.Logf("%d shown, %d hidden, %d phantoms", shown, hidden, phantoms)
	if n := int(checktest.Rounds(800, 4000)); shown < n/10 || phantoms < n/50 {
		t.Errorf("of %d parts %d were invalid, with %d phantoms; %d were not and the whole was", n, shown, phantoms, hidden)
	}
}

// TestPartOfGroupsAccusesNobody checks that a part of a correct recording of sums has no violation.
func TestPartOfGroupsAccusesNobody(t *testing.T) {
	for seed := range checktest.Rounds(600, 3000) {
		rng := rand.New(rand.NewPCG(seed, 41))
		g := newCounter(seed)
		g.versions = seed%3 > 0
		g.drive(100, false)
		g.spread(6)
		in := g.input()
		g.Txns, g.Incomplete = windowed(rng, g.Txns), true
		in.End = nil
		results, err := Groups(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Status == check.Invalid {
				t.Fatalf("seed %d: %s is invalid: %+v", seed, r.Name, r.Findings)
			}
		}
	}
}

// TestPartTakesLittleMemory checks that a part has the same results with an array over the load and with a
// map.
func TestPartTakesLittleMemory(t *testing.T) {
	for seed := range uint64(30) {
		w := parallel(rand.New(rand.NewPCG(seed, 24)), 6, 4, 60, seed%2 == 0)
		w.Incomplete = true
		in := w.input(isolation.StrictSerializable)
		in.End, in.Part, in.Audited = nil, true, []uint64{1}
		few := checked(in)
		in.Accounts = denseInPart + 1
		many := newAccounts(t.Context(), in, 0)
		results := many.results()
		if len(many.slots.dense) > 0 {
			t.Fatalf("there is an array of %d accounts", len(many.slots.dense))
		}
		for i := range few {
			if few[i].Name != check.Audits && few[i].Status != results[i].Status {
				t.Errorf("seed %d: %s is %v and %v", seed, few[i].Name, few[i].Status, results[i].Status)
			}
		}
	}
}

// TestPartBreaksNoOtherClaim checks that a claim broken by a part is broken by the whole.
func TestPartBreaksNoOtherClaim(t *testing.T) {
	claims := []isolation.Level{isolation.ReadCommitted, isolation.SnapshotIsolation, isolation.Serializable, isolation.StrictSerializable}
	shown, hidden := map[isolation.Level]int{}, map[isolation.Level]int{}
	for seed := range checktest.Rounds(300, 1500) {
		rng := rand.New(rand.NewPCG(seed, 43))
		w := weak(rng, 3+rng.IntN(4), 6+rng.IntN(30))
		switch seed % 3 {
		case 1:
			w = overwriting(rng, 3+rng.IntN(4), 6+rng.IntN(30))
		case 2:
			w = parallel(rng, 3+rng.IntN(6), 4, 10+rng.IntN(40), true)
		}
		part := *w
		part.Txns, part.Incomplete = windowed(rng, w.Txns), true
		breaks := func(w *world, claim isolation.Level, whole bool) (list []string) {
			in := w.input(claim)
			if !whole {
				in.End, in.Audited = nil, []uint64{1}
			}
			for _, r := range checked(in) {
				if r.Required && r.Status == check.Invalid {
					list = append(list, r.Name+": "+r.Detail)
				}
			}
			return list
		}
		for _, claim := range claims {
			here, all := breaks(&part, claim, false), breaks(w, claim, true)
			switch {
			case len(here) > 0 && len(all) == 0:
				t.Fatalf("seed %d: a part breaks %v and the whole does not: %v", seed, claim, here)
			case len(here) > 0:
				shown[claim]++
			case len(all) > 0:
				hidden[claim]++
			}
		}
	}
	t.Log(shown, hidden)
	if n := int(checktest.Rounds(300, 1500)); shown[isolation.SnapshotIsolation] < n/50 || shown[isolation.Serializable] < n/50 {
		t.Errorf("of %d parts these broke a claim: %v", n, shown)
	}
}
