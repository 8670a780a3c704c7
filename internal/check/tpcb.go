package check

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// TPCBInput is all that the checks of tpcb look at. Rows have numbers from 0: the
// branches first, then the tellers, then the accounts. A transaction adds one amount
// to an account, a teller and a branch, in this order of its operations.
//
// The legs of the end state: a row of the history is three, numbered 0, 1 and 2, on
// its account, teller and branch, under the id of its transaction; that of somebody
// else's is 0. One numbered TPCBOpening, under the id 0, is what a row held when the
// data were first driven, beyond what the history tells; a row without one opened
// with 0. A tombstone whose id has the sequence number 0 says that its run kept no
// history.
type TPCBInput struct {
	Expect                      isolation.Level // the claim that the verdict is about
	Branches, Tellers, Accounts uint64
	Versions                    bool                  // every row counts, and every leg has its version
	Strangers                   uint64                // rows of somebody else that the history had when the data were first driven
	Bare                        []uint64              // runs given that kept no history
	Name                        func(n uint64) string // row n as people know it
	History                     []Source              // of distinct runs; none: the checks that need one are unknown
	End                         EndState              // nil: it was not downloaded
	Early                       []uint64              // as in Input
	Tell                        func(Violation)       // as in Input
}

// TPCBOpening is the number of a leg that is an opening.
const TPCBOpening = 3

// AboutTPCB says in one line what each check of tpcb holds, in the order in which they
// are told.
func AboutTPCB() [][2]string {
	return [][2]string{
		{Total, "the balances of accounts, of tellers and of branches grew by the same sum, that of all committed amounts"},
		{Ledger, "opening + amounts of the history = end balance, for every account, teller and branch"},
		{Durable, "every committed transaction is in the history"},
		{NoGhost, "nothing aborted is in the history, and nothing there was never sent"},
		{ExactlyOnce, "no transaction was applied twice"},
		{Serializable, "one order of all transactions explains every balance that was read"},
		{Strict, "one that agrees with real time does"},
	}
}

// TPCB makes all checks of tpcb. It takes time and memory linear in the history and
// the end state. Errors are as those of Bank.
func TPCB(ctx context.Context, in TPCBInput) ([]Result, error) {
	t := newTPCB(ctx, in, 0)
	results := t.results()
	if !t.bank.watch.ask() && t.bank.early != 0 {
		in.End = nil
		t = newTPCB(ctx, in, t.bank.early)
		results = t.results()
	}
	if t.bank.watch.ask() {
		return nil, fmt.Errorf("check the history: %w", t.bank.watch.err)
	}
	return results, nil
}

// tpcb is the material of all checks of tpcb. What it has in common with the bank,
// above all which transactions the history has, is found by the bank's checks, to
// which the history is the ledger and a row an account that opened with nothing.
type tpcb struct {
	in   TPCBInput
	bank *bank
	sums tpcbSums

	loose    []history.ID // the first few of unknown outcome that were to leave no row in the history
	looses   int
	cut      uint64 // a run that kept no history, and of which not all is recorded; 0 is none
	rows     uint64 // of the end state
	identity uint64
	wrong    []wrongRow // the first few whose books do not close
	wrongs   int
	vague    int // of them, those that a transaction of unknown outcome may explain
}

// wrongRow is a row that does not hold what it should.
type wrongRow struct {
	row  history.Account
	want int64
}

// tpcbSums are what the end state adds up to, of branches, tellers and accounts.
type tpcbSums struct {
	end, opening [3]int64
	history      int64    // of the amounts of all rows of the history
	acknowledged int64    // of the committed ones that were to leave none
	strangers    uint64   // rows of the history that are somebody else's
	bare         []uint64 // runs that say that they kept no history
}

func newTPCB(ctx context.Context, in TPCBInput, early uint64) *tpcb {
	b := &bank{words: tpcbWords, watch: watch{ctx: ctx}, early: early}
	b.in = Input{
		Expect: in.Expect, Accounts: in.Branches + in.Tellers + in.Accounts, Opening: func(uint64) int64 { return 0 },
		Name: in.Name, History: in.History,
	}
	// Whether all of a run without a history is in the end state, the balances show.
	b.in.Early = slices.DeleteFunc(slices.Clone(in.Early), func(run uint64) bool { return slices.Contains(in.Bare, run) })
	if in.End != nil {
		b.in.End = &ownLegs{in.End}
	}
	if in.Tell != nil {
		b.in.Tell = func(v Violation) {
			if v.Check != NonNegative { // a balance of tpcb may be below zero
				in.Tell(v)
			}
		}
	}
	return &tpcb{in: in, bank: b}
}

// ownLegs is an end state without the legs that no transaction of ours has made.
type ownLegs struct{ EndState }

func (o *ownLegs) Legs() iter.Seq2[history.Leg, error] {
	return func(yield func(history.Leg, error) bool) {
		for leg, err := range o.EndState.Legs() {
			if err == nil && leg.Transfer == 0 {
				continue
			}
			if !yield(leg, err) {
				return
			}
		}
	}
}

// kind returns 0 of a branch, 1 of a teller, 2 of an account and 3 of what is none.
func (t *tpcb) kind(n uint64) int {
	switch {
	case n < t.in.Branches:
		return 0
	case n < t.in.Branches+t.in.Tellers:
		return 1
	case n < t.bank.in.Accounts:
		return 2
	}
	return 3
}

// results makes the checks; they are worth nothing once the watch has ended.
func (t *tpcb) results() []Result {
	problem := t.addUp()
	if problem != nil {
		t.bank.damage = problem
	}
	versions := t.in.Versions && len(t.in.Bare)+len(t.sums.bare) == 0
	if versions {
		return t.versioned()
	}
	for _, step := range []func() error{t.bank.readTransactions, t.bank.readLedger, t.bareRuns, t.somebodyElse, t.readRows} {
		if problem != nil {
			break
		}
		problem = step()
		if t.bank.early != 0 && t.bank.in.End != nil || t.bank.watch.ask() {
			return nil
		}
	}
	if problem != nil {
		t.bank.damage = problem
	}
	results := []Result{t.total(), t.ledger()}
	if !t.allBare() {
		results = append(results, t.bank.durable(), t.bank.noGhost(), t.bank.exactlyOnce())
	}
	results = append(results, t.order()...)
	t.bank.settle(results, problem)
	locate(t.bank.in.History, &t.bank.watch, results)
	return results
}

// versioned takes from the bank's checks those that mean the same here: rows with
// versions are its accounts, but for the sum of all balances.
func (t *tpcb) versioned() []Result {
	all := t.bank.results()
	if t.bank.early != 0 && t.bank.in.End != nil || t.bank.watch.ask() {
		return nil
	}
	results := []Result{t.total()}
	problem := t.bank.damage
	if problem == nil {
		problem = t.readRows()
	}
	for _, r := range all {
		if r.Name == Ledger && problem == nil {
			r = t.versionedLedger(r)
		}
		if slices.Contains([]string{Ledger, Durable, NoGhost, ExactlyOnce, Serializable, Strict}, r.Name) {
			results = append(results, r)
		}
	}
	t.bank.settle(results[:2], problem) // total, and the first of the bank's, ledger
	locate(t.bank.in.History, &t.bank.watch, results)
	return results
}

// versionedLedger is the bank's check of that name, which looks at versions too, unless
// the balances alone tell the same: of those the bank speaks as of money.
func (t *tpcb) versionedLedger(r Result) Result {
	own := t.ledger()
	if own.Status != Invalid && own.Status != r.Status {
		return r
	}
	own.Witness = r.Witness
	return own
}

// allBare says that no run that is given kept a history.
func (t *tpcb) allBare() bool {
	driven := 0
	for _, source := range t.in.History {
		if Driven(source.Header()) {
			driven++
		}
	}
	return driven > 0 && driven == len(t.in.Bare)
}

// addUp reads the end state once, for the sums.
func (t *tpcb) addUp() error {
	if t.in.End == nil {
		return nil
	}
	b, s := t.bank, &t.sums
	for a, err := range t.in.End.Accounts() {
		if err != nil {
			return fmt.Errorf("the end state's rows could not be read: %w", err)
		}
		if b.watch.ended() {
			return b.watch.err
		}
		if k := t.kind(a.N); k < 3 {
			s.end[k] += a.Balance
		}
	}
	for leg, err := range t.in.End.Legs() {
		if err != nil {
			return fmt.Errorf("the end state's history could not be read: %w", err)
		}
		if b.watch.ended() {
			return b.watch.err
		}
		switch k := t.kind(leg.Account); {
		case leg.Void:
			if leg.Transfer.Sequence() == 0 {
				s.bare = append(s.bare, leg.Transfer.Run())
			}
		case leg.Transfer == 0 && leg.Number == TPCBOpening:
			if k < 3 {
				s.opening[k] += leg.Amount
			}
		case leg.Number == 0:
			s.history += leg.Amount
			if leg.Transfer == 0 {
				s.strangers++
			}
		}
	}
	return nil
}

// bareRuns adds what was acknowledged by runs that kept no history to what their rows
// are to hold.
func (t *tpcb) bareRuns() error {
	b := t.bank
	for i := range b.txns.list {
		if x := &b.txns.list[i]; x.source != fromLedger && slices.Contains(t.in.Bare, x.id.Run()) {
			x.want, x.legs = 0, 0
		}
	}
	for i, source := range b.in.History {
		run := b.txns.runs[i]
		if !slices.Contains(t.in.Bare, run) {
			continue
		}
		if !source.Complete() {
			t.cut = run
		}
		for rec, err := range source.Transactions() {
			if err != nil {
				return fmt.Errorf("the history could not be read: %w", err)
			}
			if b.watch.ended() {
				return b.watch.err
			}
			t.bare(rec.Transaction)
		}
	}
	return nil
}

func (t *tpcb) bare(tx *history.Transaction) {
	switch tx.Outcome {
	case history.Unknown:
		if t.looses++; len(t.loose) < some {
			t.loose = append(t.loose, tx.ID)
		}
		for i := range tx.Ops {
			if n := tx.Ops[i].Account; n < t.bank.in.Accounts {
				t.bank.slots.touch(n).broken = true
			}
		}
	case history.Committed:
		for i := range tx.Ops {
			op := &tx.Ops[i]
			if i == 0 {
				t.sums.acknowledged += op.Amount
			}
			if op.Account < t.bank.in.Accounts {
				t.bank.slots.touch(op.Account).sum += op.Amount
			}
		}
	}
}

// somebodyElse adds openings, and what others have written into the history, to what
// their rows are to hold.
func (t *tpcb) somebodyElse() error {
	if t.in.End == nil {
		return nil
	}
	for leg, err := range t.in.End.Legs() {
		if err != nil {
			return fmt.Errorf("the end state's history could not be read: %w", err)
		}
		if t.bank.watch.ended() {
			return t.bank.watch.err
		}
		if leg.Transfer != 0 || leg.Void {
			continue
		}
		if leg.Account >= t.bank.in.Accounts {
			t.bank.end.strange++
			continue
		}
		t.bank.slots.touch(leg.Account).sum += leg.Amount
	}
	return nil
}

// missingRuns are the runs that kept no history and are not given.
func (t *tpcb) missingRuns() []uint64 {
	var list []uint64
	for _, run := range t.sums.bare {
		if !slices.Contains(t.in.Bare, run) {
			list = append(list, run)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// hole says why balances prove nothing even if they fit; empty if they do.
func (t *tpcb) hole() string {
	var list []string
	if s := t.sums.strangers; s < t.in.Strangers {
		list = append(list, fmt.Sprintf("the history lacks %s of somebody else that were there when it was first driven: somebody has emptied it", plural(t.in.Strangers-s, "row")))
	}
	if runs := t.missingRuns(); len(runs) > 0 {
		list = append(list, fmt.Sprintf("run %d kept no history and its recording was not given: give its directory too", runs[0]))
	}
	if t.cut != 0 {
		list = append(list, fmt.Sprintf("run %d kept no history and its recording was cut off", t.cut))
	}
	return strings.Join(list, "; ")
}

// somebodyAt says that somebody else worked on the tables while we may have; empty if
// nobody did.
func (t *tpcb) somebodyAt() string {
	if s := t.sums.strangers; s > t.in.Strangers {
		return fmt.Sprintf("the history has %s of somebody else, who worked on the same tables since they were first driven", plural(s-t.in.Strangers, "row"))
	}
	return ""
}

// excuse says why balances that do not fit are no violation; empty if they are one.
func (t *tpcb) excuse() string {
	if why := cmp.Or(t.hole(), t.somebodyAt()); why != "" {
		return why
	}
	for _, run := range t.in.Early {
		if slices.Contains(t.in.Bare, run) {
			return fmt.Sprintf("run %d is not known to have ended before the end state was downloaded; give --db to download it now", run)
		}
	}
	return ""
}
