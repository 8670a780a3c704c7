package run

import (
	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// Observer is a Progress that wants to know what is known of a run while it goes
// on. Only a run has one, a check has none.
type Observer interface {
	Progress
	// Known is told the result as far as it is known, at the beginning of each
	// phase and after the last one. Nobody changes r any more. While the drive
	// goes on r.Drive says what was asked for and counts nothing; State has that.
	Known(r *report.Result)
}

// Drive is a running drive for those who look on, as load.Driver describes it.
// Any goroutine may call its methods, also when the drive is over.
type Drive interface {
	Seconds(from int) []stats.Second
	Latencies() *stats.Reading
}

// publish gives an observer what is known; driven is what of the drive is known
// while it goes on.
func (c *conductor) publish(driven *report.Drive) {
	observer, ok := c.o.Progress.(Observer)
	if !ok {
		return
	}
	// The result as its readers will have it, and nothing of it shared.
	data, err := c.result.JSON()
	var known *report.Result
	if err == nil {
		known, err = report.Parse(data)
	}
	if err != nil {
		c.log.Warn("what is known could not be told to those who look on", "error", err)
		return
	}
	if driven != nil {
		known.Drive = driven
	}
	observer.Known(known)
}

// asked is the drive before anything was done.
func (c *conductor) asked(options *load.Options) *report.Drive {
	d := &report.Drive{
		Clients: len(options.Clients), WarmupSeconds: options.Warmup.Seconds(), Style: c.o.Workload.Header().Keys,
		TPS: &report.Throughput{}, Kinds: map[string]uint64{}, Errors: []report.ErrorCount{},
	}
	pacing(d, options, &load.Result{Measurements: new(stats.Measurements)})
	return d
}
