package plume

import (
	"io"

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
