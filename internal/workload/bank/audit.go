package bank

import (
	"context"

	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// auditor makes the audits of a run and collects what they see. A whole audit reads all accounts. A sampled audit
// reads accounts with consecutive numbers, from a random start.
type auditor struct {
	*chooser
	auditSession
	size  uint64 // accounts that one audit reads
	first uint64 // of the accounts of this audit
}

// auditSession reads accounts from one snapshot of a database and adds each to the
// audit.
type auditSession interface {
	all(ctx context.Context, a *auditor, tx *history.Transaction) error
	sample(ctx context.Context, a *auditor, tx *history.Transaction) error // the accounts of the operations

	Reset(ctx context.Context) error
	Close() error
}

// Next implements load.Client.
func (a *auditor) Next(tx *history.Transaction) {
	a.sequence++
	a.first = a.source.Uint64N(a.accounts - a.size + 1)
	*tx = history.Transaction{ID: history.NewID(a.run, a.client, a.sequence), Kind: audit, Ops: tx.Ops[:0]}
}

// Attempt implements load.Client. An account that is not found is an operation without an
// observation, so that a whole audit does not pass for a sample. An audit that fails has
// seen nothing.
func (a *auditor) Attempt(ctx context.Context, tx *history.Transaction) error {
	tx.Outcome, tx.Ops = history.Unknown, tx.Ops[:0]
	for i := range a.size {
		tx.Ops = append(tx.Ops, history.Op{Object: a.first + i})
	}
	read := a.sample
	if a.size == a.accounts {
		read = a.all
	}
	if err := read(ctx, a, tx); err != nil {
		tx.Ops = tx.Ops[:0]
		return err
	}
	tx.Outcome = history.Committed
	return nil
}

// add records one account; a second one with the same number is another operation. An account that no formula makes
// is left to the end state, which shows it.
func (a *auditor) add(tx *history.Transaction, key uint64, s workload.State) {
	n := a.formula.number(key)
	if n >= firstOpened && a.opener.codes != nil && a.size == a.accounts {
		tx.Ops = append(tx.Ops, history.Op{Object: n})
		workload.Observe(&tx.Ops[len(tx.Ops)-1], s.Balance, s.Version, s.Last)
		return
	}
	if n < a.first || n-a.first >= a.size {
		return
	}
	op := &tx.Ops[n-a.first]
	if op.Observed {
		tx.Ops = append(tx.Ops, history.Op{Object: n})
		op = &tx.Ops[len(tx.Ops)-1]
	}
	workload.Observe(op, s.Balance, s.Version, s.Last)
}

// ResolveUnknown implements load.Client.
func (a *auditor) ResolveUnknown(_ context.Context, tx *history.Transaction) error {
	workload.ResolvedWithoutLookUp(tx)
	return nil
}
