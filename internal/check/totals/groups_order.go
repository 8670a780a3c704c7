package totals

import (
	"cmp"
	"math"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Rows without versions do not show the order of their writes, but the balances that transactions read nearly
// do. A transaction that read balance b and added d is an edge from b to b+d. So the transactions of an
// account must form a path from its opening balance that uses each edge once.
//
// A transaction reads nothing else, and amounts can be added to tellers and branches in any order. So if
// every account has such a path, the concatenated paths are a serial order that explains all reads. If every
// path agrees with real time, some order of all transactions does too, because each transaction reads only
// one account (locality: Herlihy and Wing, Linearizability, ACM TOPLAS 12(3), 1990).

// transition is one transaction on its account.
type transition struct {
	row    uint64 // the account
	txn    uint32
	known  bool  // before is known
	before int64 // balance
	amount int64
	begin  int64 // beginning of the deciding try, ns on the runs' clock; the least number if not known
	end    int64 // when the client learned the outcome; the largest number if it never did
	error  int64 // error of both in either direction; times of one source are exact relative to each other
	source uint16
}

// ended reports whether e certainly, or with perhaps possibly, ended before f began.
func (e *transition) ended(f *transition, perhaps bool) bool {
	switch error := e.error + f.error; {
	case e.end == math.MaxInt64 || f.begin == math.MinInt64:
		return false
	case e.source == f.source:
		return e.end < f.begin
	case perhaps:
		return e.end-error < f.begin
	default:
		return e.end+error < f.begin
	}
}

// paths holds the results for the accounts.
type paths struct {
	broken  few[transition] // for each account without a path, a transaction that shows it
	late    few[transition] // likewise, for paths that agree with real time
	doubt   check.Doubt     // accounts whose order may contradict real time within the clock errors
	unsure  int             // number of accounts whose order could not be decided
	unsureT int             // likewise, with real time
	count   int             // number of transactions
}

// order returns the results of serializable and strict for rows without versions.
func (t *groups) order() []check.Result {
	serializable := check.Result{Name: check.Serializable, Required: claimed(t.in.Expect)}
	strict := check.Result{Name: check.Strict, Required: t.in.Expect >= isolation.StrictSerializable}
	if why := t.unordered(); why != nil {
		serializable.Why, strict.Why = why, why
	} else if found := t.walk(); t.balances.Damage == nil { // otherwise Settle gives the reason
		serializable, strict = t.judgeSerializable(serializable, found), t.judgeStrict(strict, found)
	}
	return []check.Result{serializable, strict}
}

// unordered returns the reason why no order can be determined, or nil.
func (t *groups) unordered() fact.Fact {
	b := t.balances
	other, hole := b.OtherRuns(), firstOf(t.hole(), t.somebodyAt())
	switch {
	case b.Input.End == nil:
		return b.NoEnd()
	case b.Damage != nil:
		return check.Unreadable(b.Damage)
	case len(b.Input.History) == 0:
		return fact.NoHistory{}
	case other != nil:
		return other
	case hole != nil:
		return hole
	case t.wrong.count+t.vague.count > 0 && t.excuse() != nil:
		return t.excuse()
	case !b.Complete():
		return fact.CutOff{}
	}
	return nil
}

// edges returns the transactions that were applied.
func (t *groups) edges() []transition {
	b, list := t.balances, []transition(nil)
	apart := b.CountClocks() > 1 // then times cannot be compared
	uncertain := b.Uncertainty() > 0
	err := b.Each(func(n uint32, tx *history.Transaction) {
		x := &b.Txns.List[n]
		if !x.Applied() || len(tx.Ops) == 0 || tx.Ops[0].Object >= b.in.Accounts {
			return
		}
		op := &tx.Ops[0]
		e := transition{
			row: op.Object, txn: n, known: op.Observed && tx.Outcome == history.Committed,
			before: op.Value, amount: op.Amount, begin: x.Try, end: x.End, source: x.Source,
		}
		clock := b.Clocks[x.Source]
		e.begin, e.end = e.begin+clock.Middle(), e.end+clock.Middle()
		if uncertain {
			e.error = clock.Error()
		}
		if tx.Outcome != history.Committed {
			e.end = math.MaxInt64
		}
		if apart {
			e.begin = math.MinInt64
		}
		list = append(list, e)
	})
	if err != nil {
		b.Damage = err
	}
	slices.SortFunc(list, func(x, y transition) int {
		return cmp.Or(cmp.Compare(x.row, y.row), cmp.Compare(x.end, y.end), cmp.Compare(x.txn, y.txn))
	})
	return list
}

// walk looks for a path of every account.
func (t *groups) walk() *paths {
	list := t.edges()
	found := &paths{count: len(list)}
	for len(list) > 0 && !t.balances.Watch.Ended() {
		row, n := list[0].row, 1
		for n < len(list) && list[n].row == row {
			n++
		}
		slot := t.balances.slots.find(row)
		found.account(list[:n], t.balances.in.Opening(row)+t.before[row], slot != nil && slot.broken)
		list = list[n:]
	}
	return found
}

// account looks for the path of one account. The transactions must be sorted by end. loose means that another
// transaction may have been applied.
func (f *paths) account(list []transition, opening int64, loose bool) {
	if loose {
		f.unsure++
		f.unsureT++
		return
	}
	s := search{list: list, at: opening}
	switch s.run() {
	case searchFound:
		if perhaps := (search{list: list, at: opening, perhaps: true}); perhaps.uncertain() > 0 && perhaps.run() != searchFound {
			f.doubt.Note(perhaps.uncertain())
		}
		return
	case searchFailed:
		f.late.add(list[len(list)-1])
	case searchGaveUp:
		f.unsureT++
	}
	odd, ok := list[len(list)-1], true
	if !slices.ContainsFunc(list, func(e transition) bool { return !e.known }) {
		odd, ok = eulerian(list, opening)
	} else {
		for i := range list {
			list[i].begin = math.MinInt64
		}
		whenever := search{list: list, at: opening}
		switch whenever.run() {
		case searchFailed:
			ok = false
		case searchGaveUp:
			f.unsure++
		}
	}
	if !ok {
		f.broken.add(odd)
	}
}

// found adds the violations of a check that transactions show.
func (t *groups) found(name string, of *few[transition], what func(e transition, id history.ID, on fact.Object) fact.Fact) findings {
	found := findings{check: name}
	for _, e := range of.first {
		id, on := t.balances.IDOf(e.txn), fact.Object(t.in.Name(e.row))
		one := what(e, id, on)
		t.balances.Show(name, "", id, on, one)
		found.add(one, on, id)
	}
	if of.count > 0 {
		found.more(of.count - len(of.first))
	}
	return found
}

func (t *groups) judgeSerializable(r check.Result, f *paths) check.Result {
	found := t.found(r.Name, &f.broken, func(e transition, id history.ID, on fact.Object) fact.Fact {
		return fact.NoPath{By: id, Object: on, Balance: e.before, Amount: e.amount}
	})
	var why fact.Fact
	if f.broken.count == 0 && f.unsure > 0 {
		why = fact.UnsurePaths{Accounts: f.unsure}
	}
	return f.judge(r, &found, why, fact.Paths{Transactions: f.count})
}

// judge returns the result about the order that follows from the findings.
func (f *paths) judge(r check.Result, found *findings, undecided, holds fact.Fact) check.Result {
	r = found.judge(r, undecided, holds)
	if f.count == 0 {
		r = r.Without(fact.NoOrder{})
	}
	return r
}

func (t *groups) judgeStrict(r check.Result, f *paths) check.Result {
	found := findings{check: r.Name}
	var why fact.Fact
	clocks := t.balances.CountClocks()
	switch {
	case f.broken.count > 0:
		found.list = notStrict()
	case clocks > 1:
		why = fact.ClocksApart{Clocks: clocks}
	case f.late.count > 0:
		found = t.found(r.Name, &f.late, func(_ transition, id history.ID, on fact.Object) fact.Fact {
			return fact.NoTimelyPath{By: id, Object: on}
		})
	case f.doubt.Count > 0:
		why = t.balances.Uncertain(f.doubt.Count, "account")
	case f.unsureT > 0:
		why = fact.UnsurePaths{Accounts: f.unsureT, RealTime: true}
	}
	return f.judge(r, &found, why, fact.WithRealTime{})
}
