package totals

import (
	"slices"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// anomaliesOf returns the names of the anomalies that serializable found, and the result.
func anomaliesOf(w *world) ([]string, checktest.Reported) {
	r := checktest.ByName(checked(w.input(isolation.StrictSerializable)))[check.Serializable]
	var names []string
	for _, a := range r.Anomalies {
		names = append(names, a.Name)
	}
	return names, r
}

// TestLostUpdateIsReportedOnce checks that a longer cycle over the two transactions of a lost update is not
// reported again, but an unrelated cycle is.
func TestLostUpdateIsReportedOnce(t *testing.T) {
	w := newWorld(8)
	lostUpdate(w)
	// The next transaction depends on both transfers, one after the other.
	w.inquiry(0)
	w.transfer(1, 2, 3)
	names, r := anomaliesOf(w)
	if !slices.Equal(names, []string{lostUpdateName}) {
		t.Errorf("%v are reported: %s", names, r.Detail)
	}
	a := r.Anomalies[0]
	if len(a.Cycle) != 2 || a.Cycle[0].Kind != check.ReadWrite || a.Cycle[1].Kind != check.ReadWrite || len(a.Spans) != 2 {
		t.Errorf("it is explained by %+v of %+v", a.Cycle, a.Spans)
	}
	if r.Findings[0].Amount == 0 {
		t.Errorf("the money is missing: %s", r.Detail)
	}
	i := w.inquiry(5)
	w.transfer(4, 5, 10)
	w.see(&w.Txns[i], 4)
	if names, r = anomaliesOf(w); len(names) != 2 || !slices.Contains(names, "read skew (G-single)") {
		t.Errorf("beside a read skew %v are reported: %s", names, r.Detail)
	}
}

// TestEdgesOfADirtyRead checks that the only edge leads from the unapplied transaction to its reader.
func TestEdgesOfADirtyRead(t *testing.T) {
	i := slices.IndexFunc(violations, func(v violation) bool { return v.name == "dirty read" })
	w := newWorld(8)
	violations[i].make(w)
	_, r := anomaliesOf(w)
	a := r.Anomalies[0]
	want := check.Edge{From: w.Txns[0].ID, To: w.Txns[1].ID, Kind: check.WriteRead}
	if len(a.Cycle) != 1 || a.Cycle[0].From != want.From || a.Cycle[0].To != want.To || a.Cycle[0].Kind != want.Kind {
		t.Fatalf("it is explained by %+v", a.Cycle)
	}
	if len(a.Spans) != 2 || !slices.ContainsFunc(a.Spans, func(s text.Span) bool { return s.Outcome == history.Rejected }) {
		t.Errorf("its transactions are %+v", a.Spans)
	}
}
