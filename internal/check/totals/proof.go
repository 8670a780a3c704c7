package totals

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/chains"
	"stroppy/internal/history"
)

// errOdd ends a proof because a transaction shows a violation, which the checks will report.
var errOdd = errors.New("a transaction shows a violation")

// prove looks for a serial order of all transactions, in one pass and with little memory. If an order exists except for
// some circles, it returns the results of the checks. Only the checks of the order can be other than valid. Otherwise
// the results are nil, and the checks must examine the history. Then suspects are accounts at which the serial order
// does not go on.
func prove(ctx context.Context, in AccountsInput) (results []check.Result, suspects []uint64, err error) {
	b := newAccounts(ctx, in, 0)
	proof, err := b.prove(in.End, in.Floor)
	if err != nil || proof == nil || in.End != nil && !proof.Sum.Equals(in.Total) {
		return nil, b.suspects, err
	}
	results = b.proved(proof)
	if b.Watch.Err != nil {
		return nil, nil, fmt.Errorf("check the history: %w", b.Watch.Err)
	}
	return results, nil, nil
}

// prove returns the proof for the transactions of b and an end state, or nil if none was found.
func (b *balances) prove(end check.EndState, floor int64) (*chains.Proof, error) {
	recordings := onOneClock(b.Input.History, end == nil)
	if recordings == nil || end != nil && len(b.Input.Early) > 0 {
		return nil, nil
	}
	if b.in.Predicates != nil || b.in.Part { // chains do not show which accounts existed
		return nil, nil
	}
	report := b.Input.OnViolation
	b.Input.OnViolation = nil // the checks report violations again without a proof
	proof, err := chains.Prove(b.Watch.Ctx, chains.Input{
		Objects: b.in.Accounts, Opening: b.in.Opening, Floor: floor, History: recordings, End: end, Loose: !b.overwroteRead(), Look: b.lookAnew,
	})
	b.Input.OnViolation = report
	b.suspects = suspectOf(err)
	switch {
	case err != nil && !chains.Open(err):
		return nil, fmt.Errorf("check the history: %w", err)
	case err == nil && b.Watch.Cancelled():
		return nil, fmt.Errorf("check the history: %w", b.Watch.Err)
	case err != nil:
		return nil, nil
	}
	return &proof, nil
}

// displaced finds, without an end state, the transactions that overwrote a later version than they had read.
func (b *balances) displaced() (err error) {
	switch {
	case b.Input.End != nil || b.in.Part || b.trusted:
	case b.focus != nil:
		b.legs = b.focus.legs
	default:
		in := b.in
		in.Input = b.Input
		b.legs, err = displacedLegs(&b.Watch, in, !b.overwroteRead())
	}
	return err
}

// displacedLegs returns the ledger rows of these transactions, or nil if reads do not show them.
func displacedLegs(w *check.Watch, in AccountsInput, loose bool) (map[history.ID][]history.Row, error) {
	all := chains.Input{Objects: in.Accounts, Loose: loose}
	for _, source := range in.History {
		all.History = append(all.History, chains.Recording{Source: source})
	}
	legs, err := chains.Displaced(w, all)
	if chains.Open(err) {
		return nil, nil
	}
	return legs, err
}

// onOneClock returns the recordings with their beginnings on a common clock. It returns nil if there is no common
// clock, or if the time of an audit's state is not known. Unless open is set, it also returns nil if a recording is not
// closed.
//
// The beginning of a run or of a worker's clients may be known only within two bounds.
func onOneClock(sources []check.Source, open bool) (list []chains.Recording) {
	var first check.Clock
	for i, source := range sources {
		clock, ok := check.ClockOf(source.Header())
		if i == 0 {
			first = clock
		}
		if !source.Complete() && !open || check.AuditAge(source.Header()) > 0 || len(sources) > 1 && (!ok || clock.ID != first.ID) {
			return nil
		}
		recording := chains.Recording{Source: source}
		if len(sources) > 1 {
			recording.Zero, recording.Error = clock.Middle()-first.Middle(), clock.Error()
		}
		list = append(list, recording)
	}
	return list
}

// proved returns the results of all checks from a proof, or nil if there are too many circles.
func (b *balances) proved(proof *chains.Proof) []check.Result {
	for i, source := range b.Input.History {
		b.AddSource(i, source)
	}
	b.proof = proof
	b.Input.SetCommitted(uint64(proof.Committed))
	if b.Input.End != nil {
		b.Input.SetResolved(check.Resolved{Unknown: uint64(proof.InDoubt), Applied: uint64(proof.InDoubtApplied), By: b.Words.Book})
	}
	b.end.accounts, b.end.sum = b.in.Accounts, proof.Sum
	for n := range b.in.Accounts {
		b.end.identity += check.Mix(n + 1)
	}
	cyclic := proof.Cyclic
	if len(cyclic) == 0 {
		cyclic = proof.Delayed
	}
	if len(cyclic) > 0 {
		order := b.orderOf(proof, cyclic)
		if order == nil { // as if there were no proof
			b.proof, b.end, b.Txns.Runs, b.Clocks = nil, endFacts{}, nil, nil
			return nil
		}
		results := b.decideAll(order)
		b.Settle(results, nil)
		check.Locate(b.Input.History, &b.Watch, results)
		return results
	}
	results := b.decideAll(&order{b: b, doubt: proof.Doubt, undecided: b.whyUndecided()})
	b.Settle(results, nil)
	return results
}

// orderOf returns the results of the dependency graph for some transactions. These contain all circles, and
// their versions are known to be correct. Other transactions that made or overwrote a version precede or
// follow the whole circle, so they are not needed. The result is nil if the graph needs too much memory or
// the watch has ended.
func (b *balances) orderOf(proof *chains.Proof, cyclic []history.ID) *order {
	in := b.in
	in.Input = b.Input
	in.End = nil
	ids := map[history.ID]bool{}
	for _, id := range cyclic {
		ids[id] = true
	}
	in.History = nil
	for _, source := range b.Input.History {
		of := &picked{Source: source}
		if of.pick(&b.Watch, ids) != nil {
			return nil
		}
		in.History = append(in.History, of)
	}
	part := newAccounts(b.Watch.Ctx, in, 0)
	part.trusted, part.open, part.legs = true, b.Input.End == nil, map[history.ID][]history.Row{}
	for _, id := range cyclic {
		if rows := proof.Legs[id]; len(rows) > 0 {
			part.legs[id] = rows
		}
	}
	problem := part.read()
	var o *order
	if problem == nil && part.Watch.Err == nil {
		o = part.order()
	}
	if b.Watch.Err = part.Watch.Err; o == nil || b.Watch.Err != nil {
		return nil
	}
	part.proof, o.undecided = proof, b.whyUndecided()
	return o
}

// picked is a source with some transactions of another source.
type picked struct {
	check.Source
	list []history.Record
}

// pick reads the transactions with the given IDs.
func (p *picked) pick(w *check.Watch, ids map[history.ID]bool) (problem error) {
	for rec := range check.Each(w, "the history", p.Source.Transactions(), &problem) {
		if ids[rec.ID] {
			tx := *rec.Transaction
			tx.Ops = slices.Clone(tx.Ops)
			p.list = append(p.list, history.Record{Transaction: &tx, Ref: rec.Ref})
		}
	}
	return problem
}

// Complete returns false because transactions were left out.
func (p *picked) Complete() bool { return false }

func (p *picked) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for _, rec := range p.list {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// lookAnew starts a pass.
func (b *balances) lookAnew() func(tx *history.Transaction) error {
	b.audit, b.absent = auditFacts{}, few[history.ID]{}
	return b.look
}

// look records the data of a transaction for the checks that do not depend on the order.
func (b *balances) look(tx *history.Transaction) error {
	switch {
	case tx.Kind.Background() && tx.Outcome == history.Committed:
		b.noteAudit(tx)
	case tx.Outcome == history.Rejected && tx.Reason == b.in.Missing && b.in.Missing != 0:
		b.noteAbsence(tx)
	}
	if len(b.audit.wrong)+len(b.audit.missing)+b.absent.count > 0 || b.audit.short != 0 {
		return errOdd
	}
	return nil
}
