package run

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/fault"
	"stroppy/internal/report"
	"stroppy/internal/scenario"
)

// The names of the objectives that are not thresholds.
const (
	maxOutage      = "max-outage"      // no fault stopped all commits for longer than allowed
	maxDegradation = "max-degradation" // the throughput after the last fault is that before the first, nearly
)

// objectiveKeys returns the limits of a plan as keys of a history's header.
func objectiveKeys(p *scenario.Plan) map[string]string {
	keys := map[string]string{}
	if p.MaxOutage > 0 {
		keys[keyMaxOutage] = p.MaxOutage.String()
	}
	if p.MaxDegradation > 0 {
		keys[keyMaxDegradation] = fmt.Sprint(p.MaxDegradation)
	}
	if p.Thresholds != "" {
		keys[keyThreshold] = p.Thresholds
	}
	return keys
}

// judgeObjectives compares the measurements with the limits of the run.
func (c *conductor) judgeObjectives(keys map[string]string) error {
	r := c.result
	r.Objectives = nil
	if text := keys[keyMaxOutage]; text != "" {
		most, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("read the limit on outages that the run was given: %w", err)
		}
		r.Objectives = append(r.Objectives, outages(r.Faults, most))
	}
	if text := keys[keyMaxDegradation]; text != "" {
		most, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("read the limit on the degradation that the run was given: %w", err)
		}
		r.Objectives = append(r.Objectives, degradation(r.Degradation, most))
	}
	thresholds, err := report.ParseThresholds(keys[keyThreshold])
	if err != nil {
		return fmt.Errorf("read the thresholds that the run was given: %w", err)
	}
	for _, t := range thresholds {
		r.Objectives = append(r.Objectives, t.Judge(r))
	}
	return nil
}

// mostNamed is the largest number of faults that a detail names.
const mostNamed = 8

// outages compares every fault's outage with the limit. If the database pauses longer than the limit without a fault,
// such a pause within a fault's span may not be caused by the fault.
func outages(faults []fault.Record, most time.Duration) report.Objective {
	r := report.Objective{Name: maxOutage, Status: report.ObjectiveUnknown}
	measured, longest := 0, fault.Seconds(0)
	limit := fault.Seconds(most)
	var over, unsure []string
	for _, f := range faults {
		if f.Outage == nil {
			continue
		}
		measured++
		outage := *f.Outage
		longest = max(longest, outage)
		if gap := f.LongestGap; gap != nil && f.Noise != nil && outage == 0 && *gap > limit {
			unsure = append(unsure, fmt.Sprintf("After %s at %.3g s nothing was committed for %.3g s, and at most %v is allowed. The database had paused before without a fault, so a pause of up to %.3g s proves nothing.", f.Fault, f.At.Seconds(), gap.Seconds(), most, f.Noise.Seconds()))
		}
		if outage > limit {
			over = append(over, fmt.Sprintf("%s on %s at %.3g s: nothing was committed for %.3g s, and at most %v is allowed.", f.Fault, f.Target, f.At.Seconds(), outage.Seconds(), most))
		}
	}
	lines := func(list []string) string { return strings.Join(list[:min(len(list), mostNamed)], "\n") }
	switch {
	case len(over) > 0:
		r.Status, r.Detail = report.ObjectiveMissed, lines(over)
	case measured == 0:
		r.Detail = "Not decided: no fault's outage was measured."
	case len(unsure) > 0:
		r.Detail = "Not decided: " + lines(unsure)
	default:
		r.Status, r.Detail = report.ObjectiveMet, fmt.Sprintf("The longest outage of %s is %.3g s.", check.Plural(measured, "fault"), longest.Seconds())
	}
	return r
}

// degradation compares the throughput at the end with that at the beginning.
func degradation(d *report.Degradation, most float64) report.Objective {
	r := report.Objective{Name: maxDegradation, Status: report.ObjectiveUnknown}
	if d == nil {
		r.Detail = "Not decided: before the first fault or after the last heal there was less than a second to compare."
		return r
	}
	r.Status = report.ObjectiveMet
	r.Detail = fmt.Sprintf("Before the first fault %.4g transactions a second were committed, after the last heal %.4g.", d.FirstTPS, d.LastTPS)
	if d.Loss() > most {
		r.Status = report.ObjectiveMissed
		r.Detail += fmt.Sprintf(" That is %.3g %% less, and at most %.3g %% is allowed.", 100*d.Loss(), 100*most)
	}
	return r
}
