package bank

import (
	"context"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/check/totals"
	"stroppy/internal/isolation"
	"stroppy/internal/money"
	"stroppy/internal/workload/recording"
)

// What the header of a history keeps beside the run's numbers.
const (
	keyAudits = "audits" // a second
	keyUpdate = "update"
	keyMode   = "mode"
)

// CheckDirs makes all checks of one run's directory, or of several runs against one
// bank together: their histories are one, and the end state is the one of them all
// that was downloaded last. Where none of them is sure to have been downloaded after
// every run, what needs an end state is unknown. Directories of different banks are
// an error.
func CheckDirs(ctx context.Context, dirs []string, expect isolation.Level, tell func(check.Violation)) ([]check.Result, error) {
	r, err := recording.Open(dirs, Name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := r.Header()
	f := newFormula(h.Seed)
	in := totals.AccountsInput{
		Input: check.Input{Expect: expect, Name: f.name, OnViolation: tell, History: r.Sources()},
		Words: sentenceWords(), Accounts: h.Accounts, Total: h.Total, Opening: f.opening,
	}

	for _, source := range in.History {
		audits, err := strconv.ParseFloat(source.Header().Keys[keyAudits], 64)
		if err == nil && audits > 0 {
			in.Audited = append(in.Audited, source.Header().Run)
		}
	}
	if in.End, in.Early, err = r.End(ctx); err != nil {
		return nil, err
	}
	return totals.Accounts(ctx, in)
}

// sentenceWords are the bank's in the sentences of the checks.
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
