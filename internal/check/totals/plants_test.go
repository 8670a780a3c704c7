package totals

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// plant is one fault in a healthy history of several clients: which checks must find it and
// what they say, with the ids and numbers of that fault, which others may, and which
// anomalies are named. Nothing else may be said to be wrong.
type plant struct {
	name  string
	make  func(w *world, rng *rand.Rand) map[string]string // what each check that must be invalid says
	also  string
	names []string
}

// last has a client of its own make a transfer after all others.
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

// transferred is such a transfer from account 0 to account 1.
func (w *world) transferred(amount int64) *history.Transaction {
	tx := w.last(kindTransfer)
	w.leg(tx, 0, -amount)
	w.leg(tx, 1, amount)
	return tx
}

// anyLeg is a leg of the ledger whose transfer changed it alone by that.
func (w *world) anyLeg(rng *rand.Rand) *history.Row {
	w.transferred(3)
	for {
		if l := &w.LedgerRows[rng.IntN(len(w.LedgerRows))]; l.Mark == 0 {
			return l
		}
	}
}

// otherLegs is what durable says of a transfer whose legs are not those that were sent.
func (w *world) otherLegs(id history.ID) string {
	if (witness{w}).outcome(id.String(), history.Unknown) {
		return fmt.Sprintf("1 transfer of unknown outcome whose legs in the ledger are not those that were sent: %v.", id)
	}
	return fmt.Sprintf("1 transfer whose legs in the ledger are not those that were acknowledged: %v.", id)
}

var plants = []plant{
	{name: "an acknowledged transfer that was not applied", make: func(w *world, _ *rand.Rand) map[string]string {
		tx := w.last(kindTransfer)
		for i, amount := range []int64{-5, 5} {
			op := w.see(tx, uint64(i))
			op.Write, op.Amount = true, amount
		}
		return map[string]string{check.Durable: fmt.Sprintf("1 transfer acknowledged and lost: %v.", tx.ID)}
	}},
	{name: "a transfer that was applied twice", also: check.Ledger, make: func(w *world, rng *rand.Rand) map[string]string {
		tx := w.transferred(5)
		id, version := tx.ID, w.ObjectRows[0].Version
		for i, amount := range []int64{-5, 5} {
			w.ObjectRows[i].Value += amount
			w.ObjectRows[i].Version++
		}
		if rng.IntN(2) == 0 {
			w.transferred(2)
		}
		return map[string]string{check.ExactlyOnce: fmt.Sprintf("Transfer %v made version %d of account #0 and was seen as the maker of version %d: it was applied twice.", id, version, version+1)}
	}},
	{name: "a refused transfer that was read", also: check.Strict, names: []string{dirtyRead}, make: func(w *world, _ *rand.Rand) map[string]string {
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
		return map[string]string{check.Serializable: fmt.Sprintf("inquiry %v read version %d of account #1 as made by refused transfer %v, which was rejected and is not in the ledger", reader.ID, version, id)}
	}},
	{name: "a transfer that was reported as aborted", make: func(w *world, _ *rand.Rand) map[string]string {
		tx := w.transferred(5)
		tx.Outcome = history.Aborted
		for i := range tx.Ops {
			tx.Ops[i] = history.Op{Object: tx.Ops[i].Object, Write: true, Amount: tx.Ops[i].Amount}
		}
		return map[string]string{check.NoGhost: fmt.Sprintf("1 transfer reported as not applied, yet in the ledger: %v.", tx.ID)}
	}},
	{name: "a leg of another amount", make: func(w *world, rng *rand.Rand) map[string]string {
		l := w.anyLeg(rng)
		l.Amount += 7
		return map[string]string{check.Durable: w.otherLegs(l.Transaction), check.Ledger: fmt.Sprintf("Account #%d holds ", l.Object)}
	}},
	{name: "a leg of another number", make: func(w *world, rng *rand.Rand) map[string]string {
		l := w.anyLeg(rng)
		l.Number += 2
		return map[string]string{check.Durable: w.otherLegs(l.Transaction)}
	}},
	{name: "a leg of a version more", make: func(w *world, rng *rand.Rand) map[string]string {
		l := w.anyLeg(rng)
		l.Version++
		if l.Version > w.ObjectRows[l.Object].Version {
			return map[string]string{check.Ledger: fmt.Sprintf("Account #%d ends at version %d, and the ledger has a leg of a later version.", l.Object, l.Version-1)}
		}
		return map[string]string{check.Ledger: fmt.Sprintf("are both in the ledger as the maker of version %d of account #%d, which holds the amounts of both.", l.Version, l.Object)}
	}},
	{name: "a leg of another account", make: func(w *world, rng *rand.Rand) map[string]string {
		l := w.anyLeg(rng)
		was := l.Object
		l.Object = (l.Object + 1) % uint64(len(w.ObjectRows))
		return map[string]string{check.Durable: w.otherLegs(l.Transaction), check.Ledger: fmt.Sprintf("Account #%d holds ", was)}
	}},
	{name: "a leg that is gone", make: func(w *world, rng *rand.Rand) map[string]string {
		l := *w.anyLeg(rng)
		w.LedgerRows = slices.DeleteFunc(w.LedgerRows, func(o history.Row) bool { return o == l })
		return map[string]string{check.Durable: w.otherLegs(l.Transaction), check.Ledger: fmt.Sprintf("Account #%d holds ", l.Object)}
	}},
	{name: "a tombstone that nobody sent", make: func(w *world, _ *rand.Rand) map[string]string {
		id := w.transferred(1).ID + 5
		w.LedgerRows = append(w.LedgerRows, history.Row{Transaction: id, Mark: history.Tombstone})
		return map[string]string{check.NoGhost: fmt.Sprintf("1 transfer with a tombstone in the ledger that no client ever sent: %v.", id)}
	}},
	{name: "an account that holds more", make: func(w *world, rng *rand.Rand) map[string]string {
		a := &w.ObjectRows[rng.IntN(len(w.ObjectRows))]
		a.Value += 7
		return map[string]string{check.Total: "0.07 net appeared from nowhere", check.Ledger: fmt.Sprintf("Account #%d holds ", a.N)}
	}},
	{name: "an account of a version more", make: func(w *world, rng *rand.Rand) map[string]string {
		w.transferred(1)
		a := &w.ObjectRows[rng.IntN(len(w.ObjectRows))]
		a.Version++
		return map[string]string{check.Ledger: fmt.Sprintf("Account #%d has version %d but %d ledger leg", a.N, a.Version, a.Version-1)}
	}},
	{name: "a balance that nobody wrote", also: check.Strict, names: []string{garbageRead}, make: func(w *world, _ *rand.Rand) map[string]string {
		w.transferred(5)
		reader := w.last(kindInquiry)
		op := w.see(reader, 1)
		op.Value++
		return map[string]string{check.Serializable: fmt.Sprintf("inquiry %v read balance", reader.ID)}
	}},
	{name: "a reader that names another writer", also: check.Strict, names: []string{nobodysRead}, make: func(w *world, _ *rand.Rand) map[string]string {
		id := w.transferred(5).ID
		w.transferred(6)
		reader := w.last(kindInquiry)
		op := w.see(reader, 1)
		op.Writer = id
		return map[string]string{check.Serializable: fmt.Sprintf("inquiry %v read version %d of account #1 as made by transfer %v, which made version %d of it by the ledger", reader.ID, op.Version, id, op.Version-1)}
	}},
}

// planted is a healthy history with a fault in it, and what must be said.
func planted(p plant, seed uint64) (*world, map[string]string) {
	rng := rand.New(rand.NewPCG(seed, 37))
	w := parallel(rng, 3+rng.IntN(6), 1+rng.IntN(6), 4+rng.IntN(30), false)
	return w, p.make(w, rng)
}

// TestPlants: each fault is found as what it is, and as nothing else.
func TestPlants(t *testing.T) {
	for _, p := range plants {
		for seed := range checktest.Rounds(60, 300) {
			w, want := planted(p, seed)
			results := checktest.ByName(checked(w.input(isolation.StrictSerializable)))
			for name, r := range results {
				said, must := want[name]
				if must && (r.Status != check.Invalid || !strings.Contains(r.Detail, said)) {
					t.Errorf("%s, seed %d: %s is %v, and does not say %q: %.150s", p.name, seed, name, r.Status, said, r.Detail)
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
