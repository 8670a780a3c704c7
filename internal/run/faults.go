package run

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// The checks that a run with a nemesis has beside those of its workload.
const (
	checkFaults         = "faults"          // every fault of the script was injected, seen, and healed
	checkMaxOutage      = "max-outage"      // no fault stopped all commits for longer than allowed
	checkMaxDegradation = "max-degradation" // the throughput after the last fault is that before the first, nearly
)

// Checks says in one line what each check of a run with a nemesis holds.
func Checks() [][2]string {
	return [][2]string{
		{checkFaults, "every fault of the script was injected, its effect was seen, and it was healed"},
		{check.Replicas, "after the last heal every node of the cluster holds the same end state"},
		{checkMaxOutage, "no fault stopped all commits for longer than --max-outage"},
		{checkMaxDegradation, "the drive after the last heal is slower than before the first fault by --max-degradation at most"},
	}
}

// effects measures what the recorded faults did and writes it into the result.
func (c *conductor) effects() error { return measureFaults(c.o.Dir, c.result) }

// measureFaults measures what the faults recorded in the directory did, and writes
// them into the result, which has the length of the drive.
func measureFaults(dir *Directory, r *report.Result) error {
	kept, err := readFaults(dir.Path)
	if err != nil {
		return err
	}
	faults := kept.faults
	r.Faults = append([]report.Fault{}, faults...)
	r.Degradation = nil
	d := r.Drive
	if len(faults) == 0 || d == nil {
		return nil
	}
	from := seconds(d.WarmupSeconds)
	to := from + seconds(d.Seconds)
	var intervals []stats.FaultInterval
	var measured []int
	for i, f := range faults {
		if f.Skipped != "" || f.Error != "" {
			continue
		}
		s := stats.FaultInterval{At: seconds(f.AtSeconds), Healed: to}
		if f.HealedSeconds != nil {
			s.Healed = min(seconds(*f.HealedSeconds), to)
		}
		if s.At < to {
			intervals = append(intervals, s)
			measured = append(measured, i)
		}
	}
	recorded, err := history.Open(dir.History())
	if err != nil {
		return err
	}
	defer recorded.Close()
	read := func() iter.Seq2[history.Record, error] {
		if d.Rebuilt {
			return readable(recorded)
		}
		return recorded.Transactions()
	}
	e, err := stats.MeasureEffects(read, intervals, from, to)
	if err != nil {
		return fmt.Errorf("measure the effects of the faults: %w", err)
	}
	for n, i := range measured {
		describe(&r.Faults[i], &e.Faults[n])
	}
	if longEnough(e.First) && longEnough(e.Last) && e.First.Committed > 0 {
		r.Degradation = &report.Degradation{FirstTPS: e.First.TPS(), LastTPS: e.Last.TPS()}
	}
	return nil
}

// longEnough says whether a part of the drive is long enough to have a throughput.
func longEnough(p stats.Phase) bool { return p.To-p.From >= time.Second }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// leastPhase is the shortest time of which a throughput is told.
const leastPhase = 100 * time.Millisecond

// describe writes a measured effect into a fault.
func describe(f *report.Fault, e *stats.Effect) {
	number := func(d time.Duration) *float64 { return known(d.Seconds()) }
	outage, longest := e.Outage.Length().Seconds(), e.Longest.Length().Seconds()
	f.OutageSeconds, f.LongestGap, f.NoiseSeconds, f.Uncompared = &outage, &longest, number(e.Noise), e.Uncompared
	if outage > 0 {
		f.OutageAtSeconds = number(e.Outage.From)
	}
	if e.Recovered >= 0 {
		after := max(0, (e.Recovered - seconds(f.AtSeconds)).Seconds())
		f.RecoveredSeconds = &after
	}
	phase := func(p stats.Phase, tps, p99 **float64) {
		if p.To-p.From < leastPhase {
			return
		}
		rate := p.TPS()
		*tps = &rate
		if p.Committed > 0 {
			ms := float64(p.P99) / float64(time.Millisecond)
			*p99 = &ms
		}
	}
	phase(e.Before, &f.TPSBefore, &f.P99Before)
	phase(e.During, &f.TPSDuring, &f.P99During)
	phase(e.After, &f.TPSAfter, &f.P99After)
	f.Unknown, f.FoundCommitted, f.FoundAborted = e.Unknown, e.FoundCommitted, e.FoundAborted
}

// judgeFaults makes the checks of a run with a nemesis; none of a run without.
func (c *conductor) judgeFaults(header history.Header) ([]check.Result, error) {
	var results []check.Result
	nodes, err := readNodes(c.o.Dir.Path)
	if err != nil {
		return nil, err
	}
	recorded, err := readFaults(c.o.Dir.Path)
	if err != nil {
		return nil, err
	}
	ended := c.result.Finished || c.judging
	problems := append(recorded.damaged, unlikeScript(recorded.faults, header.Keys[keyNemesis], ended, nodes)...)
	if len(problems) > 0 || header.Keys[keyNemesis] != "" {
		if nodes != nil && nodes.Error != "" {
			problems = append(problems, "After the last heal the database did not become whole: "+nodes.Error+".")
		}
		results = append(results, faultsDone(recorded.faults, problems, ended))
	}
	if nodes == nil {
		nodes = new(nodesRecord)
	}
	if names := strings.Fields(header.Keys[keyNodes]); len(names)+len(nodes.Nodes) > 0 {
		results = append(results, check.SameReplicas(nodes.Whole, nodes.allNodes(names)))
	}
	if text := header.Keys[keyMaxOutage]; text != "" {
		most, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("read the limit on outages that the run was given: %w", err)
		}
		results = append(results, outages(c.result.Faults, most))
	}
	if text := header.Keys[keyMaxDegradation]; text != "" {
		most, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("read the limit on the degradation that the run was given: %w", err)
		}
		results = append(results, degradation(c.result.Degradation, most))
	}
	return results, nil
}

// faultsDone leaves the verdict open where a fault was not injected, not seen or not
// healed, and where there are problems with what is recorded of all.
func faultsDone(faults []report.Fault, problems []string, ended bool) check.Result {
	r := check.Result{Name: checkFaults, Required: true}
	var failed []string
	done, skipped := 0, 0
	for _, f := range faults {
		name := fmt.Sprintf("%s at %.3g s", f.Fault, f.AtSeconds)
		switch {
		case f.Error != "":
			failed = append(failed, fmt.Sprintf("%s was not injected: %s.", name, f.Error))
		case f.HealError != "":
			failed = append(failed, fmt.Sprintf("%s was not healed: %s.", name, f.HealError))
		case f.Skipped != "":
			skipped++
		case f.HealedSeconds == nil:
			failed = append(failed, fmt.Sprintf("%s is not known to have been healed.", name))
		case f.Verified == "":
			failed = append(failed, fmt.Sprintf("%s was injected, but its effect was not observed.", name))
		default:
			done++
		}
	}
	failed = append(failed, problems...)
	switch {
	case len(failed) > 0:
		r.Detail = strings.Join(failed, "\n")
	case done == 0:
		r.Detail = fmt.Sprintf("Not decided: of the script no fault was injected in this run, and so many were skipped: %d.", skipped)
	case !ended:
		r.Detail = "Not decided: the run was cut off, so that nobody knows what was healed."
	default:
		r.Status = check.Valid
		r.Detail = fmt.Sprintf("Injected, seen by their effect, and healed: %d.", done)
		if skipped > 0 {
			r.Detail += fmt.Sprintf(" Skipped, as the script allows: %d.", skipped)
		}
	}
	return r
}

// outages holds every fault's outage against the limit. Where the database makes
// pauses beyond the limit without a fault, those within a fault's span are not
// known to be its doing.
func outages(faults []report.Fault, most time.Duration) check.Result {
	r := check.Result{Name: checkMaxOutage, Required: true}
	measured, longest := 0, 0.0
	var told, unsure []string
	for _, f := range faults {
		if f.OutageSeconds == nil {
			continue
		}
		measured++
		longest = max(longest, *f.OutageSeconds)
		if gap := f.LongestGap; gap != nil && f.NoiseSeconds != nil && *f.OutageSeconds == 0 && *gap > most.Seconds() && len(unsure) < 8 {
			unsure = append(unsure, fmt.Sprintf("After %s at %.3g s nothing was committed for %.3g s, and at most %v is allowed; but by the pauses that the database made before it without a fault, one of up to %.3g s says nothing.", f.Fault, f.AtSeconds, *gap, most, *f.NoiseSeconds))
		}
		if *f.OutageSeconds > most.Seconds() && len(told) < 8 {
			told = append(told, fmt.Sprintf("%s on %s at %.3g s: nothing was committed for %.3g s, and at most %v is allowed.", f.Fault, f.Target, f.AtSeconds, *f.OutageSeconds, most))
		}
	}
	switch {
	case len(told) > 0:
		r.Status, r.Detail = check.Invalid, strings.Join(told, "\n")
	case measured == 0:
		r.Detail = "Not decided: no fault's outage was measured."
	case len(unsure) > 0:
		r.Detail = "Not decided: " + strings.Join(unsure, "\n")
	default:
		r.Status, r.Detail = check.Valid, fmt.Sprintf("The longest outage of %d faults is %.3g s.", measured, longest)
	}
	return r
}

// degradation holds the throughput at the end against that at the beginning.
func degradation(d *report.Degradation, most float64) check.Result {
	r := check.Result{Name: checkMaxDegradation, Required: true}
	if d == nil {
		r.Detail = "Not decided: before the first fault or after the last heal there was less than a second to compare."
		return r
	}
	r.Detail = fmt.Sprintf("Before the first fault %.4g transactions a second were committed, after the last heal %.4g.", d.FirstTPS, d.LastTPS)
	r.Status = check.Valid
	if d.Loss() > most {
		r.Status = check.Invalid
		r.Detail += fmt.Sprintf(" That is %.3g %% less, and at most %.3g %% is allowed.", 100*d.Loss(), 100*most)
	}
	return r
}
