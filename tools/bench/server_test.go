package main

import "testing"

// TestIntervalOfPairedRatios checks the interval: from the sixth to the sixteenth of 21 ratios (97 % of a binomial
// distribution), and all of five.
func TestIntervalOfPairedRatios(t *testing.T) {
	var ours, peer []float64
	for i := range 21 {
		peer = append(peer, float64(100+i))
		ours = append(ours, peer[i]*float64((i*8)%21+1)) // 1 to 21, in no order
	}
	if median, low, high := paired(ours, peer); median != 11 || low != 6 || high != 16 {
		t.Errorf("of 21: %g (%g to %g)", median, low, high)
	}
	if median, low, high := paired([]float64{3, 1, 5, 2, 4}, []float64{1, 1, 1, 1, 1}); median != 3 || low != 1 || high != 5 {
		t.Errorf("of five: %g (%g to %g)", median, low, high)
	}
}
