package totals

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

const (
	kindOpening    = 4 * history.Numbered
	kindClosing    = 5 * history.Numbered
	kindWithdrawal = 6 * history.Numbered
	kindTopUp      = 7 * history.Numbered
	kindPredicate  = 2*history.Numbered | history.ReadOnly
	kindLow        = 3*history.Numbered | history.ReadOnly

	low    = 10 // cents
	loaded = 4  // accounts; the groups are the even and the odd ones, with anchors 0 and 1
)

// branch is a bank whose clients open and close accounts. A transaction may read an old state of each
// account; its writes change the latest state.
type branch struct {
	*world
	rng      *rand.Rand
	oldest   int                // maximal age of a read, in states
	balances bool               // no account is opened: only balances change
	past     [][]history.Object // by account: its past states, the latest one last
}

func newBranch(seed uint64, oldest int) *branch {
	b := &branch{world: newWorld(loaded), rng: rand.New(rand.NewPCG(seed, 17)), oldest: oldest}
	for _, a := range b.ObjectRows {
		b.past = append(b.past, []history.Object{a})
	}
	return b
}

func (b *branch) newest(n uint64) history.Object { return b.past[n][len(b.past[n])-1] }

// see reads some state of an account, if it satisfies the predicate.
func (b *branch) see(tx *history.Transaction, n uint64, lowOnes bool) {
	back := 0
	if b.oldest > 0 {
		back = min(b.rng.IntN(b.oldest+1), len(b.past[n])-1)
	}
	if a := b.past[n][len(b.past[n])-1-back]; a.State != history.Absent && (!lowOnes || a.Value < low) {
		tx.Ops = append(tx.Ops, history.Op{Object: n, Observed: true, Version: a.Version, Value: a.Value, Writer: a.Writer})
	}
}

// write adds a leg that leaves the account in a state.
func (b *branch) write(tx *history.Transaction, n uint64, amount int64, state history.State) {
	a := b.newest(n)
	op := history.Op{Object: n, Write: true, Amount: amount, Observed: true, State: a.State, Version: a.Version, Value: a.Value, Writer: a.Writer}
	number := uint32(0)
	for i := range tx.Ops {
		if tx.Ops[i].Write {
			number++
		}
	}
	tx.Ops = append(tx.Ops, op)
	b.past[n] = append(b.past[n], history.Object{N: n, Value: a.Value + amount, Version: a.Version + 1, Writer: tx.ID, State: state})
	b.LedgerRows = append(b.LedgerRows, history.Row{Transaction: tx.ID, Number: number, Object: n, Amount: amount, Version: a.Version + 1})
}

// readGroup reads a group's anchor and its accounts, or only the low ones, except for account but.
func (b *branch) readGroup(tx *history.Transaction, group uint64, lowOnes bool, but uint64) {
	b.see(tx, group, false)
	for n := uint64(loaded); n < uint64(len(b.past)); n++ {
		if n%2 == group && n != but {
			b.see(tx, n, lowOnes)
		}
	}
}

// readOf returns a transaction's read by predicate. Its first operation is on the anchor.
func readOf(tx *history.Transaction) (q Predicate, ok bool) {
	switch tx.Kind {
	case kindOpening, kindPredicate, kindWithdrawal, kindLow:
		return Predicate{tx.Ops[0].Object, tx.Kind == kindWithdrawal || tx.Kind == kindLow}, true
	}
	return Predicate{}, false
}

// draw withdraws from an account until it is low.
func (b *branch) draw(n, payee uint64) *history.Transaction {
	tx := b.begin(kindWithdrawal)
	b.readGroup(tx, n%2, true, n)
	amount := b.newest(n).Value - 1 - b.rng.Int64N(low-1)
	b.write(tx, n, -amount, 0)
	b.write(tx, payee, amount, 0)
	return tx
}

// topUp pays from the anchor until an account is no longer low.
func (b *branch) topUp(n uint64) *history.Transaction {
	tx := b.begin(kindTopUp)
	b.write(tx, n, low, 0)
	b.write(tx, n%2, -low, 0)
	return tx
}

func (b *branch) open(group, payer uint64) *history.Transaction {
	tx := b.begin(kindOpening)
	b.readGroup(tx, group, false, math.MaxUint64)
	n := uint64(len(b.past))
	n += (n + group) % 2 // a number may stay unused
	for len(b.past) <= int(n) {
		b.past = append(b.past, []history.Object{{N: uint64(len(b.past)), State: history.Absent}})
	}
	amount := 10 + b.rng.Int64N(90)
	b.write(tx, payer, -amount, 0)
	b.write(tx, n, amount, 0)
	return tx
}

func (b *branch) close(n uint64) *history.Transaction {
	tx := b.begin(kindClosing)
	held := b.newest(n).Value
	b.write(tx, n, -held, history.Absent)
	b.write(tx, n%2, held, 0)
	return tx
}

// opened returns the open accounts.
func (b *branch) opened() (list []uint64) {
	for n := uint64(loaded); n < uint64(len(b.past)); n++ {
		if a := b.newest(n); a.State != history.Absent {
			list = append(list, n)
		}
	}
	return list
}

// step makes one random transaction.
func (b *branch) step() {
	open := b.opened()
	switch u := b.rng.IntN(10); {
	case u < 3 && !b.balances:
		b.open(b.rng.Uint64N(2), 2+b.rng.Uint64N(2))
	case u < 6 && len(open) > 0:
		n := open[b.rng.IntN(len(open))]
		switch {
		case u == 3:
			b.close(n)
		case b.newest(n).Value < low:
			b.topUp(n)
		default:
			b.draw(n, 2+b.rng.Uint64N(2))
		}
	case u < 7 && !b.balances:
		tx := b.begin(kindTransfer)
		b.write(tx, b.rng.Uint64N(2), -1, 0)
		b.write(tx, 2+b.rng.Uint64N(2), 1, 0)
	case u < 8 || b.balances:
		b.readGroup(b.begin(kindLow), b.rng.Uint64N(2), true, math.MaxUint64)
	default:
		b.readGroup(b.begin(kindPredicate), b.rng.Uint64N(2), false, math.MaxUint64)
	}
}

func (b *branch) input(limit int64) AccountsInput {
	b.ObjectRows = b.ObjectRows[:0]
	for n := range b.past {
		if a := b.newest(uint64(n)); a.State != history.Absent {
			b.ObjectRows = append(b.ObjectRows, a)
		}
	}
	in := b.world.input(isolation.Serializable)
	in.Accounts, in.Total = loaded, loaded*opening
	in.Opening = func(n uint64) int64 {
		if n >= loaded {
			return 0
		}
		return opening
	}
	in.Predicates = &Predicates{
		Group: func(n uint64) uint64 { return n % 2 }, Run: func(uint64) uint64 { return 1 }, Limit: limit,
		Low: low, Cover: limit,
		Read: func(tx *history.Transaction) (Predicate, *history.Op, bool) {
			q, ok := readOf(tx)
			if !ok {
				return q, nil, false
			}
			return q, &tx.Ops[0], true
		},
	}
	return in
}

// serial reports, by trying every order, whether one explains every read and every account missed by
// predicate: the definition of serializability.
func (b *branch) serial() bool {
	state := make([]history.Object, len(b.past))
	for n := range b.past {
		state[n] = b.past[n][0]
	}
	fits := func(tx *history.Transaction) bool {
		for _, op := range tx.Ops {
			if a := state[op.Object]; a.Version != op.Version || a.Writer != op.Writer || a.State != op.State {
				return false
			}
		}
		q, ok := readOf(tx)
		if !ok {
			return true
		}
		for n := uint64(loaded); n < uint64(len(state)); n++ {
			found := slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return op.Object == n })
			if n%2 == q.Group && state[n].State != history.Absent && (!q.Low || state[n].Value < low) && !found {
				return false
			}
		}
		return true
	}
	var search func(done int) bool
	search = func(done int) bool {
		if done == 1<<len(b.Txns)-1 {
			return true
		}
		for i := range b.Txns {
			tx := &b.Txns[i]
			if done&(1<<i) != 0 || !fits(tx) {
				continue
			}
			before := slices.Clone(state)
			for _, op := range tx.Ops {
				if op.Write {
					gone := history.State(0)
					if tx.Kind == kindClosing && op.Object >= loaded {
						gone = history.Absent
					}
					state[op.Object] = history.Object{N: op.Object, Value: op.Value + op.Amount, Version: op.Version + 1, Writer: tx.ID, State: gone}
				}
			}
			if search(done | 1<<i) {
				return true
			}
			state = before
		}
		return false
	}
	return search(0)
}

// TestPredicatesAgainstDefinition compares the check with the definition on thousands of small histories with
// openings, closings and reads by predicate.
func TestPredicatesAgainstDefinition(t *testing.T) {
	var counts [2]int
	named := map[string]int{}
	for seed := range checktest.Rounds(2500, 12500) {
		b := newBranch(seed, 1+int(seed/2%2))
		if b.balances = seed%2 == 0; b.balances {
			b.open(0, 2)
			b.open(0, 3)
		}
		for range 3 + b.rng.IntN(5) {
			b.step()
		}
		want := check.Invalid
		if b.serial() {
			want = check.Valid
		}
		counts[want-check.Valid]++
		r := checktest.ByName(checked(b.input(1 << 40)))[check.Serializable]
		if r.Status != want {
			t.Fatalf("seed %d: %v, the oracle says %v: %s\n%+v", seed, r.Status, want, r.Detail, b.Txns)
		}
		for _, f := range r.Findings {
			named[f.Anomaly]++
			if lowMissed(f) {
				named["low "+f.Anomaly]++
			}
		}
	}
	if counts[0] < 500 || counts[1] < 500 {
		t.Errorf("%d valid and %d invalid histories are too few of one kind to prove anything", counts[0], counts[1])
	}
	for _, name := range []string{"phantom (G2)", "phantom read skew (G-single)"} {
		if named[name] == 0 || named["low "+name] == 0 {
			t.Errorf("the anomalies were %v", named)
		}
	}
}

// TestCorrectBranchIsValid checks that long correct histories are valid, and that the number of edges is not
// quadratic in the number of openings.
func TestCorrectBranchIsValid(t *testing.T) {
	for seed := range uint64(20) {
		b := newBranch(seed, 0)
		for range 1500 {
			b.step()
		}
		in := b.input(1 << 40)
		for _, r := range checked(in) {
			if r.Status != check.Valid && r.Name != check.Audits && r.Name != check.NonNegative {
				// The paying accounts run out of money.
				t.Fatalf("seed %d: %s is %v: %s", seed, r.Name, r.Status, r.Detail)
			}
		}
		all := newAccounts(t.Context(), in, 0)
		if err := all.read(); err != nil {
			t.Fatal(err)
		}
		if n := len(all.predicates.missed); n > len(b.Txns) {
			t.Errorf("seed %d: %d anti-dependencies of reads by predicate in %d transactions", seed, n, len(b.Txns))
		}
	}
}

// TestSmallestPhantom is the smallest phantom: each of two openings did not see the other's account. One of them
// alone is no phantom.
func TestSmallestPhantom(t *testing.T) {
	b := newBranch(1, 0)
	b.open(0, 2)
	first := b.opened()[0]
	second := b.open(0, 3)
	r := checktest.ByName(checked(b.input(1)))
	if r[check.Serializable].Status != check.Valid {
		t.Errorf("before: %s", r[check.Serializable].Detail)
	}
	second.Ops = slices.DeleteFunc(second.Ops, func(op history.Op) bool { return op.Object == first })
	r = checktest.ByName(checked(b.input(1)))
	got := r[check.Serializable]
	missed := one(func(f fact.Cycle) bool {
		return slices.ContainsFunc(f.Steps, func(d fact.Dependency) bool { return d.Kind == "predicate" && d.Low == 0 && d.Object != "" })
	})
	if got.Status != check.Invalid || len(got.Findings) != 1 || got.Findings[0].Anomaly != "phantom (G2)" || !missed(got.Findings[0]) {
		t.Errorf("serializable is %v: %s", got.Status, got.Detail)
	}
	if limit := r[check.Limit]; limit.Status != check.Invalid || !limit.Required || limit.Findings[0].Amount <= 0 {
		t.Errorf("limit is %v, required %v: %s", limit.Status, limit.Required, limit.Detail)
	}
}

// TestClosedAccounts checks that a closed account that exists, and a missing account that was not closed, are
// reported.
func TestClosedAccounts(t *testing.T) {
	b := newBranch(1, 0)
	b.open(0, 2)
	b.open(1, 3)
	both := b.opened()
	b.close(both[0])
	if r := checktest.ByName(checked(b.input(1 << 40)))[check.Ledger]; r.Status != check.Valid {
		t.Fatalf("ledger is %v: %s", r.Status, r.Detail)
	}
	for _, c := range []struct {
		name  string
		alter func()
		there bool
	}{
		{"closed and there", func() { b.ObjectRows = append(b.ObjectRows, b.newest(both[0])) }, true},
		{"open and gone", func() {
			b.ObjectRows = slices.DeleteFunc(b.ObjectRows, func(a history.Object) bool { return a.N == both[1] })
		}, false},
	} {
		in := b.input(1 << 40)
		c.alter()
		if r := checktest.ByName(checked(in))[check.Ledger]; r.Status != check.Invalid || !slices.ContainsFunc(r.Findings, one(func(f fact.Presence) bool { return f.There == c.there })) {
			t.Errorf("%s: ledger is %v: %s", c.name, r.Status, r.Detail)
		}
	}
}

// TestEarlierStayProvesNothing covers an account that is low twice. A read of the first period proves nothing about the
// second. Here the withdrawal from the other account, which read the first period, precedes the top-up. The
// reader follows the top-up and missed both.
func TestEarlierStayProvesNothing(t *testing.T) {
	b := newBranch(1, 0)
	b.open(0, 2)
	b.open(0, 3)
	n, m := b.opened()[0], b.opened()[1]
	b.draw(n, 2)
	first := b.newest(n)
	b.topUp(n)
	b.draw(m, 3)
	again := b.draw(n, 2)
	late := &b.Txns[len(b.Txns)-2]
	late.Try, late.Sent, late.End = again.Try+1, again.Try+1, again.End // behind it in the list
	// It saw both accounts as they were before the top-up.
	late.Ops[0].Version, late.Ops[0].Value, late.Ops[0].Writer = 0, opening, 0
	late.Ops = append(late.Ops, history.Op{Object: n, Observed: true, Version: first.Version, Value: first.Value, Writer: first.Writer})
	reader := b.begin(kindLow)
	b.see(reader, 0, false)
	if b.serial() {
		t.Fatal("the history is serializable")
	}
	r := checktest.ByName(checked(b.input(1 << 40)))[check.Serializable]
	if r.Status != check.Invalid || r.Findings[0].Anomaly != "phantom (G2)" {
		t.Errorf("serializable is %v: %s", r.Status, r.Detail)
	}
}

// TestPredicateOrItem covers a cycle in which one transaction missed the other's account and read what the
// other overwrote. It counts as a cycle of items.
func TestPredicateOrItem(t *testing.T) {
	b := newBranch(1, 0)
	b.open(0, 2)
	b.open(0, 3)
	n, m := b.opened()[0], b.opened()[1]
	before := [2]history.Object{b.newest(n), b.newest(2)}
	b.draw(n, 2)
	second := b.draw(m, 3)
	second.Ops = slices.DeleteFunc(second.Ops, func(op history.Op) bool { return op.Object == n })
	b.Txns[2].Ops = append(b.Txns[2].Ops, history.Op{Object: 3, Observed: true, Version: 1, Value: b.past[3][1].Value, Writer: b.past[3][1].Writer})
	name := func() string {
		r := checktest.ByName(checked(b.input(1 << 40)))[check.Serializable]
		if len(r.Anomalies) != 1 {
			t.Fatalf("%d anomalies: %s", len(r.Anomalies), r.Detail)
		}
		return r.Anomalies[0].Name
	}
	if got := name(); got != "phantom (G2)" {
		t.Errorf("what was missed by predicate is called %s", got)
	}
	for _, a := range before {
		second.Ops = append(second.Ops, history.Op{Object: a.N, Observed: true, Version: a.Version, Value: a.Value, Writer: a.Writer})
	}
	if got := name(); got != "write skew (G2-item)" {
		t.Errorf("what was read and overwritten is called %s", got)
	}
}

// missedByPredicate wants a predicate that missed an account.
var missedByPredicate = one(func(f fact.Cycle) bool {
	return slices.ContainsFunc(f.Steps, func(d fact.Dependency) bool { return d.Kind == "predicate" })
})

// lowMissed wants a predicate about low balances that missed an account.
var lowMissed = one(func(f fact.Cycle) bool {
	return slices.ContainsFunc(f.Steps, func(d fact.Dependency) bool { return d.Kind == "predicate" && d.Low == 10 })
})

// TestSmallestPhantomOfBalances is the smallest phantom of balances: two withdrawals do not see the other's low account, so that
// the total shortfall exceeds the limit.
func TestSmallestPhantomOfBalances(t *testing.T) {
	b := newBranch(1, 0)
	b.open(0, 2)
	b.open(0, 3)
	first, second := b.opened()[0], b.opened()[1]
	b.draw(first, 2)
	tx := b.draw(second, 3)
	r := checktest.ByName(checked(b.input(1 << 40)))
	if r[check.Serializable].Status != check.Valid || r[check.Limit].Status != check.Valid {
		t.Errorf("before: %s %s", r[check.Serializable].Detail, r[check.Limit].Detail)
	}
	tx.Ops = slices.DeleteFunc(tx.Ops, func(op history.Op) bool { return op.Object == first })
	in := b.input(1 << 40)
	in.Predicates.Cover = 5
	r = checktest.ByName(checked(in))
	if got := r[check.Limit]; got.Status != check.Invalid || !slices.ContainsFunc(got.Findings, one(func(f fact.OverLimit) bool { return f.Low == 10 && f.Most == 5 && f.Sum == 8 })) {
		t.Errorf("limit is %v: %s", got.Status, got.Detail)
	}
	got := r[check.Serializable]
	if got.Status != check.Invalid || len(got.Findings) != 1 || got.Findings[0].Anomaly != "phantom (G2)" || !lowMissed(got.Findings[0]) {
		t.Errorf("serializable is %v: %s", got.Status, got.Detail)
	}
}
