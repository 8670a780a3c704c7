// Package totals compares balances with the ledger of their changes. It checks accounts that carry versions,
// and rows in groups whose sums grow equally.
package totals

import (
	"context"
	"fmt"
	"math"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/chains"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// AccountsInput is the input of the checks of accounts and their ledger.
type AccountsInput struct {
	check.Input
	Words    check.Words
	Accounts uint64               // number of accounts of the load
	Total    int64                // the total of the load, cents
	Opening  func(n uint64) int64 // the opening balance of account n, cents
	Audited  []uint64             // runs with audits, which are background transactions
	// AuditSize maps a run to the number of accounts of the load that each of its audits reads; 0: not known.
	AuditSize map[uint64]uint64
	Floor     int64          // lower bound that the database enforces for balances, cents
	Missing   history.Reason // the reason of a rejection because an account was not found

	Predicates *Predicates // nil: no account is opened, closed or read by predicate

	whole, part int // of a test: mostExamined and mostFocused
}

// Accounts runs all checks of accounts that carry versions, and of the ledger of their changes. Its time is
// linear in the history and the ledger. Its memory is linear up to mostExamined transactions.
//
// If the history or the ledger cannot be read completely, the checks that depend on the rest are unknown. The
// only error that Accounts returns wraps the cause of the context's end.
func Accounts(ctx context.Context, in AccountsInput) ([]check.Result, error) {
	results, suspects, err := prove(ctx, in)
	if results != nil || err != nil {
		return results, err
	}
	if results, err := examineLong(ctx, in, suspects); results != nil || err != nil {
		return results, err
	}
	return examine(ctx, in)
}

// examine runs the checks on the complete history.
func examine(ctx context.Context, in AccountsInput) ([]check.Result, error) {
	return decided(in.Input, func(input check.Input, early uint64) (*balances, []check.Result) {
		in.Input = input
		b := newAccounts(ctx, in, early)
		return b, b.results()
	})
}

// decided runs checks. If they show that a run continued after the download of the end state, it runs them
// again without the end state.
func decided(in check.Input, results func(in check.Input, early uint64) (*balances, []check.Result)) ([]check.Result, error) {
	b, made := results(in, 0)
	if !b.Watch.Cancelled() && b.Unended != 0 {
		in.End = nil
		b, made = results(in, b.Unended)
	}
	if b.Watch.Cancelled() {
		return nil, fmt.Errorf("check the history: %w", b.Watch.Err)
	}
	return made, nil
}

// results returns the results of the checks. They are invalid if the watch has ended.
func (b *balances) results() []check.Result {
	problem := b.read()
	if b.ended() {
		return nil
	}
	b.Input.SetCommitted(b.Txns.Committed)
	b.resolve(problem)
	results := b.decideAll(b.order())
	b.Settle(results, problem)
	check.Locate(b.Input.History, &b.Watch, results)
	return results
}

// resolve counts the ledger's outcomes of unknown transactions, if the ledger was read without a problem.
func (b *balances) resolve(problem error) {
	if b.Input.End != nil && problem == nil {
		b.Input.SetResolved(b.Txns.Resolved(b.Words.Book))
	}
}

// decideAll decides the checks from the collected data.
func (b *balances) decideAll(order *order) []check.Result {
	results := []check.Result{
		decide(b.RequireEndAlone, check.Total, b.total), decide(b.RequireEndAlone, check.NonNegative, b.nonNegative),
		decide(b.RequireEndAlone, check.Ledger, b.ledger), decide(b.RequireEnd, check.Durable, b.durable),
		decide(b.RequireEnd, check.NoGhost, b.noGhost), decide(b.RequireEnd, check.ExactlyOnce, b.exactlyOnce),
		order.serializable(b.Input.Expect), order.strict(b.Input.Expect), b.audits(order),
	}
	if b.in.Predicates != nil {
		results = append(results, b.limit(b.Input.Expect))
	}
	return results
}

// decide returns the result of a check, or its undecided result if an input is missing.
func decide(need func(name string) (r check.Result, missing bool), name string, makes func(r check.Result) check.Result) check.Result {
	r, missing := need(name)
	if missing {
		return r
	}
	return makes(r)
}

// balances holds the data of all checks, collected in two passes over the files.
type balances struct {
	check.Evidence
	in     AccountsInput
	slots  slots
	chain  chain
	end    endFacts
	audit  auditFacts
	absent few[history.ID] // rejected because an account of the load was not found
	reads  readFacts
	edges  graph.Edges // collected until the graph is built
	graph  *graph.Graph

	predicates predicateFacts
	trusted    bool                         // the versions were proved correct
	open       bool                         // without an end state: the versions follow from reads
	legs       map[history.ID][]history.Row // ledger rows of transactions whose clients did not see all versions

	proof *chains.Proof // nil: no proof, and the other fields are complete
	focus *focus        // nil: everything is examined

	suspects []uint64 // accounts at which the serial order does not go on
}

func newAccounts(ctx context.Context, in AccountsInput, early uint64) *balances {
	return &balances{
		Evidence: check.Evidence{Input: in.Input, Words: in.Words, Watch: check.Watch{Ctx: ctx}, Unended: early},
		in:       in,
	}
}

type auditFacts struct {
	whole, sampled int
	runs           map[uint64]bool // runs that completed an audit
	wrong          []fact.AuditSum // complete audits with a wrong sum
	missing        []history.ID    // audits that did not find an account
	short          history.ID      // an audit whose recording lacks accounts; 0: none
}

func (b *balances) read() error {
	steps := []func() error{b.displaced, b.readTransactions, b.readLedger, b.repeatedLegs, b.layOut, b.placeLedger, b.placeUnledgered, b.readAccounts, b.relate, b.judgeAgain}
	for _, step := range steps {
		if err := step(); err != nil {
			b.Damage = err
			return err
		}
		if b.ended() {
			return nil
		}
	}
	return nil
}

// ended reports whether the work must stop, or must start again without the end state.
func (b *balances) ended() bool { return b.Watch.Cancelled() || b.Unended != 0 && b.Input.End != nil }

// findEarly looks for a run that may have continued after the end state was downloaded: the ledger lacks a
// transfer of the run that was or may have been applied. If the ledger has all transfers, the download came
// after the last one.
func (b *balances) findEarly() {
	if len(b.Input.Early) == 0 {
		return
	}
	for i := range b.Txns.List {
		t := &b.Txns.List[i]
		if b.Watch.Ended() {
			return
		}
		applied := t.Outcome == history.Committed || t.Outcome == history.Unknown && t.Flags&check.Tombstone == 0
		if t.Source != check.FromLedger && t.Want > t.Seen && applied && slices.Contains(b.Input.Early, t.ID.Run()) {
			b.Unended = t.ID.Run()
			return
		}
	}
}

func (b *balances) readTransactions() (problem error) {
	if b.in.Accounts <= denseAccounts && (!b.in.Part || b.in.Accounts <= denseInPart) {
		b.slots.dense = make([]uint32, b.in.Accounts)
	} else {
		b.slots.sparse = map[uint64]uint32{}
	}
	for number, source := range b.Input.History {
		b.AddSource(number, source)
		age := int64(check.AuditAge(source.Header()))
		for rec := range check.Each(&b.Watch, "the history", source.Transactions(), &problem) {
			if err := b.Txns.Add(rec.Transaction, number); err != nil {
				return err
			}
			if rec.Kind.Background() {
				b.Txns.List[len(b.Txns.List)-1].Try -= age
			}
			b.noteWrites(rec.Transaction)
			if b.Input.End == nil {
				b.noteLowest(rec.Transaction)
			}
			switch {
			case rec.Kind.Background() && rec.Outcome == history.Committed:
				b.noteAudit(rec.Transaction)
			case rec.Outcome == history.Rejected && rec.Reason == b.in.Missing && b.in.Missing != 0:
				b.noteAbsence(rec.Transaction)
			}
		}
		if problem != nil {
			return problem
		}
	}
	if id := b.audit.short; id != 0 {
		return fmt.Errorf("the history lacks accounts that audit %v has read: it was altered or damaged: restore it from a copy", id)
	}
	if missing, found := b.Txns.Gap(b.Recorded); found && b.focus == nil {
		return fmt.Errorf("the history lacks transaction %v, and has later ones of its client: it was altered or damaged: restore it from a copy", missing)
	}
	return nil
}

// noteWrites extends the account's chain to the versions that clients saw.
func (b *balances) noteWrites(tx *history.Transaction) {
	if rows := b.legs[tx.ID]; len(rows) > 0 {
		b.noteRows(rows)
		return
	}
	if tx.Outcome != history.Committed {
		return
	}
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Write && b.has(op.Object) {
			s := b.slots.touch(op.Object)
			s.writes++
			if op.Observed {
				s.highest = max(s.highest, op.Version+1)
			}
		}
	}
}

func (b *balances) noteRows(rows []history.Row) {
	for i := range rows {
		if !b.focus.covers(rows[i].Object) {
			continue
		}
		s, version := b.slots.touch(rows[i].Object), rows[i].Version
		s.writes++
		s.highest = max(s.highest, version)
		if s.lowest == 0 || version < s.lowest {
			s.lowest = version
		}
	}
}

// noteLowest sets the start of the chains for a part of a history.
func (b *balances) noteLowest(tx *history.Transaction) {
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Observed && op.Object < b.in.Accounts && b.focus.covers(op.Object) && op.Version < math.MaxUint32 {
			s := b.slots.touch(op.Object)
			if s.lowest == 0 || op.Version+1 < s.lowest {
				s.lowest = op.Version + 1
			}
		}
	}
}

// noteAbsence records a rejection because of a missing account of the load.
func (b *balances) noteAbsence(tx *history.Transaction) {
	for i := range tx.Ops {
		if tx.Ops[i].Object >= b.in.Accounts {
			return
		}
	}
	b.Show(check.Durable, "", tx.ID, "", fact.NotFound{By: tx.ID})
	b.absent.add(tx.ID)
}

// wholeAudit reports whether the recording has all accounts that an audit read. The client records each
// account, including one that it did not find.
func (b *balances) wholeAudit(tx *history.Transaction) bool {
	size := b.in.AuditSize[tx.ID.Run()]
	if uint64(len(tx.Ops)) < size {
		return false
	}
	seen := uint64(0) // operations are in the order of the accounts, with further ones after them
	for i := range tx.Ops {
		if tx.Ops[i].Object == tx.Ops[0].Object+seen {
			seen++
		}
	}
	return seen >= size
}

// noteAudit records what an audit saw. An audit that saw an account twice has more operations than there are
// accounts.
func (b *balances) noteAudit(tx *history.Transaction) {
	if slices.ContainsFunc(tx.Ops, func(op history.Op) bool { return !op.Observed && op.Object < b.in.Accounts }) {
		b.audit.missing = append(b.audit.missing, tx.ID)
	}
	if !b.wholeAudit(tx) && b.audit.short == 0 {
		b.audit.short = tx.ID
	}
	if b.audit.runs == nil {
		b.audit.runs = map[uint64]bool{}
	}
	b.audit.runs[tx.ID.Run()] = true
	if uint64(len(tx.Ops)) < b.in.Accounts {
		b.audit.sampled++
		return
	}
	b.audit.whole++
	var sum check.Sum
	for i := range tx.Ops {
		sum.Add(tx.Ops[i].Value)
	}
	if !sum.Equals(b.in.Total) {
		what := fact.AuditSum{By: tx.ID, Saw: sum.Low(), Total: b.in.Total}
		b.Show(check.Audits, "", tx.ID, "", what)
		b.audit.wrong = append(b.audit.wrong, what)
	}
}
