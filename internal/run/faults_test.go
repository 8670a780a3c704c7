package run

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/report"
)

// good is a fault that was injected, seen and healed.
func good() fault.Record {
	return fault.Record{Injection: fault.Injection{Number: 1, Fault: "kill leader", Target: "n0", At: fault.Round(5), Healed: new(fault.Round(8)), Verified: "gone"}, Outage: new(fault.Round(1.5))}
}

// trouble returns the fact of a problem with the fault of good.
func trouble(state fact.Trouble, problem string) fact.Fact {
	return fact.FaultTrouble{Fault: "kill leader", AtSeconds: 5, State: state, Error: problem}
}

// TestUnseenFaultLeavesVerdictOpen checks that a fault that was not certainly injected, seen and healed leaves the
// verdict open.
func TestUnseenFaultLeavesVerdictOpen(t *testing.T) {
	for _, tc := range []struct {
		name   string
		bend   func(f *fault.Record)
		other  string
		cutOff bool
		none   bool
		want   check.Status
		why    fact.Fact
	}{
		{name: "all done", want: check.Valid, why: fact.FaultsDone{Done: 1}},
		{name: "not injected", bend: func(f *fault.Record) { f.Error = "no such process" }, why: trouble(fact.NotInjected, "no such process")},
		{name: "not healed", bend: func(f *fault.Record) { f.HealError = "it does not start" }, why: trouble(fact.NotHealed, "it does not start")},
		{name: "not known to be healed", bend: func(f *fault.Record) { f.Healed = nil }, why: trouble(fact.HealUnknown, "")},
		{name: "not seen", bend: func(f *fault.Record) { f.Verified = "" }, why: trouble(fact.NotObserved, "")},
		{name: "skipped, and nothing else", bend: func(f *fault.Record) { f.Skipped = "majority" }, why: fact.NoFaultDone{Skipped: 1}},
		{name: "none", none: true, why: fact.NoFaultDone{}},
		{name: "not whole", other: "After the last heal n1 does not answer.", why: fact.Unreadable{Problem: "After the last heal n1 does not answer."}},
		{name: "cut off", cutOff: true, why: fact.HealsUnknown{}},
	} {
		f := good()
		if tc.bend != nil {
			tc.bend(&f)
		}
		faults := []fault.Record{f}
		if tc.none {
			faults = nil
		}
		var problems []string
		if tc.other != "" {
			problems = append(problems, tc.other)
		}
		r := faultsDone(faults, problems, !tc.cutOff)
		if r.Status != tc.want || !r.Required || r.Why != tc.why {
			t.Errorf("%s: %v, %+v", tc.name, r.Status, r.Why)
		}
	}
}

func TestFaultBudgetsAreCompared(t *testing.T) {
	long := good()
	long.Outage = new(fault.Round(12))
	for _, tc := range []struct {
		name string
		got  report.Objective
		want string
	}{
		{"short outage", outages([]fault.Record{good()}, 2*time.Second), report.ObjectiveMet},
		{"long outage", outages([]fault.Record{good(), long}, 2*time.Second), report.ObjectiveMissed},
		{"nothing measured", outages([]fault.Record{{Injection: fault.Injection{Number: 1}}}, time.Second), report.ObjectiveUnknown},
		{"little loss", degradation(&report.Degradation{FirstTPS: 100, LastTPS: 85}, 0.2), report.ObjectiveMet},
		{"gain", degradation(&report.Degradation{FirstTPS: 100, LastTPS: 130}, 0.2), report.ObjectiveMet},
		{"much loss", degradation(&report.Degradation{FirstTPS: 100, LastTPS: 70}, 0.2), report.ObjectiveMissed},
		{"nothing to compare", degradation(nil, 0.2), report.ObjectiveUnknown},
	} {
		if tc.got.Status != tc.want || tc.got.Detail == "" {
			t.Errorf("%s: %+v", tc.name, tc.got)
		}
	}
}

// TestLaterLineOfAFaultCounts checks that the later of two lines about a fault counts. A line that was cut off is
// ignored.
func TestLaterLineOfAFaultCounts(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, FaultsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if read, err := readFaults(dir); err != nil || len(read.faults)+len(read.damaged) != 0 {
		t.Errorf("without a file: %v, %v", read, err)
	}
	write(`{"number":2,"fault":"pause n1","at_s":7}
{"number":1,"fault":"kill n0","at_s":5}
{"number":1,"fault":"kill n0","at_s":5,"healed_s":6,"verified":"gone"}
{"number":3,"fault":"ki`)
	read, err := readFaults(dir)
	faults := read.faults
	if err != nil || len(faults) != 2 || faults[0].Fault != "kill n0" || faults[0].Healed == nil || faults[1].Healed != nil {
		t.Errorf("got %+v, %v", faults, err)
	}
	write("{\"number\":1}\nnonsense\n{\"number\":2}\n")
	read, err = readFaults(dir)
	if err != nil || len(read.faults) != 2 || !slices.Contains(read.damaged, "Line 2 of faults.jsonl is no fault.") {
		t.Errorf("damage in the middle: %+v, %v", read, err)
	}
}

// TestReplicasCompareContent checks that nodes with different rows are distinguished, whatever the order of the rows.
// An unreadable node is no success.
func TestReplicasCompareContent(t *testing.T) {
	end := func(order []uint64, change int64) *history.End {
		dir := t.TempDir()
		w, err := history.CreateEnd(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range order {
			a := history.Object{N: n, Value: 100, Version: n}
			if n == 3 {
				a.Value += change
			}
			if err := w.Object(a); err != nil {
				t.Fatal(err)
			}
			if err := w.Row(history.Row{Transaction: history.NewID(1, 1, n+1), Object: n, Amount: 5, Version: n}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		e, err := history.OpenEnd(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e
	}
	digest := func(e *history.End) check.Digest {
		d, err := check.DigestOf(e)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	whole, same := end([]uint64{1, 2, 3, 4}, 0), end([]uint64{4, 2, 1, 3}, 0)
	other, fewer := end([]uint64{1, 2, 3, 4}, -7), end([]uint64{1, 2, 4}, 0)
	if digest(whole) != digest(same) {
		t.Error("the order of rows changes the digest")
	}
	if digest(whole) == digest(other) || digest(whole) == digest(fewer) {
		t.Error("other rows have the same digest")
	}
	object := func(uint64) string { return "account three" }
	for _, tc := range []struct {
		cluster, node *history.End
		kinds         []string
		behind        bool
	}{
		{whole, other, []string{fact.ObjectDiffers}, false},
		{whole, fewer, []string{fact.ObjectMissing, fact.RowsMissing}, true},
		{whole, same, nil, false},
		{fewer, whole, []string{fact.ObjectAlone, fact.RowsAlone}, false},
	} {
		d, err := check.Compare(tc.cluster, tc.node, object)
		var kinds []string
		for _, one := range d.First {
			kinds = append(kinds, one.Kind)
		}
		if err != nil || !slices.Equal(kinds, tc.kinds) || d.Count != len(tc.kinds) || d.Behind != tc.behind {
			t.Errorf("differences %+v, %v, want %v, behind %v", d, err, tc.kinds, tc.behind)
		}
	}
	differences, err := check.Compare(whole, other, object)
	if one := differences.First[0]; err != nil || one.Object != "account three" || one.Node.Value != 93 || one.Cluster.Value != 100 || one.Node.Version != 3 {
		t.Errorf("%+v, %v", one, err)
	}
	differing := check.Replica{Node: "n1", Digest: digest(other), Differences: differences.First}
	held := check.SameReplicas(digest(whole), []check.Replica{{Node: "n0", Digest: digest(same)}, differing})
	if held.Status != check.Invalid || len(held.Findings) != 1 || held.Why != nil {
		t.Errorf("two nodes that differ: %+v", held)
	} else if what := held.Findings[0].Instances[0].(fact.ReplicaDiffers); what.Node != "n1" || !slices.Equal(what.Same, []string{"n0"}) || len(what.Differences) != 1 || what.Late {
		t.Errorf("two nodes that differ: %+v", what)
	}
	differing.Behind = true
	held = check.SameReplicas(digest(whole), []check.Replica{{Node: "n0", Digest: digest(same)}, differing})
	if why, _ := held.Why.(fact.ReplicasOpen); held.Status != check.Unknown || len(why.Late) != 1 || why.Late[0].Node != "n1" {
		t.Errorf("a node that is late: %+v", held)
	}
	r := check.SameReplicas(digest(whole), []check.Replica{{Node: "n0", Digest: digest(same)}, {Node: "n1", Error: "refused"}})
	if r.Status != check.Unknown {
		t.Errorf("a node that cannot be read: %+v", r)
	}
	r = check.SameReplicas(digest(whole), []check.Replica{{Node: "n0", Digest: digest(other)}, {Node: "n1", Error: "refused"}})
	if why, _ := r.Why.(fact.ReplicasOpen); r.Status != check.Invalid || len(why.Unread) != 1 {
		t.Errorf("a node that differs: %+v", r)
	}
	if r = check.SameReplicas(digest(whole), nil); r.Status != check.Unknown {
		t.Errorf("no node: %+v", r)
	}
}
