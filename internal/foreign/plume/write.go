package plume

import (
	"io"
	"strconv"

	"stroppy/internal/check/sessions"
)

// write writes a history, the aborted writes first.
func write(to io.Writer, h *sessions.History) error {
	w := lineWriter{to: to}
	for i := range h.Aborted {
		w.operation(&h.Aborted[i], 0, abortedTransaction)
	}
	at, tx := 0, 0
	for _, s := range h.Sessions {
		for ; tx < s.End; tx++ {
			for ; at < h.Transactions[tx].End; at++ {
				w.operation(&h.Ops[at], s.Name, h.Transactions[tx].Name)
			}
		}
	}
	return w.flush()
}

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
