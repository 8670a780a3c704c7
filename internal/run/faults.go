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
	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// checkFaults names the check that every fault of the script was injected, observed and healed.
const checkFaults = "faults"

// Checks declares the checks of a run with a nemesis.
func Checks() []check.Declared {
	return []check.Declared{
		{Name: checkFaults, About: "every fault of the script was injected, its effect was seen, and it was healed"},
		{Name: check.Replicas, About: "after the last heal every node of the cluster holds the same end state"},
	}
}

// effects measures the effects of the recorded faults on the load phase.
func (c *conductor) effects() error {
	kept, err := readFaults(c.o.Dir.Path)
	if err != nil {
		return err
	}
	r := c.result
	r.Faults, r.Degradation = append([]fault.Record{}, kept.faults...), nil
	d := r.Drive
	if len(r.Faults) == 0 || d == nil {
		return nil
	}
	from, to := measuredPart(d)
	recorded, err := history.Open(c.o.Dir.History())
	if err != nil {
		return err
	}
	defer recorded.Close()
	read := recorded.Transactions
	if d.Rebuilt {
		read = func() iter.Seq2[history.Record, error] { return readable(recorded) }
	}
	e, err := stats.MeasureEffects(read, r.Faults, from, to)
	if errors.As(err, new(*history.Damage)) {
		c.log.Warn("the effects of the faults could not be measured", "error", err) // the checks report it
		return nil
	}
	if err != nil {
		return fmt.Errorf("measure the effects of the faults: %w", err)
	}
	c.divideOutages()
	c.plots.Around = report.AroundRows(e.Around)
	if longEnough(e.First) && longEnough(e.Last) && e.First.Committed > 0 {
		r.Degradation = &report.Degradation{FirstTPS: e.First.TPS(), LastTPS: e.Last.TPS()}
	}
	return nil
}

// longEnough reports whether a part of the load phase is long enough to have a throughput.
func longEnough(p stats.Phase) bool { return p.To-p.From >= time.Second }

func seconds(s float64) time.Duration { return time.Duration(fault.Round(s)) }

// measuredPart returns when the measured part of the load phase began and ended.
func measuredPart(d *report.Drive) (from, to time.Duration) {
	from = seconds(d.WarmupSeconds)
	return from, from + seconds(d.Seconds)
}

// seenWithin bounds how much later a new leader is observed: clusters are asked each 100 ms, and
// an answer takes as long on a busy machine.
const seenWithin = fault.Seconds(250 * time.Millisecond)

// divideOutages divides each outage in which one node took the lead. The cluster's part ends when
// that node was seen to take writes and, if others name the leader to the clients, when it was
// named. An outage is not divided if no node or several took the lead, or if it lasted to the end
// of the load phase.
func (c *conductor) divideOutages() {
	end := time.Duration(math.MaxInt64)
	if d := c.result.Drive; d != nil {
		_, end = measuredPart(d)
	}
	for i := range c.result.Faults {
		f := &c.result.Faults[i]
		f.OutageCluster, f.OutageClient, f.OutageLeader, f.OutageNamed = nil, nil, "", false
		if f.OutageAt == nil || f.Outage == nil {
			continue
		}
		from, to := *f.OutageAt, *f.OutageAt+*f.Outage
		if time.Duration(to) >= end {
			continue
		}
		var leaders []string
		var at fault.Seconds
		for _, e := range c.result.ClusterEvents {
			when := fault.Round(e.AtSeconds)
			if when < from || when > to+seenWithin {
				continue
			}
			if e.Leader != "" {
				leaders, at = append(leaders, e.Leader), when
			}
			if e.Named != "" && len(leaders) == 1 && e.Named == leaders[0] {
				f.OutageNamed, at = true, when
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

// judgeFaults returns the checks of a run with a nemesis, and none of a run without.
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

// members returns the nodes of a cluster at the end of a run: the nodes at the start, changed by the faults that added
// and removed nodes. No name occurs twice.
func members(names []string, faults []fault.Record) []string {
	var left []string
	for _, f := range faults {
		names, left = append(names, f.Joined...), append(left, f.Left...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(left, name) })
}

// faultsDone returns an undecided check if a fault was not injected, not observed or not healed, or
// if there are problems with the recorded faults.
func faultsDone(faults []fault.Record, problems []string, ended bool) check.Result {
	r := check.Result{Name: checkFaults, Required: true}
	var failed []fact.Fact
	done, skipped := 0, 0
	for _, f := range faults {
		trouble := fact.FaultTrouble{Fault: f.Fault, AtSeconds: f.At.Seconds()}
		switch {
		case f.Error != "":
			trouble.State, trouble.Error = fact.NotInjected, f.Error
		case f.HealError != "":
			trouble.State, trouble.Error = fact.NotHealed, f.HealError
		case f.Skipped != "":
			skipped++
		case f.Healed == nil:
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
