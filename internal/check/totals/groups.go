package totals

import (
	"context"
	"iter"
	"math"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// GroupsInput is all that the checks of rows in groups look at: groups of rows whose
// balances grow by the same sums. Rows have numbers from 0, those of one group behind
// those of the group before. A transaction adds one amount to a row of each group, from
// the last group to the first in the order of its operations, and reads of the last
// one what it held.
//
// The legs of the end state: a row of the history is one for each group, numbered from
// 0, from the last group to the first, under the id of its transaction; that of
// somebody else's is 0. One marked as an opening is what a row held when the data
// were first driven, beyond what the history says; a row without one opened with 0.
// One marked as unkept says that its run kept no history.
type GroupsInput struct {
	check.Input
	Words      check.Words
	Groups     []Group
	Versions   bool     // every row counts, and every leg has its version
	Unexpected uint64   // rows of somebody else that the history had when the data were first driven
	Bare       []uint64 // runs given that kept no history
}

// Group is some rows of one kind.
type Group struct {
	Name string // in the plural, such as tellers
	Rows uint64
}

// Groups makes all checks of rows in groups. It takes time and memory linear in the history and
// the end state. Errors are as those of
// Accounts.
func Groups(ctx context.Context, in GroupsInput) ([]check.Result, error) {
	return decided(in.Input, func(input check.Input, early uint64) (*balances, []check.Result) {
		in.Input = input
		t := newGroups(ctx, in, early)
		return t.balances, t.results()
	})
}

// groups is the material of all checks of rows in groups. What it has in common with
// accounts, above all which transactions the history has, is found by balances, to
// which the history is the ledger and a row an account that opened with nothing.
type groups struct {
	in       GroupsInput
	balances *balances
	sums     groupSums

	before map[uint64]int64 // by row of the last group: what others have given it
	loose  few[history.ID]  // of unknown outcome that were to leave no row in the history
	cut    uint64           // a run that kept no history, and of which not all is recorded; 0 is none

	wrong few[wrongAccount] // rows that do not hold what they should
	vague few[wrongAccount] // the same where a transaction of unknown outcome may explain it
}

type groupSums struct {
	end, opening []int64  // of each group
	history      int64    // of the amounts of all rows of the history
	acknowledged int64    // of the committed ones that were to leave none
	astray       int64    // of the committed ones, as sent less as the history has them, where it has them otherwise
	unexpected   uint64   // rows of the history that are somebody else's
	bare         []uint64 // runs that say that they kept no history
}

func newGroups(ctx context.Context, in GroupsInput, early uint64) *groups {
	rows := uint64(0)
	for _, g := range in.Groups {
		rows += g.Rows
	}
	own := AccountsInput{Input: in.Input, Words: in.Words, Accounts: rows, Opening: func(uint64) int64 { return 0 }}
	own.End, own.OnViolation = nil, nil
	b := newAccounts(ctx, own, early)
	// Whether all of a run without a history is in the end state, the balances show.
	b.Input.Early = slices.DeleteFunc(slices.Clone(in.Early), func(run uint64) bool { return slices.Contains(in.Bare, run) })
	if in.End != nil {
		b.Input.End = &ownLegs{in.End}
	}
	if in.OnViolation != nil {
		b.Input.OnViolation = func(v check.Violation) {
			if v.Check != check.NonNegative { // a balance may be below zero
				in.OnViolation(v)
			}
		}
	}
	sums := groupSums{end: make([]int64, len(in.Groups)), opening: make([]int64, len(in.Groups))}
	return &groups{in: in, balances: b, sums: sums, before: map[uint64]int64{}}
}

// ownLegs is an end state without the legs that no transaction of ours has made.
type ownLegs struct{ check.EndState }

func (o *ownLegs) Rows() iter.Seq2[history.Row, error] {
	return func(yield func(history.Row, error) bool) {
		for leg, err := range o.EndState.Rows() {
			if err == nil && (leg.Transaction == 0 || leg.Mark == history.Unkept) {
				continue
			}
			if !yield(leg, err) {
				return
			}
		}
	}
}

// kind returns the group of a row; the number of groups of what is in none.
func (t *groups) kind(n uint64) int {
	for i, g := range t.in.Groups {
		if n < g.Rows {
			return i
		}
		n -= g.Rows
	}
	return len(t.in.Groups)
}

// names lists the groups, the last first.
func (t *groups) names() (list []string) {
	for _, g := range slices.Backward(t.in.Groups) {
		list = append(list, g.Name)
	}
	return list
}

// results makes the checks; they are worth nothing once the watch has ended.
func (t *groups) results() []check.Result {
	b := t.balances
	problem := t.addUp()
	b.Damage = problem
	if t.in.Versions && len(t.in.Bare)+len(t.sums.bare) == 0 {
		return t.versioned()
	}
	for _, step := range []func() error{b.readTransactions, b.readLedger, b.repeatedLegs, t.strayAmounts, t.bareRuns, t.somebodyElse, t.readRows} {
		if problem != nil {
			break
		}
		problem = step()
		if b.ended() {
			return nil
		}
	}
	b.Damage = problem
	b.Input.SetCommitted(b.Txns.Committed)
	b.resolve(problem)
	results := []check.Result{decide(b.RequireEndAlone, check.Total, t.total), decide(b.RequireEndAlone, check.Ledger, t.ledger)}
	if !t.allBare() {
		results = append(results, decide(b.RequireEnd, check.Durable, b.durable),
			decide(b.RequireEnd, check.NoGhost, b.noGhost), decide(b.RequireEnd, check.ExactlyOnce, b.exactlyOnce))
	}
	results = append(results, t.order()...)
	b.Settle(results, problem)
	check.Locate(b.Input.History, &b.Watch, results)
	return results
}

// versioned takes from the checks of accounts those that mean the same here: rows with
// versions are its accounts, but for the sum of all balances.
func (t *groups) versioned() []check.Result {
	b := t.balances
	all := t.proved()
	if b.ended() {
		return nil
	}
	if all == nil {
		all = b.results()
	}
	if b.ended() {
		return nil
	}
	return t.ofAccounts(all)
}

// ofAccounts picks from the results of all checks of accounts.
func (t *groups) ofAccounts(all []check.Result) []check.Result {
	b := t.balances
	problem := b.Damage
	for _, step := range []func() error{t.strayAmounts, t.readRows} {
		if problem == nil {
			problem = step()
		}
	}
	results := []check.Result{decide(b.RequireEndAlone, check.Total, t.total)}
	for _, r := range all {
		if r.Name == check.Ledger && problem == nil {
			r = t.versionedLedger(r)
		}
		if slices.Contains([]string{check.Ledger, check.Durable, check.NoGhost, check.ExactlyOnce, check.Serializable, check.Strict}, r.Name) {
			results = append(results, r)
		}
	}
	b.Settle(results[:2], problem) // total, and the first of those of accounts, ledger
	check.Locate(b.Input.History, &b.Watch, results)
	return results
}

// proved are the results of all checks of accounts where all transactions of the history
// are ours and have a serial order; nil where they do not, or the watch has ended.
func (t *groups) proved() []check.Result {
	b := t.balances
	if b.Damage != nil || t.sums.unexpected > 0 || slices.ContainsFunc(t.sums.opening, func(sum int64) bool { return sum != 0 }) {
		return nil
	}
	proof, err := b.prove(t.in.End, math.MinInt64)
	if err != nil || proof == nil {
		b.audit, b.absent = auditFacts{}, few[history.ID]{}
		return nil
	}
	return b.proved(proof)
}

// versionedLedger is the check of accounts of that name, which looks at versions too, unless
// the balances alone show the same: the other speaks of those as of money.
func (t *groups) versionedLedger(r check.Result) check.Result {
	own := decide(t.balances.RequireEndAlone, check.Ledger, t.ledger)
	if own.Status != check.Invalid && own.Status != r.Status {
		return r
	}
	own.Witness = r.Witness
	return own
}

// allBare says that no run that is given kept a history.
func (t *groups) allBare() bool {
	driven := 0
	for _, source := range t.in.History {
		if check.Driven(source.Header()) {
			driven++
		}
	}
	return driven > 0 && driven == len(t.in.Bare)
}

// addUp reads the history of the end state once, for the sums.
func (t *groups) addUp() (problem error) {
	if t.in.End == nil {
		return nil
	}
	s := &t.sums
	for leg := range t.eachRow(&problem) {
		switch k := t.kind(leg.Object); {
		case leg.Mark == history.Unkept:
			s.bare = append(s.bare, leg.Transaction.Run())
		case leg.Mark == history.Tombstone:
		case leg.Mark == history.Opening:
			if k < len(t.in.Groups) {
				s.opening[k] += leg.Amount
			}
		case leg.Number == 0:
			s.history += leg.Amount
			if leg.Transaction == 0 {
				s.unexpected++
			}
		}
	}
	return problem
}

// strayAmounts compares the amounts of committed transactions, as their clients sent them,
// with those of the history, where it does not have them as they were sent.
func (t *groups) strayAmounts() (problem error) {
	b, stray := t.balances, map[history.ID]bool{}
	for i := range b.Txns.List {
		x := &b.Txns.List[i]
		if x.Outcome == history.Committed && !x.AsSent() && !slices.Contains(t.in.Bare, x.ID.Run()) {
			stray[x.ID] = true
		}
	}
	if len(stray) == 0 || t.in.End == nil {
		return nil
	}
	for leg := range t.eachRow(&problem) {
		if leg.Mark == 0 && leg.Number == 0 && stray[leg.Transaction] {
			t.sums.astray -= leg.Amount
		}
	}
	if problem != nil {
		return problem
	}
	return b.Each(func(_ uint32, tx *history.Transaction) {
		if stray[tx.ID] && len(tx.Ops) > 0 {
			t.sums.astray += tx.Ops[0].Amount
		}
	})
}

// eachRow yields the history of the end state, as check.Each does.
func (t *groups) eachRow(problem *error) iter.Seq[history.Row] {
	return check.Each(&t.balances.Watch, "the end state's history", t.in.End.Rows(), problem)
}

// bareRuns adds what was acknowledged by runs that kept no history to what their rows
// are to hold.
func (t *groups) bareRuns() (problem error) {
	b := t.balances
	for i := range b.Txns.List {
		if x := &b.Txns.List[i]; x.Source != check.FromLedger && slices.Contains(t.in.Bare, x.ID.Run()) {
			x.Want, x.Sent = 0, 0
		}
	}
	for i, source := range b.Input.History {
		run := b.Txns.Runs[i]
		if !slices.Contains(t.in.Bare, run) {
			continue
		}
		if !source.Complete() {
			t.cut = run
		}
		for rec := range check.Each(&b.Watch, "the history", source.Transactions(), &problem) {
			t.bare(rec.Transaction)
		}
		if problem != nil {
			return problem
		}
	}
	return nil
}

func (t *groups) bare(tx *history.Transaction) {
	switch tx.Outcome {
	case history.Unknown:
		t.loose.add(tx.ID)
		for i := range tx.Ops {
			if n := tx.Ops[i].Object; n < t.balances.in.Accounts {
				t.balances.slots.touch(n).broken = true
			}
		}
	case history.Committed:
		for i := range tx.Ops {
			op := &tx.Ops[i]
			if i == 0 {
				t.sums.acknowledged += op.Amount
			}
			if op.Object < t.balances.in.Accounts {
				t.balances.slots.touch(op.Object).sum += op.Amount
			}
		}
	}
}

// somebodyElse adds openings, and what others have written into the history, to what
// their rows are to hold.
func (t *groups) somebodyElse() (problem error) {
	if t.in.End == nil {
		return nil
	}
	for leg := range t.eachRow(&problem) {
		switch {
		case leg.Transaction != 0:
		case leg.Object >= t.balances.in.Accounts:
			t.balances.end.strange.add(fact.ForeignLeg{Object: t.balances.objectToShow(leg.Object)})
		default:
			t.balances.slots.touch(leg.Object).sum += leg.Amount
			if t.kind(leg.Object) == len(t.in.Groups)-1 {
				t.before[leg.Object] += leg.Amount
			}
		}
	}
	return problem
}

// hole returns why balances prove nothing even if they fit; nil if they do.
func (t *groups) hole() fact.Fact {
	var list []fact.Fact
	if s := t.sums.unexpected; s < t.in.Unexpected {
		list = append(list, fact.Emptied{Rows: int(t.in.Unexpected - s)})
	}
	missing := slices.DeleteFunc(slices.Clone(t.sums.bare), func(run uint64) bool { return slices.Contains(t.in.Bare, run) })
	if len(missing) > 0 {
		list = append(list, fact.BareRun{Run: slices.Min(missing)})
	}
	if t.cut != 0 {
		list = append(list, fact.BareRun{Run: t.cut, CutOff: true})
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return fact.Reasons{List: list}
}

// somebodyAt returns that somebody else worked on the tables while we may have; nil if
// nobody did.
func (t *groups) somebodyAt() fact.Fact {
	if s := t.sums.unexpected; s > t.in.Unexpected {
		return fact.Shared{Rows: int(s - t.in.Unexpected)}
	}
	return nil
}

// excuse returns why balances that do not fit are no violation; nil if they are one.
func (t *groups) excuse() fact.Fact {
	if why := firstOf(t.hole(), t.somebodyAt()); why != nil {
		return why
	}
	for _, run := range t.in.Early {
		if slices.Contains(t.in.Bare, run) {
			return fact.NoEnd{Run: run}
		}
	}
	return nil
}

// firstOf returns the first fact that is there; nil if there is none.
func firstOf(list ...fact.Fact) fact.Fact {
	for _, f := range list {
		if f != nil {
			return f
		}
	}
	return nil
}
