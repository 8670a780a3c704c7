package tpcb

import (
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/check/totals"
	"stroppy/internal/workload/recording"
)

func checks(ctx context.Context, input recording.Input) ([]check.Result, error) {
	f, err := recorded(input.Header)
	if err != nil {
		return nil, fmt.Errorf("check %s: its header does not say how many branches, tellers and accounts there are: it is damaged", input.Dir)
	}
	in := totals.GroupsInput{
		Input: input.Input, Words: sentenceWords(),
		Versions: f.versions, Unexpected: f.unexpected,
	}
	for k, rows := range f.size {
		in.Groups = append(in.Groups, totals.Group{Name: columns[k].table, Rows: rows})
	}
	in.Name = f.size.name
	for _, source := range in.History {
		if header := source.Header(); check.Driven(header) && header.Keys[keyHistory] == strconv.FormatBool(false) {
			in.Bare = append(in.Bare, header.Run)
		}
	}
	return totals.Groups(ctx, in)
}

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
