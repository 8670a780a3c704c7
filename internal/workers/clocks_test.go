package workers

import (
	"math/rand/v2"
	"testing"

	"stroppy/internal/history"
)

// wandering returns the values in ns of a worker's and the coordinator's clocks for each ms of true time.
// Their relative speed varies within a bound.
func wandering(rng *rand.Rand, ms int, most float64) (worker, coordinator []float64) {
	ahead, rate := float64(rng.Int64N(4e8)-2e8), 0.0
	for t := range ms {
		if rng.IntN(50) == 0 {
			rate = (2*rng.Float64() - 1) * most / 1e6
		}
		ahead += rate * 1e6
		worker, coordinator = append(worker, float64(t)*1e6+ahead), append(coordinator, float64(t)*1e6)
	}
	return worker, coordinator
}

// TestConvertedTimesStayWithinStatedError checks that converted times are wrong by at most the stated error and keep
// their order. Network delays are arbitrary, and drift is within its bound.
func TestConvertedTimesStayWithinStatedError(t *testing.T) {
	widest := int64(0)
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 41))
		worker, coordinator := wandering(rng, 3000, 1000)
		c := newComparison()
		for at := 1; at < len(worker)-3; at += 20 + rng.IntN(60) {
			there, back := rng.Float64()*5e5, rng.Float64()*5e5 // of the network, ns
			if rng.IntN(10) == 0 {
				there += 3e7
			}
			c.add(reading{int64(worker[at]), int64(coordinator[at]-there) - int64(worker[at]), int64(coordinator[at]+back) - int64(worker[at]) + 1})
		}
		o := c.offsets()
		before := int64(-1 << 62)
		for at := 0; at < len(worker); at++ {
			here := int64(worker[at])
			put := here + o.of(here)
			if wrong := put - int64(coordinator[at]); max(wrong, -wrong) > o.worst+1 {
				t.Fatalf("seed %d: after %d ms the time is wrong by %d ns, and by at most %d it is said", seed, at, wrong, o.worst)
			}
			if put < before {
				t.Fatalf("seed %d: after %d ms time goes backwards", seed, at)
			}
			before = put
		}
		widest = max(widest, o.worst)
	}
	if widest < 10_000 || widest > 1_000_000 {
		t.Errorf("the errors are %d ns at most, from networks of up to 0.5 ms", widest)
	}
}

// TestExcessiveClockDriftHasNoErrorBound checks that the error is unbounded for clocks that drift faster than the
// bound.
func TestExcessiveClockDriftHasNoErrorBound(t *testing.T) {
	c := newComparison()
	if o := c.offsets(); o.worst != history.Unbounded || o.of(5) != 0 {
		t.Errorf("without a reading the error is %d", o.worst)
	}
	c.add(reading{0, -10, 10})
	if o := c.offsets(); o.worst != 10 || o.of(0) != 0 {
		t.Errorf("of one reading the error is %d, the offset %d", o.worst, o.of(0))
	}
	c.add(reading{1_000_000, 100_000, 100_020})
	if o := c.offsets(); o.worst != history.Unbounded {
		t.Errorf("of a clock that was set the error is %d", o.worst)
	}
}
