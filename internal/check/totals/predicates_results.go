package totals

import (
	"cmp"
	"maps"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// overLimit is a group that exceeds the limit of a rule.
type overLimit struct {
	t       uint32 // the reader; None: the end state
	account uint64 // one of the accounts
	low     bool   // the rule about low accounts
	sum     int64
}

// groupRun identifies the accounts of a predicate that one run opened.
type groupRun struct {
	Predicate
	run uint64
}

// limitSums computes the totals that the rules of predicates limit.
type limitSums struct {
	p    *Predicates
	sums map[groupRun]*overLimit
}

// add adds the balance of an account that a client opened, or its shortfall, by predicate q.
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

// over returns the totals beyond their limits, in a fixed order.
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

// most returns the limit.
func (o *overLimit) most(p *Predicates) int64 {
	if o.low {
		return p.Cover
	}
	return p.Limit
}

// noteLimit records a read that found a group beyond its limit.
func (b *balances) noteLimit(t uint32, tx *history.Transaction, q Predicate) {
	l := limitSums{p: b.in.Predicates}
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Observed && op.Object >= b.in.Accounts && l.p.Group(op.Object) == q.Group {
			l.add(t, q, op.Object, op.Value)
			if !q.Low {
				l.add(t, Predicate{q.Group, true}, op.Object, op.Value)
			}
		}
	}
	b.predicates.over = append(b.predicates.over, l.over()...)
}

// limit runs the check of the limits on accounts that clients opened.
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
	found := findings{check: r.Name}
	for _, o := range ended.over() {
		what := b.overFact(o)
		b.Show(check.Limit, "", 0, what.Object, what)
		found.add(what, what.Object)
		found.list[0].Amount += o.sum - o.most(p)
	}
	if list := b.predicates.over; len(list) > 0 {
		read := findings{check: r.Name}
		for _, o := range list {
			b.Show(check.Limit, "", b.IDOf(o.t), b.objectToShow(o.account), b.overFact(o))
		}
		slices.SortStableFunc(list, func(a, b overLimit) int { return cmp.Compare(b.sum-b.most(p), a.sum-a.most(p)) })
		readers := map[uint32]bool{}
		for _, o := range list {
			if !readers[o.t] {
				readers[o.t] = true
				read.add(b.overFact(o), b.Object(o.account), b.IDOf(o.t))
			}
		}
		found.list = append(found.list, read.list...)
	}
	var why fact.Fact
	switch {
	case b.Damage != nil:
		why = check.Unreadable(b.Damage)
	case b.Input.End == nil:
		why = b.NoEnd()
	}
	return found.judge(r, why, fact.UnderLimit{Limit: p.Limit, Low: p.Low, Cover: p.Cover})
}

func (b *balances) overFact(o overLimit) fact.OverLimit {
	f := fact.OverLimit{By: b.IDOf(o.t), Object: b.Object(o.account), Sum: o.sum, Most: o.most(b.in.Predicates)}
	if o.low {
		f.Low = b.in.Predicates.Low
	}
	return f
}

// openedBooks compares the opened accounts in the end state with the ledger. Call it after all accounts were
// read.
func (b *balances) openedBooks() {
	for i := range b.slots.list {
		s := &b.slots.list[i]
		if s.n < b.in.Accounts || s.there == s.open() || s.legs == 0 && !s.there {
			continue
		}
		s.broken = true
		what := fact.Presence{Object: b.objectToShow(s.n), There: s.there}
		b.Show(check.Ledger, "", 0, what.Object, what)
		if s.there {
			b.end.reopened.add(s.n)
		} else {
			b.end.gone.add(s.n)
		}
	}
}

// addOpened adds the accounts that exist or are missing wrongly.
func (b *balances) addOpened(found *findings) {
	for i, list := range []*few[uint64]{&b.end.gone, &b.end.reopened} {
		there := i == 1
		odd := findings{check: found.check}
		for _, n := range list.first {
			what := fact.Presence{Object: b.Object(n), There: there}
			odd.add(what, what.Object)
		}
		if list.count > 0 {
			odd.more(list.count - len(list.first))
		}
		found.list = append(found.list, odd.list...)
	}
}
