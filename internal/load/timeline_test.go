package load

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestEachSecondIsTakenWhenItHasPassed checks that the seconds are counted from the start of the run, not from the
// call of EachSecond.
func TestEachSecondIsTakenWhenItHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(-1300 * time.Millisecond)
		var taken []time.Duration
		end := EachSecond(start, func(second int) {
			taken = append(taken, time.Duration(second+1)*time.Second-time.Since(start))
		})
		time.Sleep(3 * time.Second)
		end()
		if want := []time.Duration{0, 0, 0}; !slices.Equal(taken, want) {
			t.Errorf("the seconds were taken off by %v", taken)
		}
	})
}
