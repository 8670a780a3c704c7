package memory

import (
	"fmt"
	"testing"

	"stroppy/internal/db"
)

// TestPhantomMutantHidesInserts checks that a transaction sees all earlier inserts into the range that it reads.
// With the mutant, some are missing.
func TestPhantomMutantHidesInserts(t *testing.T) {
	for _, mutant := range []string{"", "&mutant=phantom"} {
		d, err := Open("memory:?rate=0.05" + mutant)
		must(t, err)
		s, err := d.RangeSession(t.Context(), db.SessionOptions{})
		must(t, err)
		missed := 0
		for i := range 500 {
			must(t, s.Begin(t.Context(), false))
			must(t, s.Read(t.Context(), [][]byte{[]byte("counter")}, make([]db.Entry, 1)))
			found := 0
			must(t, s.Range(t.Context(), []byte("a/"), []byte("a0"), func(_, _ []byte) error { found++; return nil }))
			if found != i {
				missed++
			}
			s.Set([]byte("counter"), fmt.Append(nil, i)) // an update, which arms a shot from time to time
			s.Set(fmt.Appendf(nil, "a/%d", i), []byte("x"))
			must(t, s.Commit(t.Context()))
		}
		if mutant == "" && missed != 0 || mutant != "" && (missed == 0 || missed != d.Fired()) {
			t.Errorf("%q: %d transactions missed a record, and %d shots were fired", mutant, missed, d.Fired())
		}
	}
}
