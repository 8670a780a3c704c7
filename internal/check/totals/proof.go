package totals

import (
	"context"
	"errors"
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/check/chains"
	"stroppy/internal/history"
)

// errOdd ends a proof: a transaction shows a violation, which the checks will name.
var errOdd = errors.New("a transaction shows a violation")

// prove looks for a serial order of all transactions, in one pass and in little memory, and
// returns the results of the checks if there is one: all of them are valid. Nil is none
// found, for whatever reason; then the checks look at everything.
func prove(ctx context.Context, in AccountsInput) ([]check.Result, error) {
	if len(in.History) != 1 || !in.History[0].Complete() || in.End == nil || len(in.Early) > 0 {
		return nil, nil
	}
	if check.AuditAge(in.History[0].Header()) > 0 {
		return nil, nil
	}
	silent := in
	silent.OnViolation = nil
	b := newAccounts(ctx, silent, 0)
	proof, err := chains.Prove(ctx, chains.Input{
		Objects: in.Accounts, Opening: in.Opening, Floor: in.Floor, History: in.History[0], End: in.End, Look: b.lookAnew,
	})
	switch {
	case err != nil && !chains.Open(err):
		return nil, fmt.Errorf("check the history: %w", err)
	case err != nil || !proof.Sum.Equals(in.Total):
		return nil, nil
	}
	if b.Watch.Cancelled() {
		return nil, fmt.Errorf("check the history: %w", b.Watch.Err)
	}
	b.AddSource(0, in.History[0])
	b.proof = &proof
	b.end.accounts, b.end.sum = in.Accounts, proof.Sum
	for n := range in.Accounts {
		b.end.identity += check.Mix(n + 1)
	}
	return b.decideAll(&order{b: b}), nil
}

// lookAnew begins with no transaction.
func (b *balances) lookAnew() func(tx *history.Transaction) error {
	b.audit, b.absent = auditFacts{}, few[history.ID]{}
	return b.look
}

// look takes note of what checks other than those of the order say of a transaction.
func (b *balances) look(tx *history.Transaction) error {
	switch {
	case tx.Kind.Background() && tx.Outcome == history.Committed:
		b.noteAudit(tx)
	case tx.Outcome == history.Rejected && tx.Reason == b.in.Missing && b.in.Missing != 0:
		b.noteAbsence(tx)
	}
	if len(b.audit.wrong)+len(b.audit.missing)+b.absent.count > 0 {
		return errOdd
	}
	return nil
}
