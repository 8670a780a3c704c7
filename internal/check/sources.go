package check

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"stroppy/internal/history"
)

// Source is one recorded history; *history.Reader is one.
type Source interface {
	Header() history.Header
	Complete() bool // it was closed: no transaction that was sent is missing
	Transactions() iter.Seq2[history.Record, error]
}

// EndState is what the database held in the end; *history.End is one.
type EndState interface {
	Objects() iter.Seq2[history.Object, error]
	Rows() iter.Seq2[history.Row, error]
	Unexpected() []string // rows that no formula makes, as people read them
}

// Each yields what is read of the named thing until the first error, which it puts
// into problem: that of the reading, or the cause for which the watch has ended.
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

// Locate says where in the recorded history the witnesses stand. It reads the
// history once more, and only when there is something to find.
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
		var damage error // the checks have reported it
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

// Watch asks a context now and then whether the work is to end.
type Watch struct {
	Ctx   context.Context
	steps uint32
	Err   error // the cause, once the context is done
}

// WatchEvery is after how many steps the context is asked.
const WatchEvery = 1 << 12

// Ended counts a step of the work and says whether the context is done, which it asks at
// every WatchEvery-th step. The work then ends, what it found until then is not used, and
// Err has the cause.
func (w *Watch) Ended() bool {
	if w.steps++; w.steps%WatchEvery == 0 {
		return w.Cancelled()
	}
	return w.Err != nil
}

// Cancelled says at once whether the context is done, and counts no step.
func (w *Watch) Cancelled() bool {
	if w.Err == nil && w.Ctx.Err() != nil {
		w.Err = context.Cause(w.Ctx)
	}
	return w.Err != nil
}

// Fail ends the work for another cause.
func (w *Watch) Fail(cause error) {
	if w.Err == nil {
		w.Err = cause
	}
}
