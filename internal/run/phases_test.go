package run

import (
	"testing"
	"time"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

func TestThroughputNeedsATenthOfASecond(t *testing.T) {
	var f report.Fault
	describe(&f, &stats.Effect{
		Before: stats.Phase{To: 99 * time.Millisecond, Committed: 10}, During: stats.Phase{To: 100 * time.Millisecond, Committed: 10},
	})
	if f.TPSBefore != nil || f.TPSDuring == nil {
		t.Errorf("throughput of 99 ms: %v, of 100 ms: %v; want it for the second alone", f.TPSBefore, f.TPSDuring)
	}
}
