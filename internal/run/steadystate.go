package run

import (
	"time"

	"stroppy/internal/history"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// confidence is that of the interval of the mean throughput.
const confidence = 0.95

// steadyState estimates how exactly the mean throughput is known, over all seconds, and
// whether it is in a steady state, without the seconds of faults. Of a rate that was
// meant to change neither is asked. Where there are ten whole seconds or more, the mean
// becomes that of them, so that it is the middle of its interval.
func (c *conductor) steadyState(timeline []stats.Second, fixed bool) {
	d := c.result.Drive
	if d.Rebuilt && d.WarmupSeconds > 0 && d.Seconds > 0 {
		c.recount(d)
	}
	from, to := whole(seconds(d.WarmupSeconds), d.Seconds)
	i := stats.MeanInterval(stats.Throughput(timeline, from, to, nil), confidence)
	if i.Known() {
		d.TPS.Mean = &i.Value
	}
	if !fixed {
		d.Steady = &stats.Steadiness{State: stats.SteadyUnknown, Detail: "steady state not assessed: the rate was meant to change"}
		return
	}
	if i.Known() {
		d.Interval = &i
	}
	s := stats.MeasureSteadiness(timeline, from, to, c.faultIntervals())
	d.Steady = &s
}

// recount counts a rebuilt load phase by the ends of its transactions, which takes a
// second pass: when its warm-up ended is known only after the first.
func (c *conductor) recount(d *report.Drive) {
	recorded, err := history.Open(c.o.Dir.History())
	if err != nil {
		d.TPS.Mean = nil
		c.log.Warn("the throughput after the warm-up is not known: the recorded transactions could not be read again", "error", err)
		return
	}
	defer recorded.Close()
	done := stats.NewEnded(seconds(d.WarmupSeconds))
	for rec := range readable(recorded) {
		done.Add(rec.Transaction)
	}
	counted(d, &done.Outcomes)
}

// whole returns the whole seconds of the measured part, since the run's start:
// from from to before to.
func whole(warmup time.Duration, measured float64) (from, to int) {
	return int((warmup + time.Second - 1) / time.Second), int(warmup.Seconds() + measured)
}

// faultIntervals are the times from each fault until the throughput was back.
func (c *conductor) faultIntervals() []stats.FaultInterval {
	var intervals []stats.FaultInterval
	end := c.result.Drive.WarmupSeconds + c.result.Drive.Seconds
	for _, f := range c.result.Faults {
		if f.Skipped != "" || f.Error != "" {
			continue
		}
		until := end
		if f.HealedSeconds != nil && f.RecoveredSeconds != nil {
			until = max(*f.HealedSeconds, f.AtSeconds+*f.RecoveredSeconds)
		}
		intervals = append(intervals, stats.FaultInterval{At: seconds(f.AtSeconds), Healed: seconds(until)})
	}
	return intervals
}
