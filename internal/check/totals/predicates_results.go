package totals

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/money"
)

// phantoms are the names of cycles of which an anti-dependency is one of a read by
// predicate (Adya, Weak Consistency, MIT 1999, section 3.2.3), by what they are called of
// items.
var phantoms = map[string]string{
	"write skew (G2-item)":      "phantom (G2)",
	"read skew (G-single)":      "phantom read skew (G-single)",
	"long fork (G-nonadjacent)": "phantom long fork (G-nonadjacent)",
}

// missedBy returns the account that the first transaction of a step missed when it read
// by predicate, and that the second has opened.
func (b *balances) missedBy(s graph.Step) (account uint64, ok bool) {
	if s.Kind != graph.Rw {
		return 0, false
	}
	account, ok = b.predicates.missed[[2]uint32{s.From, s.To}]
	return account, ok
}

// nameOf names a cycle that graph.Classify has called name.
func (b *balances) nameOf(name string, steps []graph.Step) string {
	if slices.ContainsFunc(steps, func(s graph.Step) bool { _, ok := b.missedBy(s); return ok }) {
		return cmp.Or(phantoms[name], name)
	}
	return name
}

// overLimit is a sum that no group may hold.
type overLimit struct {
	t          uint32 // who read it; none of the end state
	group, run uint64
	account    uint64 // one of those that hold it
	sum        int64
}

type groupRun struct{ group, run uint64 }

// noteLimit keeps a read that found a group over its limit.
func (b *balances) noteLimit(t uint32, tx *history.Transaction, group uint64) {
	p, sums := b.in.Predicates, map[uint64]*overLimit{}
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if !op.Observed || op.Write || op.Object < b.in.Accounts || p.Group(op.Object) != group {
			continue
		}
		run := p.Run(op.Object)
		if sums[run] == nil {
			sums[run] = &overLimit{t: t, group: group, run: run, account: op.Object}
		}
		sums[run].sum += op.Value
	}
	for _, o := range sums {
		if o.sum > p.Limit {
			b.predicates.over = append(b.predicates.over, *o)
		}
	}
}

// limit makes the check of what the accounts that clients have opened hold together.
func (b *balances) limit(claim isolation.Level) check.Result {
	r := check.Result{Name: check.Limit, Required: claim.Includes(isolation.Serializable) || claim == isolation.Unknown}
	p := b.in.Predicates
	ended := map[groupRun]*overLimit{}
	for i := range b.slots.list {
		s := &b.slots.list[i]
		if s.n < b.in.Accounts || !s.open() {
			continue
		}
		key := groupRun{p.Group(s.n), p.Run(s.n)}
		if ended[key] == nil {
			ended[key] = &overLimit{group: key.group, run: key.run, account: s.n, t: check.None}
		}
		ended[key].sum += s.sum
	}
	var over few[overLimit]
	found, excess := new(verdict), int64(0)
	order := func(a, b groupRun) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.run, b.run)) }
	for _, key := range slices.SortedFunc(maps.Keys(ended), order) {
		if o := ended[key]; o.sum > p.Limit {
			b.Report(check.Limit, "", 0, b.NameToReport(o.account), "is one of accounts that hold "+b.overText(*o))
			excess += o.sum - p.Limit
			over.add(*o)
		}
	}
	if over.count > 0 {
		found.add(fmt.Sprintf("In the end the limit is exceeded by %s: %s.", money.Format(excess), over.list(func(o overLimit) string {
			return fmt.Sprintf("the accounts opened beside %s hold %s", b.Input.Name(o.account), b.overText(o))
		})))
	}
	if list := b.predicates.over; len(list) > 0 {
		for _, o := range list {
			b.Report(check.Limit, "", b.IDOf(o.t), b.NameToReport(o.account), "saw the accounts opened there hold "+b.overText(o))
		}
		o := slices.MaxFunc(list, func(a, b overLimit) int { return cmp.Compare(a.sum, b.sum) })
		found.add(fmt.Sprintf("%s saw a limit exceeded; at most by transaction %v, which saw the accounts opened beside %s hold %s.",
			check.Plural(len(list), "transaction"), b.IDOf(o.t), b.Input.Name(o.account), b.overText(o)), b.IDOf(o.t))
	}
	why := ""
	switch {
	case b.Damage != nil:
		why = b.Damage.Error()
	case b.Input.End == nil:
		why = b.WhyNoEnd()
	}
	return found.decide(r, why, fmt.Sprintf("No transaction saw the accounts that were opened in one group hold more than %s, nor do they in the end.", money.Format(p.Limit)))
}

func (b *balances) overText(o overLimit) string {
	return fmt.Sprintf("%s, which is %s more than %s", money.Format(o.sum), money.Format(o.sum-b.in.Predicates.Limit), money.Format(b.in.Predicates.Limit))
}

// openedBooks compares which of the accounts that clients opened are there in the end
// with what the ledger says, once all accounts of the end state are read.
func (b *balances) openedBooks() {
	for i := range b.slots.list {
		s := &b.slots.list[i]
		if s.n < b.in.Accounts || s.there == s.open() || s.legs == 0 && !s.there {
			continue
		}
		s.broken = true
		b.Report(check.Ledger, "", 0, b.NameToReport(s.n), b.oddPresence(s.there))
		if s.there {
			b.end.reopened.add(s.n)
		} else {
			b.end.gone.add(s.n)
		}
	}
}

func (b *balances) oddPresence(there bool) string {
	if there {
		return "was closed by the " + b.Words.Book + ", and is there in the end"
	}
	return "was opened by the " + b.Words.Book + " and never closed, and is not there in the end"
}

// addOpened adds the accounts that should not be there, or should.
func (b *balances) addOpened(found *verdict) {
	name := func(n uint64) string { return b.NameInSentence(n) }
	for _, odd := range []struct {
		there bool
		list  *few[uint64]
	}{{true, &b.end.reopened}, {false, &b.end.gone}} {
		if n := odd.list.count; n > 0 {
			found.add(fmt.Sprintf("%s, each of which %s: %s.", check.Plural(n, "account"), b.oddPresence(odd.there), odd.list.list(name)))
		}
	}
}
