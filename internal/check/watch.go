package check

import "context"

// Watch asks a context now and then whether the work is to end.
type Watch struct {
	Ctx   context.Context
	steps uint32
	Err   error // the cause, once the context is done
}

// WatchEvery is after how many steps the context is asked.
const WatchEvery = 1 << 12

// Ended counts a step of the work and says whether the work is to end. What was
// worked out until then is worth nothing: whoever sees it returns whatever is safe
// to return, and Bank returns the cause.
func (w *Watch) Ended() bool {
	if w.steps++; w.steps%WatchEvery == 0 {
		return w.Ask()
	}
	return w.Err != nil
}

// Ask is ended without waiting for the next step at which the context is asked.
func (w *Watch) Ask() bool {
	if w.Err == nil && w.Ctx.Err() != nil {
		w.Err = context.Cause(w.Ctx)
	}
	return w.Err != nil
}
