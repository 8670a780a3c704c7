package events

import (
	"fmt"
	"strconv"
	"strings"

	"stroppy/internal/history"
)

// Names are the streams of a recorded log as people know them.
type Names struct{ streams uint64 }

// NamesOf returns the names of the streams of the log that a history is of.
func NamesOf(h history.Header) *Names { return &Names{streams: h.Accounts} }

// Name returns stream n as reports show it.
func (a *Names) Name(n uint64) string { return "stream " + strconv.FormatUint(n, 10) }

// Number is the inverse of Name; the word before the number can be left out.
func (a *Names) Number(name string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(name, "stream")), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no stream: one is written as its number, such as 0", name)
	}
	if n >= a.streams {
		return 0, fmt.Errorf("%q is none of the %d streams of this log, which have the numbers 0 to %d", name, a.streams, a.streams-1)
	}
	return n, nil
}
