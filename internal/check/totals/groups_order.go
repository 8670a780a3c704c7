package totals

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Rows without versions do not say in which order they were written, but what each
// transaction read of its account does, nearly: one that read the balance b and added
// d leads from b to b+d, so the transactions of an account must form a trail from its
// opening that walks each of these edges once. A transaction reads nothing else, and
// amounts that are added to tellers and branches may come in any order. So if every
// account has such a trail, the trails one after the other are a serial order that
// explains all that was read; and if every account's trail agrees with real time, some
// order of all transactions does, because each of them reads one account alone
// (locality: Herlihy and Wing, Linearizability, ACM TOPLAS 12(3), 1990).

// transition is one transaction on its account.
type transition struct {
	row    uint32 // slot of the account
	txn    uint32
	known  bool  // before was read
	before int64 // balance
	amount int64
	begin  int64 // ns of the runs' clock; when the deciding try began, at the earliest
	end    int64 // when the client knew the outcome, at the latest; the largest number if it never did
}

// paths are what was found of the accounts.
type paths struct {
	broken  []transition // of the first few accounts without a trail, a transaction that shows it
	breaks  int
	late    []transition // of the first few without one that agrees with real time
	lates   int
	unsure  int // accounts whose order could not be decided
	unsureT int // accounts whose real-time order could not be decided
	count   int // transactions
	clocks  int
}

// order makes the checks serializable and strict of rows without versions.
func (t *groups) order() []check.Result {
	serializable := check.Result{Name: check.Serializable, Required: true}
	strict := check.Result{Name: check.Strict, Required: t.in.Expect >= isolation.StrictSerializable}
	if why := t.unordered(); why != "" {
		serializable.Detail = "Not decided: " + why + "."
		strict.Detail = serializable.Detail
	} else if found := t.walk(); t.balances.Damage == nil { // else Settle says why
		t.judgeSerializable(&serializable, found)
		t.judgeStrict(&strict, found)
	}
	return []check.Result{serializable, strict}
}

// unordered says why no order can be found; empty if one can be looked for.
func (t *groups) unordered() string {
	b := t.balances
	switch {
	case b.Input.End == nil:
		return b.WhyNoEnd()
	case b.Damage != nil:
		return b.Damage.Error()
	case len(b.Input.History) == 0:
		return "there is no history of what was read; give the run directory"
	case b.Foreign() != "":
		return b.Foreign()
	case t.hole() != "" || t.somebodyAt() != "":
		return cmp.Or(t.hole(), t.somebodyAt())
	case t.wrongs > 0 && t.excuse() != "":
		return t.excuse()
	case !b.Complete():
		return "the recording was cut off, so what was read last is not known"
	}
	return ""
}

// edges gathers the transactions that were applied.
func (t *groups) edges() []transition {
	b, list := t.balances, []transition(nil)
	apart := b.CountClocks() > 1 // then times say nothing
	err := b.Each(func(n uint32, tx *history.Transaction) {
		x := &b.Txns.List[n]
		if !x.Applied() || len(tx.Ops) == 0 || tx.Ops[0].Object >= b.accounts {
			return
		}
		op := &tx.Ops[0]
		e := transition{
			row: rowIndex(&b.slots, op.Object), txn: n, known: op.Observed && tx.Outcome == history.Committed,
			before: op.Value, amount: op.Amount, begin: x.Try, end: x.End,
		}
		clock := b.Clocks[x.Source]
		e.begin, e.end = e.begin+clock.From, e.end+clock.To
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

// rowIndex returns the place of a row among the slots.
func rowIndex(s *slots, n uint64) uint32 {
	s.touch(n)
	if s.dense != nil {
		return s.dense[n] - 1
	}
	return s.sparse[n] - 1
}

// walk looks for a trail of every account.
func (t *groups) walk() *paths {
	list := t.edges()
	found := &paths{count: len(list), clocks: t.balances.CountClocks()}
	opening := make(map[uint32]int64)
	if t.balances.Damage == nil {
		t.balances.Damage = t.openings(opening)
	}
	for len(list) > 0 && !t.balances.Watch.Ended() {
		n := 1
		for n < len(list) && list[n].row == list[0].row {
			n++
		}
		slot := &t.balances.slots.list[list[0].row]
		found.account(list[:n], opening[list[0].row], slot.broken)
		list = list[n:]
	}
	return found
}

// openings finds what accounts held before the transactions that are given: by their
// openings, and by what others had done before.
func (t *groups) openings(of map[uint32]int64) (problem error) {
	for leg := range t.eachRow(&problem) {
		if leg.Transaction == 0 && t.kind(leg.Object) == len(t.in.Groups)-1 {
			of[rowIndex(&t.balances.slots, leg.Object)] += leg.Amount
		}
	}
	return problem
}

// account looks for the trail of one account, whose transactions come in the order of
// their ends. loose says that another one may have been applied.
func (f *paths) account(list []transition, opening int64, loose bool) {
	if loose {
		f.unsure++
		f.unsureT++
		return
	}
	unseen := 0
	for i := range list {
		if !list[i].known {
			unseen++
		}
	}
	s := search{list: list, at: opening}
	switch s.run() {
	case searchFound:
		return
	case searchFailed:
		if f.lates++; len(f.late) < check.Shown {
			f.late = append(f.late, list[len(list)-1])
		}
	case searchGaveUp:
		f.unsureT++
	}
	odd, ok := list[len(list)-1], true
	if unseen == 0 {
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
		if f.breaks++; len(f.broken) < check.Shown {
			f.broken = append(f.broken, odd)
		}
	}
}

// show makes transactions the witnesses of a violation; detail of the first is reported.
func (t *groups) show(r *check.Result, list []transition, says func(e transition, id history.ID, account string) (what, detail string)) {
	for _, e := range list {
		id, account := t.balances.IDOf(e.txn), t.in.Name(t.balances.slots.list[e.row].n)
		what, detail := says(e, id, account)
		t.balances.Report(r.Name, "", id, account, what)
		r.Witness, r.Detail = append(r.Witness, id), cmp.Or(r.Detail, detail)
	}
}

func (t *groups) judgeSerializable(r *check.Result, f *paths) {
	switch {
	case f.breaks > 0:
		r.Status = check.Invalid
		r.Required = t.in.Expect >= isolation.Serializable || t.in.Expect == isolation.Unknown
		t.show(r, f.broken, func(e transition, id history.ID, account string) (what, detail string) {
			what = fmt.Sprintf("read the balance %d of %s and added %d", e.before, account, e.amount)
			return what, fmt.Sprintf("%v %s, and no order of that account's transactions explains it%s", id, what, check.Times(f.breaks))
		})
	case f.unsure > 0:
		r.Detail = fmt.Sprintf("Not decided: which transactions were applied to %s is not known, or there are too many orders of them to try.", check.Plural(f.unsure, "account"))
	default:
		r.Status = check.Valid
		r.Detail = fmt.Sprintf("An order of %s explains every balance that was read.", check.Plural(f.count, "committed transaction"))
	}
}

func (t *groups) judgeStrict(r *check.Result, f *paths) {
	switch {
	case f.breaks > 0:
		r.Status = check.Invalid
		r.Detail = "Not serializable, and so not strictly serializable either: see the check serializable."
	case f.clocks > 1:
		r.Detail = fmt.Sprintf("Not decided: the runs are on %d clocks that nobody has compared.", f.clocks)
	case f.lates > 0:
		r.Status = check.Invalid
		t.show(r, f.late, func(_ transition, _ history.ID, account string) (what, detail string) {
			return "is one of the transactions on this account of which no order agrees with real time",
				fmt.Sprintf("No order of the transactions on %s explains what they read and agrees with real time%s", account, check.Times(f.lates))
		})
	case f.unsureT > 0:
		r.Detail = fmt.Sprintf("Not decided: the order on %s could not be told from what was read; --versions tells it.", check.Plural(f.unsureT, "account"))
	default:
		r.Status = check.Valid
		r.Detail = "The order of all transactions agrees with real time."
	}
}
