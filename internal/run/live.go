package run

import (
	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// Drive is a running load phase, as load.Driver describes it. Any goroutine may call
// its methods, also when it is over.
type Drive interface {
	Seconds(from int) []stats.Second
	Latencies() *stats.Reading
}

// publish shows what is known; driven is what of the load phase is known while it
// goes on.
func (c *conductor) publish(driven *report.Drive) {
	// The result as its readers will have it, and nothing of it shared.
	data, err := c.result.JSON()
	var known *report.Result
	if err == nil {
		known, err = report.Parse(data)
	}
	if err != nil {
		c.log.Warn("what is known could not be shown", "error", err)
		return
	}
	if driven != nil {
		known.Drive = driven
	}
	c.o.Progress.Known(known)
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
