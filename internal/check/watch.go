package check

import "context"

// watch asks a context now and then whether the work is to end.
type watch struct {
	ctx   context.Context
	steps uint32
	err   error // the cause, once the context is done
}

// watchEvery is after how many steps the context is asked.
const watchEvery = 1 << 12

// ended counts a step of the work and says whether the work is to end. What was
// worked out until then is worth nothing: whoever sees it returns whatever is safe
// to return, and Bank returns the cause.
func (w *watch) ended() bool {
	if w.steps++; w.steps%watchEvery == 0 {
		return w.ask()
	}
	return w.err != nil
}

// ask is ended without waiting for the next step at which the context is asked.
func (w *watch) ask() bool {
	if w.err == nil && w.ctx.Err() != nil {
		w.err = context.Cause(w.ctx)
	}
	return w.err != nil
}
