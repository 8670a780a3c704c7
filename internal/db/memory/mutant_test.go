package memory

import (
	"fmt"
	"slices"
	"testing"
)

// seen counts each kind of damage by the test's own knowledge. It compares pairs and sums directly, without any
// checker.
func (e *end) seen() map[string]int {
	found := map[string]int{}
	e.sums(found)
	e.outcomes(found)
	e.orders(found)
	return found
}

// sums compares balances and versions with the ledger.
func (e *end) sums(found map[string]int) {
	moved, legs := make([]int64, e.bank.accounts), make([]int64, e.bank.accounts)
	for _, ls := range e.ledger {
		for _, l := range ls {
			moved[l.n] += l.amount
			legs[l.n]++
		}
	}
	total, broken := int64(0), 0
	for n, a := range e.accounts {
		total += a.balance
		if opening+moved[n] != a.balance {
			broken++
		}
		if legs[n] < a.version {
			found["double-apply"]++
		}
		if legs[n] > a.version {
			found["lost version"]++
		}
	}
	if total > int64(e.bank.accounts)*opening {
		found["phantom-money"]++
	}
	if total != int64(e.bank.accounts)*opening {
		found["torn"]++
	} else if broken > 0 {
		found["swap"]++
	}
	if broken > 0 {
		found["ledger"]++
	}
}

// outcomes compares the outcomes reported to clients with the ledger.
func (e *end) outcomes(found map[string]int) {
	for _, tx := range e.all {
		legs, there := e.ledger[tx.id]
		switch {
		case tx.kind == inquiry:
		case tx.outcome == committed && !there:
			found["lost-ack"]++
		case tx.outcome == lied && there:
			found["ghost"]++
		case tx.outcome == settled && len(legs) > 0:
			found["unknown-lies"]++
		case (tx.outcome == rejected || tx.outcome == aborted) && there:
			found["ghost"]++
		}
		for _, l := range tx.legs {
			if tx.outcome == committed && l.write && l.saw.balance+l.amount < 0 {
				found["overdraft"]++
			}
		}
	}
}

// orders compares the reads of committed transactions with the writers.
func (e *end) orders(found map[string]int) {
	type at struct {
		n       int
		version int64
	}
	writers := map[at]int64{}      // by the version they made
	acked := map[at]int64{}        // when the client knew of it
	legs := map[int64][]leg{}      // of committed transfers
	readers := map[[2]int][]done{} // inquiries by their two accounts
	for _, tx := range e.all {
		if tx.outcome != committed {
			continue
		}
		for _, l := range tx.legs {
			if l.write {
				w := at{l.n, l.saw.version + 1}
				if _, twice := writers[w]; twice {
					found["lost-update"]++
				}
				writers[w], acked[w] = tx.id, tx.end
				legs[tx.id] = append(legs[tx.id], l)
			}
		}
	}
	for _, tx := range e.all {
		if tx.outcome != committed {
			continue
		}
		for _, l := range tx.legs {
			w, known := writers[at{l.n, l.saw.version}]
			if l.saw.version > 0 && (!known || w != l.saw.last) {
				found["dirty-read"]++
			}
			if end, known := acked[at{l.n, l.saw.version + 1}]; known && end < tx.start && tx.kind == inquiry {
				found["stale-read"]++
			}
			if !l.write && tx.kind == joint {
				e.skews(found, tx, writers[at{l.n, l.saw.version + 1}])
			}
		}
		if tx.kind == inquiry {
			a, b := tx.legs[0], tx.legs[1]
			if halves(a, b, legs, writers[at{a.n, a.saw.version}]) || halves(b, a, legs, writers[at{b.n, b.saw.version}]) {
				found["read-skew"]++
			}
			pair := [2]int{min(a.n, b.n), max(a.n, b.n)}
			if a.n > b.n {
				tx.legs = []leg{b, a}
			}
			for _, other := range readers[pair] {
				x := tx.legs[0].saw.version - other.legs[0].saw.version
				y := tx.legs[1].saw.version - other.legs[1].saw.version
				if x > 0 && y < 0 || x < 0 && y > 0 {
					found["long-fork"]++
				}
			}
			readers[pair] = append(readers[pair], tx)
		}
	}
}

// halves reports whether a reader saw x after a transfer and y before the same transfer.
func halves(x, y leg, legs map[int64][]leg, writer int64) bool {
	return slices.ContainsFunc(legs[writer], func(l leg) bool { return l.n == y.n && y.saw.version <= l.saw.version })
}

// skews counts pairs of transfers in which each overwrote what the other had read and not written. next is the
// transfer that overwrote what tx had read.
func (e *end) skews(found map[string]int, tx done, next int64) {
	other, ok := e.byID[next]
	if !ok || other.kind != joint || next == tx.id {
		return
	}
	for _, l := range other.legs {
		for _, mine := range tx.legs {
			if !l.write && mine.write && l.n == mine.n && mine.saw.version >= l.saw.version {
				found["write-skew"]++
			}
		}
	}
}

// damage returns the key of seen that shows a mutant.
func damage(mutant string) string {
	switch mutant {
	case crashMutant:
		return "lost-ack"
	case "torn": // visible in the sum too, unless several lost amounts add up to zero
		return "ledger"
	}
	return mutant
}

// leastDamage returns how often damage must be seen after a number of shots. Damage to a sum is seen once. Some other
// damage may hide: two lost updates of one version are seen as one, and a stale read may be too late by the clients'
// clock.
func leastDamage(mutant string, fired int) int {
	switch mutant {
	case "torn", "phantom-money", "swap":
		return 1
	}
	return max(1, fired/2)
}

func TestEveryMutantIsDetected(t *testing.T) {
	seeds := 2 // internal/dbtest has twenty, with the real checks
	if testing.Short() {
		seeds = 1
	}
	for _, m := range mutants() {
		t.Run(m.Name, func(t *testing.T) {
			least, most := 1<<30, 0
			for seed := range seeds {
				url := fmt.Sprintf("memory:?mutant=%s&rate=0.001&seed=%d", m.Name, seed+1)
				b := openBank(t, url, 1000)
				b.drive(uint64(seed), 25_000)
				found := b.finish().seen()
				fired := b.d.Fired()
				least, most = min(least, fired), max(most, fired)
				if fired == 0 || found[damage(m.Name)] < leastDamage(m.Name, fired) {
					t.Errorf("%s: fired %d shots, found %v", url, fired, found)
				}
				if seed == 0 {
					t.Logf("seed 1: fired %d shots, found %v", fired, found)
				}
			}
			t.Logf("%d to %d shots", least, most)
		})
	}
}

// mutants returns the mutants of a test that looks for their damage. Under the race detector, which costs a factor of
// ten, one is enough, because all share their code except for the wrong line.
func mutants() []Mutant {
	if raceEnabled {
		return Mutants()[:1]
	}
	return slices.DeleteFunc(Mutants(), func(m Mutant) bool { return m.Name == "phantom" }) // this bank reads no ranges
}

// TestAbortsAndLostAnswersHideNoMutant checks that honest refusals and lost answers hide no mutant.
func TestAbortsAndLostAnswersHideNoMutant(t *testing.T) {
	for _, m := range mutants() {
		url := "memory:?unknown=0.01&abort=0.02&mutant=" + m.Name
		b := openBank(t, url, 1000)
		b.drive(1, 25_000)
		if found := b.finish().seen(); b.d.Fired() == 0 || found[damage(m.Name)] == 0 {
			t.Errorf("%s: fired %d shots, found %v", url, b.d.Fired(), found)
		}
	}
}

func TestHealthyStoreHasNoAnomaly(t *testing.T) {
	seeds := uint64(3)
	if raceEnabled {
		seeds = 1
	}
	for _, url := range []string{"memory:", "memory:?unknown=0.01&abort=0.05&seed=7", "memory:?mutant=torn&rate=0"} {
		for seed := range seeds {
			b := openBank(t, url, 1000)
			b.drive(seed, 25_000)
			if found := b.finish().seen(); len(found) > 0 || b.d.Fired() != 0 {
				t.Errorf("%s, drive %d: fired %d shots, found %v", url, seed, b.d.Fired(), found)
			}
		}
	}
}

// TestMutantsDoNotDamageTheLoad checks that no mutant damages a database that is only loaded and read.
func TestMutantsDoNotDamageTheLoad(t *testing.T) {
	for _, m := range Mutants() {
		b := openBank(t, "memory:?rate=1&mutant="+m.Name, 1000)
		if found := b.finish().seen(); len(found) > 0 || b.d.Fired() != 0 {
			t.Errorf("%s: fired %d shots, found %v", m.Name, b.d.Fired(), found)
		}
	}
}
