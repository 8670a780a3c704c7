package totals

import (
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/isolation"
)

// focusedOn returns the results of an examination of a part of a history; nil if there is a proof.
func focusedOn(t *testing.T, in AccountsInput, part int) []check.Result {
	t.Helper()
	in.whole, in.part = -1, part
	proved, suspects, err := prove(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if proved != nil {
		return nil
	}
	results, err := examineLong(t.Context(), in, suspects)
	if err != nil || results == nil {
		t.Fatalf("no part was examined: %v", err)
	}
	return results
}

// TestPartShowsWhatTheWholeShows compares the examination of a part with the examination of
// everything, of histories in which one thing was changed: the part must show no violation that the
// whole does not show, must call nothing valid, and must show most violations.
func TestPartShowsWhatTheWholeShows(t *testing.T) {
	t.Run("with an end state", func(t *testing.T) { testParts(t, true) })
	t.Run("without an end state", func(t *testing.T) { testParts(t, false) })
}

func testParts(t *testing.T, ended bool) {
	violated, shown := 0, 0
	for seed := range checktest.Rounds(2000, 30000) {
		rng := rand.New(rand.NewPCG(seed, 31))
		w := parallel(rng, 6+rng.IntN(20), 1+rng.IntN(6), 10+rng.IntN(40), seed%4 == 0)
		bend(rng, w)
		claims := []isolation.Level{isolation.StrictSerializable, isolation.SnapshotIsolation, isolation.ReadCommitted}
		in := w.input(claims[seed%3])
		if !ended {
			in.End = nil
		}
		whole, err := examine(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		part := focusedOn(t, in, len(w.Txns)/(1+rng.IntN(4)))
		if part == nil {
			continue
		}
		byName := checktest.ByName(whole)
		anyWhole, anyPart := false, false
		for _, r := range part {
			want := byName[r.Name]
			anyWhole = anyWhole || want.Status == check.Invalid
			anyPart = anyPart || r.Status == check.Invalid
			switch {
			case r.Status == check.Valid && (r.Name != check.Total || want.Status != check.Valid):
				t.Fatalf("seed %d: %s is valid by a part; the whole: %q", seed, r.Name, decisions(whole))
			case r.Status == check.Invalid && want.Status != check.Invalid:
				t.Fatalf("seed %d: %s is invalid by a part alone:\npart %q\nwhole %q", seed, r.Name, decisions(part), decisions(whole))
			}
			for _, f := range r.Findings {
				sameKind := func(other check.Finding) bool {
					return other.Kind() == f.Kind() && other.Anomaly == f.Anomaly && other.Count >= f.Count
				}
				if order := r.Name == check.Serializable || r.Name == check.Strict; !order && !slices.ContainsFunc(want.Findings, sameKind) {
					t.Fatalf("seed %d: %s: the part has %d of %s %s:\npart %q\nwhole %q", seed, r.Name, f.Count, f.Kind(), f.Anomaly, decisions(part), decisions(whole))
				}
			}
		}
		if anyWhole {
			violated++
		}
		if anyPart {
			shown++
		}
	}
	t.Logf("%d histories are invalid, %d by their part", violated, shown)
	if shown*100 < violated*95 {
		t.Errorf("of %d invalid histories the part shows %d", violated, shown)
	}
}
