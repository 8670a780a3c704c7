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

// GroupsInput is the input of the checks of rows in groups, whose balances grow by equal sums. Rows are numbered from
// 0, group by group. A transaction adds one amount to a row of each group and reads the previous balance of the last
// group's row. Its operations go from the last group to the first.
//
// In the end state, a history row has one leg for each group under the ID of its transaction. The legs are numbered
// from 0, from the last group to the first. The ID is 0 for rows that other programs wrote. A leg marked as an opening
// is the part of a row's balance at the first run that the history does not explain. The default is 0. A leg marked as
// unkept states that its run kept no history.
type GroupsInput struct {
	check.Input
	Words      check.Words
	Groups     []Group
	Versions   bool   // every row counts its changes, and every leg has its version
	Unexpected uint64 // history rows of other programs that existed at the first run

	// Opening returns the balance of a row at the first run, if the history has only later rows. Nil: rows marked as an
	// opening have it.
	Opening func(n uint64) int64

	Bare []uint64 // the given runs without a history
}

// Group is a number of rows of one kind.
type Group struct {
	Name string // plural, such as tellers
	Rows uint64
}

// Groups runs all checks of rows in groups. It takes time and memory linear in the history and the end state.
// Errors are as for Accounts.
func Groups(ctx context.Context, in GroupsInput) ([]check.Result, error) {
	return decided(in.Input, func(input check.Input, early uint64) (*balances, []check.Result) {
		in.Input = input
		t := newGroups(ctx, in, early)
		return t.balances, t.results()
	})
}

// groups holds the data of all checks of rows in groups. It shares with accounts the table of transactions
// and more: for balances, the history is the ledger, and a row is an account that opened with nothing.
type groups struct {
	in       GroupsInput
	balances *balances
	sums     groupSums

	before map[uint64]int64 // by row of the last group: the amounts of other programs
	loose  few[history.ID]  // transactions of unknown outcome that would leave no history row
	cut    uint64           // a run without a history whose recording is incomplete; 0: none

	wrong few[wrongAccount] // rows with wrong balances
	vague few[wrongAccount] // likewise, if a transaction of unknown outcome may explain it
}

type groupSums struct {
	end, opening []int64  // sums by group
	history      int64    // sum of the amounts of all history rows
	acknowledged int64    // sum over committed transactions that leave no row
	astray       int64    // sum sent minus sum in the history, over committed transactions that differ
	unexpected   uint64   // number of history rows of other programs
	bare         []uint64 // runs that are marked as having no history
}

func newGroups(ctx context.Context, in GroupsInput, early uint64) *groups {
	rows := uint64(0)
	for _, g := range in.Groups {
		rows += g.Rows
	}
	own := AccountsInput{Input: in.Input, Words: in.Words, Accounts: rows, Opening: in.Opening}
	if in.Opening == nil {
		own.Opening = func(uint64) int64 { return 0 }
	}
	own.End, own.OnViolation = nil, nil
	b := newAccounts(ctx, own, early)
	// For a run without a history, the balances show whether the end state is complete.
	b.Input.Early = slices.DeleteFunc(slices.Clone(in.Early), func(run uint64) bool { return slices.Contains(in.Bare, run) })
	if in.End != nil {
		b.Input.End = &ownLegs{in.End}
	}
	if in.OnViolation != nil {
		b.Input.OnViolation = func(v check.Violation) {
			if v.Check != check.NonNegative { // a balance may be negative
				in.OnViolation(v)
			}
		}
	}
	sums := groupSums{end: make([]int64, len(in.Groups)), opening: make([]int64, len(in.Groups))}
	t := &groups{in: in, balances: b, sums: sums, before: map[uint64]int64{}}
	for n := uint64(0); in.Opening != nil && n < rows && !b.Watch.Ended(); n++ {
		t.sums.opening[t.kind(n)] += in.Opening(n)
	}
	return t
}

// ownLegs is an end state without the legs of other programs.
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

// kind returns the group of a row, or the number of groups if the row is in none.
func (t *groups) kind(n uint64) int {
	for i, g := range t.in.Groups {
		if n < g.Rows {
			return i
		}
		n -= g.Rows
	}
	return len(t.in.Groups)
}

// names lists the groups, the last one first.
func (t *groups) names() (list []string) {
	for _, g := range slices.Backward(t.in.Groups) {
		list = append(list, g.Name)
	}
	return list
}

// results returns the results of the checks. They are invalid if the watch has ended.
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

// versioned returns the checks of accounts that apply here. Rows with versions are its accounts, but the sum
// of all balances differs.
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

// ofAccounts selects from the results of all checks of accounts.
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
	b.Settle(results[:2], problem) // total, and ledger, the first check of accounts
	check.Locate(b.Input.History, &b.Watch, results)
	return results
}

// proved returns the results of all checks of accounts if all history rows are from our runs and have a
// serial order. It returns nil otherwise, or if the watch has ended.
func (t *groups) proved() []check.Result {
	b := t.balances
	marked := t.in.Opening == nil && slices.ContainsFunc(t.sums.opening, func(sum int64) bool { return sum != 0 })
	if b.Damage != nil || t.sums.unexpected > 0 || marked {
		return nil
	}
	proof, err := b.prove(t.in.End, math.MinInt64)
	if err != nil || proof == nil {
		b.audit, b.absent = auditFacts{}, few[history.ID]{}
		return nil
	}
	return b.proved(proof)
}

// versionedLedger returns the ledger check of accounts, which also examines versions. If the balances alone
// show the same, it returns r, because the other check speaks of money.
func (t *groups) versionedLedger(r check.Result) check.Result {
	own := decide(t.balances.RequireEndAlone, check.Ledger, t.ledger)
	if own.Status != check.Invalid && own.Status != r.Status {
		return r
	}
	own.Witness = r.Witness
	return own
}

// allBare reports whether no given run kept a history.
func (t *groups) allBare() bool {
	driven := 0
	for _, source := range t.in.History {
		if check.Driven(source.Header()) {
			driven++
		}
	}
	return driven > 0 && driven == len(t.in.Bare)
}

// addUp computes the sums in one pass over the history of the end state.
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

// strayAmounts compares the amounts of committed transactions as sent with those in the history, if they
// differ.
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

// eachRow yields the history of the end state, like check.Each.
func (t *groups) eachRow(problem *error) iter.Seq[history.Row] {
	return check.Each(&t.balances.Watch, "the end state's history", t.in.End.Rows(), problem)
}

// bareRuns adds the acknowledged amounts of runs without a history to the expected balances.
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

// somebodyElse adds the openings and the history rows of other programs to the expected balances.
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

// hole returns the reason why matching balances prove nothing, or nil if they do.
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

// somebodyAt returns the fact that other programs may have used the tables during our runs, or nil.
func (t *groups) somebodyAt() fact.Fact {
	if s := t.sums.unexpected; s > t.in.Unexpected {
		return fact.Shared{Rows: int(s - t.in.Unexpected)}
	}
	return nil
}

// excuse returns the reason why wrong balances are not a violation, or nil if they are.
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

// firstOf returns the first fact that is not nil, or nil.
func firstOf(list ...fact.Fact) fact.Fact {
	for _, f := range list {
		if f != nil {
			return f
		}
	}
	return nil
}
