package stats

import (
	"testing"
	"time"

	"stroppy/internal/fault"
)

func TestThroughputNeedsATenthOfASecond(t *testing.T) {
	var f fault.Record
	(&Effect{
		Before: Phase{To: 99 * time.Millisecond, Committed: 10}, During: Phase{To: 100 * time.Millisecond, Committed: 10},
	}).describe(&f)
	if f.TPSBefore != nil || f.TPSDuring == nil {
		t.Errorf("throughput of 99 ms: %v, of 100 ms: %v; want it for the second alone", f.TPSBefore, f.TPSDuring)
	}
}
