package recording

import (
	"context"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// rebase takes the state at the start of the first run as the loaded data, if that run had one and the recordings fit
// it: no transaction saw an older state, and the end state holds the same of earlier runs. Otherwise it returns nil, and
// the rows of earlier runs leave checks undecided. lost is the number of such rows that are gone from the end state.
func (r runs) rebase(ctx context.Context, last *recording) (o *history.Base, lost uint64, err error) {
	first := r.first()
	if first == nil || first.Header.Keys[history.KeyOpening] == "" {
		return nil, 0, nil
	}
	o, err = history.ReadBase(filepath.Join(first.dir, history.OpeningFolder), first.Header)
	if err != nil || o.Fingerprint() != first.Header.Keys[history.KeyOpening] {
		return nil, 0, nil // the earlier recordings are needed
	}
	if last != nil {
		same := false
		if lost, same, err = o.Compare(last.End); err != nil || !same {
			return nil, lost, nil // damage of the end state is reported by the checks
		}
	}
	var older atomic.Bool
	for _, one := range r {
		if one.History == nil {
			continue
		}
		err := check.EachTransaction(ctx, one.History, runtime.GOMAXPROCS(0), func(_ int, _ int64, tx *history.Transaction) {
			if !o.Explains(tx) {
				older.Store(true)
			}
		})
		if err != nil && ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
	}
	if older.Load() {
		return nil, lost, nil
	}
	for _, one := range r {
		if one.History != nil {
			one.History.Rebase(o)
		}
	}
	return o, lost, nil
}

// first returns the recording of the earliest run; nil: there is no run.
func (r runs) first() (first *recording) {
	for i := range r {
		if one := &r[i]; check.Driven(one.Header) && (first == nil || one.Header.Run < first.Header.Run) {
			first = one
		}
	}
	return first
}

// addLost makes the check durable invalid if rows of earlier runs are gone.
func addLost(results []check.Result, lost uint64) {
	if lost == 0 {
		return
	}
	found := check.Finding{Check: check.Durable}
	found.Add(fact.EarlierLost{Rows: int(lost)}, "")
	found.Count = int(lost)
	for i := range results {
		if r := &results[i]; r.Name == check.Durable {
			r.Status, r.Required, r.Why, r.Findings = check.Invalid, true, nil, append(r.Findings, found)
		}
	}
}
