package bank

import (
	"context"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/check/totals"
	"stroppy/internal/money"
	"stroppy/internal/workload/recording"
)

// What the header of a history keeps besides the run's numbers.
const (
	keyAudits = "audits" // a second
	keyUpdate = "update"
	keyMode   = "mode"
)

func checks(ctx context.Context, recorded recording.Input) ([]check.Result, error) {
	h := recorded.Header
	f := newFormula(h.Seed)
	in := totals.AccountsInput{Input: recorded.Input, Words: sentenceWords(), Accounts: h.Accounts, Total: h.Total, Opening: f.opening}
	in.Name = f.name
	for _, source := range in.History {
		audits, err := strconv.ParseFloat(source.Header().Keys[keyAudits], 64)
		if err == nil && audits > 0 {
			in.Audited = append(in.Audited, source.Header().Run)
		}
	}
	return totals.Accounts(ctx, in)
}

func sentenceWords() check.Words {
	return check.Words{One: "transfer", Book: "ledger", Part: "leg", Before: "account ", Amount: money.Format}
}

// Checks says in one line what each check holds, in the order in which they are reported.
func Checks() [][2]string {
	return [][2]string{
		{check.Total, "the end balances, downloaded and summed, equal the canonical total"},
		{check.NonNegative, "no balance is below zero"},
		{check.Ledger, "opening balance + ledger legs = end balance, and version = number of legs, for every account"},
		{check.Durable, "every committed transfer is in the ledger"},
		{check.NoGhost, "nothing rejected or aborted is in the ledger, and nothing there was never sent"},
		{check.ExactlyOnce, "no transfer was applied twice"},
		{check.Serializable, "the dependency graph has no cycle"},
		{check.Strict, "the dependency graph with real-time order added has no cycle"},
		{check.Audits, "every audit saw exactly the total, and a consistent cut"},
	}
}
