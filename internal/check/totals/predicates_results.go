package totals

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/money"
)

// missedText says of a step that its first transaction missed an account.
func (o *order) missedText(from, to string, m missed) string {
	name := o.b.NameInSentence(m.n)
	if m.low {
		low := money.Text(o.b.in.Predicates.Low)
		return fmt.Sprintf("%s read by predicate and did not find %s among those under %s, which %s brought under it", from, name, low, to)
	}
	return fmt.Sprintf("%s read by predicate and did not find %s, which %s opened", from, name, to)
}

// overLimit is more than a group may hold or lack.
type overLimit struct {
	t       uint32 // who read it; none of the end state
	account uint64 // one of those that it is about
	low     bool   // it is what low accounts lack
	sum     int64
}

// groupRun are the accounts of a predicate that one run has opened.
type groupRun struct {
	Predicate
	run uint64
}

// limitSums add up what the rules of predicates are about.
type limitSums struct {
	p    *Predicates
	sums map[groupRun]*overLimit
}

// add adds what an account that a client has opened holds or lacks, by predicate q.
func (l *limitSums) add(t uint32, q Predicate, n uint64, balance int64) {
	if !q.takes(balance, l.p.Low) {
		return
	}
	if l.sums == nil {
		l.sums = map[groupRun]*overLimit{}
	}
	key := groupRun{q, l.p.Run(n)}
	o := l.sums[key]
	if o == nil {
		o = &overLimit{t: t, account: n, low: q.Low}
		l.sums[key] = o
	}
	if q.Low {
		balance = l.p.Low - balance
	}
	o.sum += balance
}

// over are those that exceed the rule, in a fixed order.
func (l *limitSums) over() (list []overLimit) {
	keys := slices.SortedFunc(maps.Keys(l.sums), func(a, b groupRun) int {
		return cmp.Or(compareBool(a.Low, b.Low), cmp.Compare(a.Group, b.Group), cmp.Compare(a.run, b.run))
	})
	for _, key := range keys {
		if o := l.sums[key]; o.sum > o.most(l.p) {
			list = append(list, *o)
		}
	}
	return list
}

// most is what may not be exceeded.
func (o *overLimit) most(p *Predicates) int64 {
	if o.low {
		return p.Cover
	}
	return p.Limit
}

// noteLimit keeps a read that found a group over its limit.
func (b *balances) noteLimit(t uint32, tx *history.Transaction, q Predicate) {
	l := limitSums{p: b.in.Predicates}
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Observed && !op.Write && op.Object >= b.in.Accounts && l.p.Group(op.Object) == q.Group {
			l.add(t, q, op.Object, op.Value)
			if !q.Low {
				l.add(t, Predicate{q.Group, true}, op.Object, op.Value)
			}
		}
	}
	b.predicates.over = append(b.predicates.over, l.over()...)
}

// limit makes the check of what the accounts that clients have opened hold together, and
// of what the low ones lack.
func (b *balances) limit(claim isolation.Level) check.Result {
	r := check.Result{Name: check.Limit, Required: claimed(claim)}
	p := b.in.Predicates
	ended := limitSums{p: p}
	for i := range b.slots.list {
		s := &b.slots.list[i]
		if s.n >= b.in.Accounts && s.open() {
			ended.add(check.None, Predicate{p.Group(s.n), false}, s.n, s.sum)
			ended.add(check.None, Predicate{p.Group(s.n), true}, s.n, s.sum)
		}
	}
	var over few[overLimit]
	found, excess := new(verdict), int64(0)
	for _, o := range ended.over() {
		b.Report(check.Limit, "", 0, b.NameToReport(o.account), "is one of accounts that "+b.overText(o))
		excess += o.sum - o.most(p)
		over.add(o)
	}
	if over.count > 0 {
		found.add(fmt.Sprintf("In the end the limit is exceeded by %s: %s.", money.Text(excess), over.list(func(o overLimit) string {
			return fmt.Sprintf("the accounts opened beside %s %s", b.Input.Name(o.account), b.overText(o))
		})))
	}
	if list := b.predicates.over; len(list) > 0 {
		for _, o := range list {
			b.Report(check.Limit, "", b.IDOf(o.t), b.NameToReport(o.account), "saw that the accounts opened there "+b.overText(o))
		}
		o := slices.MaxFunc(list, func(a, b overLimit) int { return cmp.Compare(a.sum-a.most(p), b.sum-b.most(p)) })
		readers := map[uint32]bool{}
		for _, o := range list {
			readers[o.t] = true
		}
		found.add(fmt.Sprintf("%s saw a limit exceeded; at most by transaction %v, which saw that the accounts opened beside %s %s.",
			check.Plural(len(readers), "transaction"), b.IDOf(o.t), b.Input.Name(o.account), b.overText(o)), b.IDOf(o.t))
	}
	why := ""
	switch {
	case b.Damage != nil:
		why = b.Damage.Error()
	case b.Input.End == nil:
		why = b.WhyNoEnd()
	}
	return found.decide(r, why, fmt.Sprintf("No transaction saw the accounts that were opened in one group hold more than %s, or those under %s lack more than %s of it, nor do they in the end.",
		money.Text(p.Limit), money.Text(p.Low), money.Text(p.Cover)))
}

func (b *balances) overText(o overLimit) string {
	p := b.in.Predicates
	if o.low {
		return fmt.Sprintf("and under %s lack %s of it together, which is %s more than %s", money.Text(p.Low), money.Text(o.sum), money.Text(o.sum-p.Cover), money.Text(p.Cover))
	}
	return fmt.Sprintf("hold %s, which is %s more than %s", money.Text(o.sum), money.Text(o.sum-p.Limit), money.Text(p.Limit))
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
