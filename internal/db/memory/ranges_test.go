package memory

import (
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/kvtest"
)

func TestRangeReadsSeeOwnWritesAndConflicts(t *testing.T) {
	d, err := Open("memory:")
	must(t, err)
	kvtest.Ranges(t, "range/", func() db.RangeSession {
		s, err := d.RangeSession(t.Context(), db.SessionOptions{})
		must(t, err)
		return s
	})
}
