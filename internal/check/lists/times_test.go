package lists

import (
	"testing"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// TestFindingsHaveTheTimesOfTheirTransactions checks that a finding has the first and the last end of the
// transactions that show it. It has no times if the input has several clocks.
func TestFindingsHaveTheTimesOfTheirTransactions(t *testing.T) {
	skew := func(id history.ID, key uint64, begin int64) []Transaction { // each misses the other's append
		one := Transaction{ID: id, Client: uint64(id), Outcome: history.Committed, Begin: begin, End: begin + 10}
		other := Transaction{ID: id + 1, Client: uint64(id + 1), Outcome: history.Committed, Begin: begin + 1, End: begin + 11}
		one.Ops = []Op{{Kind: Read, Known: true, Key: key}, {Kind: Append, Key: key + 1, Element: uint64(id)}}
		other.Ops = []Op{{Kind: Read, Known: true, Key: key + 1}, {Kind: Append, Key: key, Element: uint64(id + 1)}}
		last := Transaction{ID: id + 2, Client: uint64(id + 2), Outcome: history.Committed, Begin: begin + 20, End: begin + 21}
		last.Ops = []Op{
			{Kind: Read, Known: true, Key: key, List: []uint64{uint64(id + 1)}},
			{Kind: Read, Known: true, Key: key + 1, List: []uint64{uint64(id)}},
		}
		return []Transaction{one, other, last}
	}
	list := append(skew(1, 1, 100), skew(11, 11, 500)...)
	garbage := Transaction{ID: 21, Client: 21, Outcome: history.Committed, Begin: 700, End: 710}
	garbage.Ops = []Op{{Kind: Read, Known: true, Key: 30, List: []uint64{99}}}
	list = append(list, garbage)
	for _, oneClock := range []bool{true, false} {
		in := Input{Transactions: each(list), Complete: true, RealTime: oneClock, Expect: isolation.Serializable}
		report, err := Check(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][2]int64{}
		for _, r := range report.Results {
			for _, f := range r.Findings {
				got[f.Anomaly] = [2]int64{f.First, f.Last}
			}
		}
		want := map[string][2]int64{"write skew (G2-item)": {110, 511}, "garbage read": {710, 710}}
		for anomaly, times := range want {
			if !oneClock {
				times = [2]int64{}
			}
			if found, ok := got[anomaly]; !ok || found != times {
				t.Errorf("on one clock: %v: %s from %v to %v (found: %v), want %v", oneClock, anomaly, found[0], found[1], ok, times)
			}
		}
	}
}
