package sweep

import (
	"slices"
	"testing"
)

// TestHighestIsOfMedians: the step with the luckiest single measurement is not the fastest.
func TestHighestIsOfMedians(t *testing.T) {
	b := books()["repeated"]
	b.Over, b.Points = "clients=4,8", nil
	for _, p := range []struct{ n, tps float64 }{{4, 226_877}, {8, 180_000}, {4, 110_780}, {8, 190_000}} {
		b.Points = append(b.Points, Point{Value: p.n, Verdict: "valid", TPS: new(p.tps), Best: new(p.tps)})
	}
	f := data(t, b).Figures[0]
	if f.Value != "185,000" || !slices.Equal(f.Below, []string{"with 8 clients", "median of 2, from 180,000 to 190,000"}) {
		t.Errorf("the highest throughput is %+v", f)
	}
	b.Points = b.Points[:2]
	if f := data(t, b).Figures[0]; f.Value != "226,877" || !slices.Equal(f.Below, []string{"with 4 clients", "best second 226,877"}) {
		t.Errorf("of single measurements the highest throughput is %+v", f)
	}
}
