package stats

import "time"

// Waits are transactions that were due and never sent. Of each it is only known
// how long it had waited at least when the load phase ended. The zero Waits has none.
type Waits struct{ all distribution }

// Add counts n of them that had waited as long or longer.
func (w *Waits) Add(atLeast time.Duration, n uint64) { w.all.add(max(int64(atLeast), 0), n) }

// Due is the distribution of all that was due, from when it was due until its end.
// Unknown ones end when they were given up, and those that were never sent with the load
// phase: of these two only a lower bound is known.
type Due struct {
	Summary
	AtLeast []string // those that are lower bounds of mean, p50, p90, p95, p99, p999 and max
}

// Due returns the distribution of all that was due. A percentile is a lower bound
// if it were more than a hundredth higher had those without an end never ended.
func (f *Measurements) Due(never Waits) Due {
	var ended, all distribution
	for _, s := range []*Summary{&f.Latency, &f.LatencyRejected, &f.LatencyAborted} {
		ended.join(&s.all)
	}
	all.join(&ended)
	all.join(&f.LatencyUnknown.all)
	all.join(&never.all)
	d := Due{Summary: all.summary(), AtLeast: []string{}}
	if all.count == ended.count {
		return d
	}
	d.AtLeast = append(d.AtLeast, "mean")
	for _, p := range []struct {
		name string
		q    float64
		low  time.Duration
	}{{"p50", 0.50, d.P50}, {"p90", 0.90, d.P90}, {"p95", 0.95, d.P95}, {"p99", 0.99, d.P99}, {"p999", 0.999, d.P999}} {
		want := rank(p.q, all.count)
		if want > ended.count || ended.quantile(float64(want)/float64(ended.count)) > p.low+p.low/100 {
			d.AtLeast = append(d.AtLeast, p.name)
		}
	}
	d.AtLeast = append(d.AtLeast, "max")
	return d
}
