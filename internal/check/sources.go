package check

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"stroppy/internal/history"
)

// Source is a recorded history, such as *history.Reader.
type Source interface {
	Header() history.Header
	Complete() bool // the history was closed: no transaction that was sent is missing
	Transactions() iter.Seq2[history.Record, error]
}

// EndState is the content of the database after the run, such as *history.End.
type EndState interface {
	Objects() iter.Seq2[history.Object, error]
	Rows() iter.Seq2[history.Row, error]
	Unexpected() []string // descriptions of rows that the workload cannot produce
}

// Each yields values until the first error, which it stores in *problem. The error comes from reading what,
// or is the cause of the context's end.
func Each[T any](w *Watch, what string, read iter.Seq2[T, error], problem *error) iter.Seq[T] {
	return func(yield func(T) bool) {
		for v, err := range read {
			switch {
			case err != nil:
				*problem = fmt.Errorf("%s could not be read: %w", what, err)
				return
			case w.Ended():
				*problem = w.Err
				return
			case !yield(v):
				return
			}
		}
	}
}

// Locate stores the positions of the witnesses in the results. It reads the history once more, but only if
// there are witnesses.
func Locate(sources []Source, w *Watch, results []Result) {
	wanted := map[history.ID]history.Ref{}
	for _, r := range results {
		for _, id := range r.Witness {
			wanted[id] = history.Ref{}
		}
	}
	missing := len(wanted)
	for _, source := range sources {
		if missing == 0 {
			break
		}
		var damage error
		for rec := range Each(w, "the history", source.Transactions(), &damage) {
			if _, ok := wanted[rec.ID]; ok {
				wanted[rec.ID] = rec.Ref
				if missing--; missing == 0 {
					break
				}
			}
		}
	}
	for i := range results {
		for _, id := range results[i].Witness {
			if ref := wanted[id]; ref.File != "" && !slices.Contains(results[i].Where, ref) {
				results[i].Where = append(results[i].Where, ref)
			}
		}
	}
}

// Watch polls a context during a long computation.
type Watch struct {
	Ctx   context.Context
	steps uint32
	Err   error // the cause, after the context has ended
}

// WatchEvery is the number of steps between two looks at the context.
const WatchEvery = 1 << 12

// Ended counts one step and reports whether the context has ended. It looks at the context once every
// WatchEvery steps. If it reports true, the caller must stop and discard its result; Err holds the cause.
func (w *Watch) Ended() bool {
	if w.steps++; w.steps%WatchEvery == 0 {
		return w.Cancelled()
	}
	return w.Err != nil
}

// Cancelled reports whether the context has ended. It looks at the context immediately and counts no step.
func (w *Watch) Cancelled() bool {
	if w.Err == nil && w.Ctx.Err() != nil {
		w.Err = context.Cause(w.Ctx)
	}
	return w.Err != nil
}

// Fail ends the computation with a cause of its own.
func (w *Watch) Fail(cause error) {
	if w.Err == nil {
		w.Err = cause
	}
}
