package plume

import (
	"io"
	"strconv"

	"stroppy/internal/check/sessions"
)

// lineWriter writes lines and keeps its first error.
type lineWriter struct {
	to   io.Writer
	line []byte
	err  error
}

func (w *lineWriter) operation(op *sessions.Op, session, transaction int64) {
	kind := byte('r')
	if op.Write {
		kind = 'w'
	}
	w.line = append(w.line, kind, '(')
	for i, n := range [...]int64{op.Key, op.Value, session, transaction} {
		if i > 0 {
			w.line = append(w.line, ',')
		}
		w.line = strconv.AppendInt(w.line, n, 10)
	}
	w.line = append(w.line, ')', '\n')
	if len(w.line) > 1<<15 {
		_ = w.flush()
	}
}

func (w *lineWriter) flush() error {
	if w.err == nil {
		_, w.err = w.to.Write(w.line)
	}
	w.line = w.line[:0]
	return w.err
}
