package totals

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// plant is one error in a correct history of several clients. It names the checks that must detect it, with
// their findings, the checks that may detect it, and the anomalies. Nothing else may be reported.
type plant struct {
	name  string
	make  func(w *world, rng *rand.Rand) map[string]wanted // by check that must be invalid: its finding
	also  string
	names []string
}

// last adds a transfer of a new client after all others.
func (w *world) last(kind history.Kind) *history.Transaction {
	for i := range w.Txns {
		w.now = max(w.now, w.Txns[i].End)
	}
	w.next = 1
	for i := range w.Txns {
		if w.Txns[i].ID.Client() == 50 {
			w.next++
		}
	}
	sequence := w.next
	tx := w.begin(kind)
	tx.ID = history.NewID(1, 50, sequence)
	return tx
}

// transferred adds such a transfer from account 0 to account 1.
func (w *world) transferred(amount int64) *history.Transaction {
	tx := w.last(kindTransfer)
	w.leg(tx, 0, -amount)
	w.leg(tx, 1, amount)
	return tx
}

// anyLeg returns a leg of the ledger whose transfer is the only one to change the account by this amount.
func (w *world) anyLeg(rng *rand.Rand) *history.Row {
	w.transferred(3)
	for {
		if l := &w.LedgerRows[rng.IntN(len(w.LedgerRows))]; l.Mark == 0 {
			return l
		}
	}
}

// otherLegs wants the finding of durable that a transfer has other legs than were sent.
func (w *world) otherLegs(id history.ID) wanted {
	return only(fact.Altered{By: id, Unknown: witness{w}.outcome(id.String(), history.Unknown)})
}

// wanted reports whether a finding is the expected one.
type wanted func(check.Finding) bool

// only wants a fact and no other one of its kind.
func only(what fact.Fact) wanted {
	return func(f check.Finding) bool { return f.Count == 1 && f.Instances[0] == what }
}

// one wants a fact among others of its kind.
func one[F fact.Fact](like func(F) bool) wanted {
	return func(f check.Finding) bool {
		return slices.ContainsFunc(f.Instances, func(what fact.Fact) bool { got, ok := what.(F); return ok && like(got) })
	}
}

// hasKind reports whether a result has a finding of the fact's kind.
func hasKind(r check.Result, what fact.Fact) bool {
	return slices.ContainsFunc(r.Findings, func(f check.Finding) bool { return f.Kind() == what.Fact() })
}

// number returns the name of an account in these tests.
func number(n uint64) fact.Object { return fact.Object(fmt.Sprintf("#%d", n)) }

// wrongBooks wants an account that disagrees with the ledger.
func wrongBooks(n uint64) wanted {
	return one(func(f fact.Books) bool { return f.Object == number(n) && f.Balance != f.Want })
}

var plants = []plant{
	{name: "an acknowledged transfer that was not applied", make: func(w *world, _ *rand.Rand) map[string]wanted {
		tx := w.last(kindTransfer)
		for i, amount := range []int64{-5, 5} {
			op := w.see(tx, uint64(i))
			op.Write, op.Amount = true, amount
		}
		return map[string]wanted{check.Durable: only(fact.Lost{By: tx.ID})}
	}},
	{name: "a transfer that was applied twice", also: check.Ledger, make: func(w *world, rng *rand.Rand) map[string]wanted {
		tx := w.transferred(5)
		id, version := tx.ID, w.ObjectRows[0].Version
		for i, amount := range []int64{-5, 5} {
			w.ObjectRows[i].Value += amount
			w.ObjectRows[i].Version++
		}
		if rng.IntN(2) == 0 {
			w.transferred(2)
		}
		return map[string]wanted{check.ExactlyOnce: one(func(f fact.TwoVersions) bool {
			return f == fact.TwoVersions{By: id, Object: "#0", Made: version, Seen: version + 1}
		})}
	}},
	{name: "a refused transfer that was read", also: check.Strict, names: []string{dirtyRead}, make: func(w *world, _ *rand.Rand) map[string]wanted {
		before, rows := slices.Clone(w.ObjectRows), len(w.LedgerRows)
		tx := w.transferred(5)
		tx.Outcome, tx.Reason = history.Rejected, noFunds
		for i := range tx.Ops {
			tx.Ops[i] = history.Op{Object: tx.Ops[i].Object, Write: true, Amount: tx.Ops[i].Amount}
		}
		id := tx.ID
		reader := w.last(kindInquiry)
		version := w.see(reader, 1).Version
		w.ObjectRows, w.LedgerRows = before, w.LedgerRows[:rows]
		return map[string]wanted{check.Serializable: one(func(f fact.OddRead) bool {
			return f.Reader.ID == reader.ID && f.Writer.ID == id && f.Writer.Refused && f.Object == "#1" && f.Version == version &&
				f.Fate == fact.NotApplied && f.Outcome == history.Rejected && f.Ended
		})}
	}},
	{name: "a transfer that was reported as aborted", make: func(w *world, _ *rand.Rand) map[string]wanted {
		tx := w.transferred(5)
		tx.Outcome = history.Aborted
		for i := range tx.Ops {
			tx.Ops[i] = history.Op{Object: tx.Ops[i].Object, Write: true, Amount: tx.Ops[i].Amount}
		}
		return map[string]wanted{check.NoGhost: only(fact.Ghost{By: tx.ID, Outcome: history.Aborted})}
	}},
	{name: "a leg of another amount", make: func(w *world, rng *rand.Rand) map[string]wanted {
		l := w.anyLeg(rng)
		l.Amount += 7
		return map[string]wanted{check.Durable: w.otherLegs(l.Transaction), check.Ledger: wrongBooks(l.Object)}
	}},
	{name: "a leg of another number", make: func(w *world, rng *rand.Rand) map[string]wanted {
		l := w.anyLeg(rng)
		l.Number += 2
		return map[string]wanted{check.Durable: w.otherLegs(l.Transaction)}
	}},
	{name: "a leg of a version more", make: func(w *world, rng *rand.Rand) map[string]wanted {
		l := w.anyLeg(rng)
		l.Version++
		if l.Version > w.ObjectRows[l.Object].Version {
			return map[string]wanted{check.Ledger: one(func(f fact.LaterLeg) bool {
				return f == fact.LaterLeg{Object: number(l.Object), Version: l.Version - 1}
			})}
		}
		return map[string]wanted{check.Ledger: one(func(f fact.SameVersion) bool {
			return f.Ledger && f.Closes && f.Version == l.Version && f.Object == number(l.Object)
		})}
	}},
	{name: "a leg of another account", make: func(w *world, rng *rand.Rand) map[string]wanted {
		l := w.anyLeg(rng)
		was := l.Object
		l.Object = (l.Object + 1) % uint64(len(w.ObjectRows))
		return map[string]wanted{check.Durable: w.otherLegs(l.Transaction), check.Ledger: wrongBooks(was)}
	}},
	{name: "a leg that is gone", make: func(w *world, rng *rand.Rand) map[string]wanted {
		l := *w.anyLeg(rng)
		w.LedgerRows = slices.DeleteFunc(w.LedgerRows, func(o history.Row) bool { return o == l })
		return map[string]wanted{check.Durable: w.otherLegs(l.Transaction), check.Ledger: wrongBooks(l.Object)}
	}},
	{name: "a tombstone that nobody sent", make: func(w *world, _ *rand.Rand) map[string]wanted {
		id := w.transferred(1).ID + 5
		w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: id, Mark: history.Tombstone})
		return map[string]wanted{check.NoGhost: only(fact.NeverSent{By: id, Tombstone: true})}
	}},
	{name: "an account that holds more", make: func(w *world, rng *rand.Rand) map[string]wanted {
		a := &w.ObjectRows[rng.IntN(len(w.ObjectRows))]
		a.Value += 7
		return map[string]wanted{check.Total: one(func(f fact.Sum) bool { return f.End-f.Load == 7 }), check.Ledger: wrongBooks(a.N)}
	}},
	{name: "an account of a version more", make: func(w *world, rng *rand.Rand) map[string]wanted {
		w.transferred(1)
		a := &w.ObjectRows[rng.IntN(len(w.ObjectRows))]
		a.Version++
		return map[string]wanted{check.Ledger: one(func(f fact.Books) bool {
			return f.Object == number(a.N) && f.Balance == f.Want && f.Version == a.Version && f.Legs == int(a.Version-1)
		})}
	}},
	{name: "a balance that nobody wrote", also: check.Strict, names: []string{garbageRead}, make: func(w *world, _ *rand.Rand) map[string]wanted {
		w.transferred(5)
		reader := w.last(kindInquiry)
		op := w.see(reader, 1)
		op.Value++
		return map[string]wanted{check.Serializable: one(func(f fact.GarbageRead) bool {
			return f.Reader.ID == reader.ID && f.Object == "#1" && f.Balance == f.Want+1
		})}
	}},
	{name: "a reader that names another writer", also: check.Strict, names: []string{nobodysRead}, make: func(w *world, _ *rand.Rand) map[string]wanted {
		id := w.transferred(5).ID
		w.transferred(6)
		reader := w.last(kindInquiry)
		op := w.see(reader, 1)
		op.Writer = id
		return map[string]wanted{check.Serializable: one(func(f fact.OddRead) bool {
			return f.Reader.ID == reader.ID && f.Writer.ID == id && f.Object == "#1" && f.Version == op.Version &&
				f.Fate == fact.AppliedAs && f.As == op.Version-1
		})}
	}},
}

// planted returns a correct history with one error, and the expected findings.
func planted(p plant, seed uint64) (*world, map[string]wanted) {
	rng := rand.New(rand.NewPCG(seed, 37))
	w := parallel(rng, 3+rng.IntN(6), 1+rng.IntN(6), 4+rng.IntN(30), false)
	return w, p.make(w, rng)
}

// TestEachPlantedErrorIsFound checks that each error is reported correctly, without other reports.
func TestEachPlantedErrorIsFound(t *testing.T) {
	for _, p := range plants {
		for seed := range checktest.Rounds(60, 300) {
			w, want := planted(p, seed)
			results := checktest.ByName(checked(w.input(isolation.StrictSerializable)))
			for name, r := range results {
				found, must := want[name]
				if must && (r.Status != check.Invalid || !slices.ContainsFunc(r.Findings, found)) {
					t.Errorf("%s, seed %d: %s is %v, and has no such finding: %.150s", p.name, seed, name, r.Status, r.Detail)
				}
				if r.Status == check.Invalid && !must && !strings.Contains(p.also, name) {
					t.Errorf("%s, seed %d: %s is invalid: %s", p.name, seed, name, r.Detail)
				}
				for _, a := range r.Anomalies {
					if !slices.Contains(p.names, a.Name) {
						t.Errorf("%s, seed %d: %s is named: %s", p.name, seed, a.Name, a.Detail)
					}
				}
			}
		}
	}
}
