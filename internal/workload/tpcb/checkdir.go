package tpcb

import (
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/check/totals"
	"stroppy/internal/workload/recording"
)

// checks makes all checks of recorded runs.
func checks(ctx context.Context, recorded recording.Input) ([]check.Result, error) {
	h := recorded.Header
	f, err := sizeFacts(h.Keys, h.Accounts)
	if err != nil {
		return nil, fmt.Errorf("check %s: its header does not say how many branches, tellers and accounts there are: it is damaged", recorded.Dir)
	}
	s := f.size
	in := totals.GroupsInput{
		Input: recorded.Input, Words: sentenceWords(),
		Groups:   []totals.Group{{Name: "branches", Rows: s.branches}, {Name: "tellers", Rows: s.tellers}, {Name: "accounts", Rows: s.accounts}},
		Versions: h.Keys[factVersions] == strconv.FormatBool(true),
	}
	in.Name = s.name
	in.Strangers, _ = strconv.ParseUint(h.Keys[factStrangers], 10, 64)
	for _, source := range in.History {
		if header := source.Header(); check.Driven(header) && header.Keys[keyHistory] == strconv.FormatBool(false) {
			in.Bare = append(in.Bare, header.Run)
		}
	}
	return totals.Groups(ctx, in)
}

// sentenceWords are those of TPC-B in the sentences of the checks.
func sentenceWords() check.Words {
	return check.Words{One: "transaction", Book: "history", Part: "row", Amount: func(n int64) string { return strconv.FormatInt(n, 10) }}
}

// Checks says in one line what each check holds, in the order in which they are reported.
func Checks() [][2]string {
	return [][2]string{
		{check.Total, "the balances of accounts, of tellers and of branches grew by the same sum, that of all committed amounts"},
		{check.Ledger, "opening + amounts of the history = end balance, for every account, teller and branch"},
		{check.Durable, "every committed transaction is in the history"},
		{check.NoGhost, "nothing aborted is in the history, and nothing there was never sent"},
		{check.ExactlyOnce, "no transaction was applied twice"},
		{check.Serializable, "one order of all transactions explains every balance that was read"},
		{check.Strict, "one that agrees with real time does"},
	}
}
