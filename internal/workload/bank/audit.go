package bank

import (
	"context"

	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// auditor makes the audits of a run and gathers what they see. A whole audit
// reads all accounts; a sampled one reads a row of accounts that follow each
// other by number, from a start drawn at random.
type auditor struct {
	*chooser
	auditSession
	size uint64
	seen []uint64 // one bit an account: a whole audit has read it
}

var _ load.Client = (*auditor)(nil)

// auditSession reads accounts from one snapshot of a database and adds each to the
// audit.
type auditSession interface {
	all(ctx context.Context, a *auditor, tx *history.Transaction) error
	sample(ctx context.Context, a *auditor, tx *history.Transaction) error // those of the operations

	Reset(ctx context.Context) error
	Close() error
}

func newAuditor(b *Bank, s auditSession) *auditor {
	a := &auditor{chooser: b.chooser(b.config.Clients), auditSession: s, size: b.config.auditSize(b.Size())}
	if a.whole() {
		a.seen = make([]uint64, (a.accounts+63)/64)
	}
	return a
}

func (a *auditor) whole() bool { return a.size == a.accounts }

// Next implements load.Client. The operations of a whole audit are what it
// finds.
func (a *auditor) Next(tx *history.Transaction) {
	a.sequence++
	*tx = history.Transaction{ID: history.NewID(a.run, a.client, a.sequence), Kind: history.Audit, Ops: tx.Ops[:0]}
	if a.whole() {
		return
	}
	start := a.source.Uint64N(a.accounts - a.size + 1)
	for i := range a.size {
		tx.Ops = append(tx.Ops, history.Op{Object: start + i})
	}
}

// Attempt implements load.Client.
func (a *auditor) Attempt(ctx context.Context, tx *history.Transaction) error {
	a.start(tx)
	read := a.sample
	if a.whole() {
		read = a.all
	}
	if err := read(ctx, a, tx); err != nil {
		a.start(tx)
		return err
	}
	a.finish(tx)
	return nil
}

// start forgets what an earlier try has seen.
func (a *auditor) start(tx *history.Transaction) {
	workload.Forget(tx)
	if a.whole() {
		tx.Ops = tx.Ops[:0]
		clear(a.seen)
	}
}

// add notes one account. One that no formula makes is left to the end state,
// which shows it.
func (a *auditor) add(tx *history.Transaction, key uint64, s workload.State) {
	n := a.formula.number(key)
	switch {
	case n >= a.accounts:
	case a.whole():
		tx.Ops = append(tx.Ops, history.Op{Object: n})
		workload.Observe(&tx.Ops[len(tx.Ops)-1], s.Balance, s.Version, s.Last)
		a.seen[n/64] |= 1 << (n % 64)
	case len(tx.Ops) > 0 && n >= tx.Ops[0].Object && n-tx.Ops[0].Object < uint64(len(tx.Ops)):
		workload.Observe(&tx.Ops[n-tx.Ops[0].Object], s.Balance, s.Version, s.Last)
	}
}

// finish ends an audit that has seen all there is. An account that a whole one
// did not find is an operation without an observation, so that the audit does
// not pass for a sample.
func (a *auditor) finish(tx *history.Transaction) {
	tx.Outcome = history.Committed
	if !a.whole() || uint64(len(tx.Ops)) == a.accounts {
		return
	}
	for n := range a.accounts {
		if a.seen[n/64]&(1<<(n%64)) == 0 {
			tx.Ops = append(tx.Ops, history.Op{Object: n})
		}
	}
}

// ResolveUnknown implements load.Client.
func (a *auditor) ResolveUnknown(_ context.Context, tx *history.Transaction) error {
	workload.ResolvedWithoutLookUp(tx)
	return nil
}
