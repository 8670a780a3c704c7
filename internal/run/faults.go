package run

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// checkFaults is what a run with a nemesis is checked for beside the replicas: every fault of
// the script was injected, seen, and healed.
const checkFaults = "faults"

// Checks declares the checks of a run with a nemesis.
func Checks() []check.Declared {
	return []check.Declared{
		{Name: checkFaults, About: "every fault of the script was injected, its effect was seen, and it was healed"},
		{Name: check.Replicas, About: "after the last heal every node of the cluster holds the same end state"},
	}
}

// effects measures what the recorded faults did to the load phase of the result.
func (c *conductor) effects() error {
	kept, err := readFaults(c.o.Dir.Path)
	if err != nil {
		return err
	}
	r := c.result
	r.Faults, r.Degradation = append([]report.Fault{}, kept.faults...), nil
	d := r.Drive
	if len(r.Faults) == 0 || d == nil {
		return nil
	}
	from := seconds(d.WarmupSeconds)
	to := from + seconds(d.Seconds)
	var intervals []stats.FaultInterval
	var measured []*report.Fault
	for i := range r.Faults {
		f := &r.Faults[i]
		s := stats.FaultInterval{At: seconds(f.AtSeconds), Healed: to}
		if f.HealedSeconds != nil {
			s.Healed = min(seconds(*f.HealedSeconds), to)
		}
		if f.HealingSeconds != nil {
			s.Healing = min(seconds(*f.HealingSeconds), s.Healed)
		}
		if f.Skipped == "" && f.Error == "" && s.At < to {
			intervals, measured = append(intervals, s), append(measured, f)
		}
	}
	recorded, err := history.Open(c.o.Dir.History())
	if err != nil {
		return err
	}
	defer recorded.Close()
	read := recorded.Transactions
	if d.Rebuilt {
		read = func() iter.Seq2[history.Record, error] { return readable(recorded) }
	}
	e, err := stats.MeasureEffects(read, intervals, from, to)
	if errors.As(err, new(*history.Damage)) {
		c.log.Warn("the effects of the faults could not be measured", "error", err) // the checks report it
		return nil
	}
	if err != nil {
		return fmt.Errorf("measure the effects of the faults: %w", err)
	}
	for n, f := range measured {
		describe(f, &e.Faults[n])
	}
	c.divideOutages()
	c.plots.Around = report.AroundRows(e.Around)
	if longEnough(e.First) && longEnough(e.Last) && e.First.Committed > 0 {
		r.Degradation = &report.Degradation{FirstTPS: e.First.TPS(), LastTPS: e.Last.TPS()}
	}
	return nil
}

// longEnough says whether a part of the drive is long enough to have a throughput.
func longEnough(p stats.Phase) bool { return p.To-p.From >= time.Second }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// leastPhase is the shortest time of which a throughput is reported.
const leastPhase = 100 * time.Millisecond

func describe(f *report.Fault, e *stats.Effect) {
	f.OutageSeconds, f.LongestGap = new(e.Outage.Length().Seconds()), new(e.Longest.Length().Seconds())
	f.NoiseSeconds, f.Uncompared = known(e.Noise.Seconds()), e.Uncompared
	if *f.OutageSeconds > 0 {
		f.OutageAtSeconds = known(e.Outage.From.Seconds())
	}
	if e.Recovered >= 0 {
		f.RecoveredSeconds = new(max(0, (e.Recovered - seconds(f.AtSeconds)).Seconds()))
	}
	phase := func(p stats.Phase) (tps, p99 *float64) {
		if p.To-p.From < leastPhase {
			return nil, nil
		}
		if p.Committed > 0 {
			p99 = new(float64(p.P99) / float64(time.Millisecond))
		}
		return new(p.TPS()), p99
	}
	f.TPSBefore, f.P99Before = phase(e.Before)
	f.TPSDuring, f.P99During = phase(e.During)
	if f.TPSDuring != nil {
		f.SilentDuring = new(e.Silent.Seconds() / (e.During.To - e.During.From).Seconds())
	}
	f.TPSAfter, f.P99After = phase(e.After)
	f.Unknown, f.FoundCommitted, f.FoundAborted = e.Unknown, e.FoundCommitted, e.FoundAborted
}

// seenWithin is, in seconds, how much later than it begins to take writes a node may be seen
// to do so: clusters are asked each 100 ms, and on a busy machine an answer takes as long.
const seenWithin = 0.25

// divideOutages divides each outage in which a node took the lead, at the moment from
// which that node was seen to take writes and, where others name it to the clients, was named:
// before it nobody could commit, and from it on the clients had not come to it yet. Where no
// node was seen to take the lead, or several were, it is not known, nor where the load phase
// ended before a transaction committed again.
func (c *conductor) divideOutages() {
	end := time.Duration(math.MaxInt64)
	if d := c.result.Drive; d != nil {
		end = seconds(d.WarmupSeconds) + seconds(d.Seconds) - time.Microsecond // floats are not exact
	}
	for i := range c.result.Faults {
		f := &c.result.Faults[i]
		f.OutageCluster, f.OutageClient, f.OutageLeader, f.OutageNamed = nil, nil, "", false
		if f.OutageAtSeconds == nil || f.OutageSeconds == nil {
			continue
		}
		from := *f.OutageAtSeconds
		to := from + *f.OutageSeconds
		if seconds(to) >= end {
			continue
		}
		var leaders []string
		at := 0.0
		for _, e := range c.result.ClusterEvents {
			if e.AtSeconds < from || e.AtSeconds > to+seenWithin {
				continue
			}
			if e.Leader != "" {
				leaders, at = append(leaders, e.Leader), e.AtSeconds
			}
			if e.Named != "" && len(leaders) == 1 && e.Named == leaders[0] {
				f.OutageNamed, at = true, e.AtSeconds
			}
		}
		if len(leaders) != 1 {
			f.OutageNamed = false
			continue
		}
		at = min(at, to) // a client may have come before it was seen
		f.OutageCluster, f.OutageClient, f.OutageLeader = new(at-from), new(to-at), leaders[0]
	}
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
	if recorded.cut && ended {
		recorded.damaged = append(recorded.damaged, fmt.Sprintf("The last line of %s is cut off.", FaultsFile))
	}
	if err := changed(c.o.Dir.Path, FaultsFile, c.result); err != nil {
		recorded.damaged = append(recorded.damaged, err.Error()+".")
	}
	problems := append(recorded.damaged, unlikeScript(recorded, header.Keys[keyNemesis], ended, nodes)...)
	if len(problems) > 0 || header.Keys[keyNemesis] != "" {
		if nodes != nil && nodes.Error != "" {
			problems = append(problems, "After the last heal the database did not become whole: "+nodes.Error+".")
		}
		results = append(results, faultsDone(recorded.faults, problems, ended))
	}
	if nodes == nil {
		nodes = new(nodesRecord)
	}
	if names := members(strings.Fields(header.Keys[keyNodes]), recorded.faults); len(names)+len(nodes.Nodes) > 0 {
		same := check.SameReplicas(nodes.Whole, nodes.allNodes(names))
		if err := changed(c.o.Dir.Path, NodesFile, c.result); err != nil {
			same = check.Undecided(same, check.Unreadable(err))
		}
		results = append(results, same)
	}
	return results, nil
}

// members are the nodes that a cluster had at the end, of those at the start: a fault may
// have let some join and taken some out, and no name is given twice.
func members(names []string, faults []report.Fault) []string {
	var left []string
	for _, f := range faults {
		names, left = append(names, f.Joined...), append(left, f.Left...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(left, name) })
}

// faultsDone leaves the verdict open where a fault was not injected, not seen or not
// healed, and where there are problems with what is recorded of all.
func faultsDone(faults []report.Fault, problems []string, ended bool) check.Result {
	r := check.Result{Name: checkFaults, Required: true}
	var failed []fact.Fact
	done, skipped := 0, 0
	for _, f := range faults {
		trouble := fact.FaultTrouble{Fault: f.Fault, AtSeconds: f.AtSeconds}
		switch {
		case f.Error != "":
			trouble.State, trouble.Error = fact.NotInjected, f.Error
		case f.HealError != "":
			trouble.State, trouble.Error = fact.NotHealed, f.HealError
		case f.Skipped != "":
			skipped++
		case f.HealedSeconds == nil:
			trouble.State = fact.HealUnknown
		case f.Verified == "":
			trouble.State = fact.NotObserved
		default:
			done++
		}
		if trouble.State != "" {
			failed = append(failed, trouble)
		}
	}
	for _, p := range problems {
		failed = append(failed, fact.Unreadable{Problem: p})
	}
	switch {
	case len(failed) == 1:
		r.Why = failed[0]
	case len(failed) > 1:
		r.Why = fact.Reasons{List: failed}
	case done == 0:
		r.Why = fact.NoFaultDone{Skipped: skipped}
	case !ended:
		r.Why = fact.HealsUnknown{}
	default:
		r.Status, r.Why = check.Valid, fact.FaultsDone{Done: done, Skipped: skipped}
	}
	return r
}
