package appends

import (
	"fmt"
	"iter"

	"stroppy/internal/check"
	"stroppy/internal/check/lists"
	"stroppy/internal/history"
)

// Recorded yields the transactions of a recorded run as a history of lists that the database appends to, without the
// reads that serve an append. It returns an error if the run has another workload.
func Recorded(run *history.Reader) (iter.Seq2[*lists.Transaction, error], error) {
	if name := run.Header().Workload; name != Name {
		return nil, fmt.Errorf("it is a run of %s: only one of %s is a history of lists", name, Name)
	}
	return transactions(check.Input{History: []check.Source{run}}, false, nil), nil
}
