package run

import (
	"fmt"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/report"
	"stroppy/internal/resource"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"

	"github.com/dustin/go-humanize"
)

// closedLoopRate is the expected number of transactions per second of a closed loop. It is used to judge before the
// run whether its check will fit.
const closedLoopRate = 10_000

// MemoryWarning returns one sentence if the check of a planned run may not fit into the free bytes of memory. It
// returns an empty string if the check fits or if that is not known.
func MemoryWarning(plan *scenario.Plan, w workload.Workload, free int64) string {
	costly, ok := w.(workload.Costly)
	if !ok || free <= 0 {
		return ""
	}
	fixed, each := costly.CheckMemory()
	count, how := planned(plan)
	need := float64(fixed) + count*float64(each)
	if need <= float64(free) {
		return ""
	}
	text := fmt.Sprintf("the check of this run is expected to need %s of memory, and %s are free", humanize.Bytes(uint64(need)), humanize.Bytes(uint64(free)))
	if each == 0 || fixed >= free {
		return text
	}
	return text + fmt.Sprintf(": %s, %s bytes each; there is room for %s",
		how, check.Group(uint64(each)), check.Plural(uint64((free-fixed)/each), "transaction"))
}

// planned returns the number of transactions of a plan, and how it is known.
func planned(plan *scenario.Plan) (count float64, how string) {
	if plan.Count > 0 {
		return float64(plan.Count), check.Plural(plan.Count, "transaction")
	}
	length := plan.Warmup + plan.Duration
	if !plan.Rate.Closed() {
		count = plan.Rate.Expected(length)
		return count, check.Plural(uint64(count), "transaction")
	}
	return closedLoopRate * length.Seconds(), fmt.Sprintf("%v at %s transactions a second", length.Round(time.Second), check.Group(closedLoopRate))
}

// peakEvery is the interval in which the memory of a check is measured.
const peakEvery = 20 * time.Millisecond

// checkPeak measures the highest resident memory of this process until the function that it
// returns is called, which puts it into the result.
func (c *conductor) checkPeak() (end func()) {
	peak := highest(peakEvery, resource.Resident)
	return func() {
		if bytes := peak(); bytes > 0 {
			c.result.Check = &report.CheckCost{MaxRSSBytes: &bytes}
		}
	}
}

// highest reads a value at each interval until the returned function is called, which returns the largest value.
func highest(interval time.Duration, read func() int64) (end func() int64) {
	most := read()
	stop := Every(interval, func() { most = max(most, read()) })
	return func() int64 {
		stop()
		return max(most, read())
	}
}
