package run

import (
	"math"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// confidence is that of the interval of the mean throughput.
const confidence = 0.95

// rest tells how exactly the mean throughput is known, and whether the drive
// came to rest; course is the drive second by second. The interval is over all
// seconds. For the rest, those in which a fault did its work do not count, and of
// a rate that was meant to change it is not asked.
func (c *conductor) rest(course []stats.Second, fixed bool) {
	d := c.result.Drive
	from, to := int(math.Ceil(d.WarmupSeconds)), int(d.WarmupSeconds+d.Seconds)
	if i := stats.MeanInterval(stats.Throughput(course, from, to, nil), confidence); i.Known() {
		d.Interval = &report.Interval{Low: i.Low, High: i.High, Confidence: i.Confidence, Effective: i.Effective}
	}
	if !fixed {
		d.Steady = &report.Steady{Status: stats.RestUnknown.String(), Detail: "the rate was meant to change, so the drive as a whole was not meant to be steady"}
		return
	}
	s := stats.MeasureSteadiness(course, from, to, c.troubled())
	d.Steady = &report.Steady{Status: s.Rest.String(), From: float64(s.From), Detail: s.Detail}
}

// troubled are the times from each fault until the throughput was back.
func (c *conductor) troubled() []stats.Spell {
	var spells []stats.Spell
	end := c.result.Drive.WarmupSeconds + c.result.Drive.Seconds
	for _, f := range c.result.Faults {
		if f.Skipped != "" || f.Error != "" {
			continue
		}
		until := end
		if f.HealedSeconds != nil && f.RecoveredSeconds != nil {
			until = max(*f.HealedSeconds, f.AtSeconds+*f.RecoveredSeconds)
		}
		spells = append(spells, stats.Spell{At: seconds(f.AtSeconds), Healed: seconds(until)})
	}
	return spells
}
