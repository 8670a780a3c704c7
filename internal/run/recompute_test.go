package run

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/report"
)

// cutRun makes the directory of a killed run: ten seconds with a transfer each millisecond, but none from second 5 to
// 7, after a kill at 5 s. The first second is the warm-up.
func cutRun(t *testing.T, faults ...fault.Record) string {
	t.Helper()
	dir := t.TempDir()
	w, err := history.Create(filepath.Join(dir, HistoryDir), history.Header{Workload: "bank", Run: 1, Seed: 4, Objects: 10, Clients: 1, Keys: map[string]string{keyExpect: "serializable"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for at := int64(0); at < 10e9; at += 1e6 {
		if at >= 5e9 && at < 7e9 {
			continue
		}
		n++
		tx := history.Transaction{ID: history.NewID(1, 0, n), Kind: kindTransfer, Outcome: history.Committed, Attempts: 1, Warmup: at < 1e9, Due: at, Sent: at, Try: at, End: at + 5e5}
		if err := w.Client(0).Append(&tx); err != nil {
			t.Fatal(err)
		}
	}
	last := history.Transaction{ID: history.NewID(1, 0, n+1), Kind: kindInquiry, Outcome: history.Aborted, Attempts: 1, Due: 10e9 - 1, Sent: 10e9, Try: 10e9, End: 20e9}
	if err := errors.Join(w.Client(0).Append(&last), w.Client(0).Flush(), w.Close()); err != nil {
		t.Fatal(err)
	}
	d := &Directory{Path: dir}
	for _, f := range faults {
		line, err := json.Marshal(f.Injection)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Append(FaultsFile, append(line, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRecomputeMeasuresAKilledRun checks that the recording of a killed run gives its measurements.
func TestRecomputeMeasuresAKilledRun(t *testing.T) {
	dir := cutRun(t, good())
	scenario := []report.Setting{{Name: "warmup", Value: "1s"}, {Name: "duration", Value: "10s"}}
	for name, settings := range map[string][]report.Setting{"scenario": scenario, "recording alone": nil} {
		r := &report.Result{Scenario: settings}
		timeline, err := Recompute(dir, r)
		if err != nil {
			t.Fatal(err)
		}
		d := r.Drive
		if len(timeline) < 10 || timeline[3].Committed != 1000 || timeline[6].Committed != 0 {
			t.Fatalf("%s: the timeline is %+v", name, timeline)
		}
		if !d.Rebuilt || d.Clients != 1 || d.Committed != 7000 || d.Aborted != 1 || d.WarmupSeconds != 1 || math.Abs(d.Seconds-9) > 0.01 {
			t.Errorf("%s: %+v", name, d)
		}
		if math.Abs(*d.TPS.Mean-7000.0/9) > 1 || d.Latency == nil || d.Latency.P99 != 0.5 || *d.TPS.Max != 1000 || d.Outage == nil || math.Abs(d.Outage.Seconds-2) > 0.01 {
			t.Errorf("%s: %+v, latency %+v, outage %+v", name, d.TPS, d.Latency, d.Outage)
		}
		if f := r.Faults[0]; f.Outage == nil || math.Abs(f.Outage.Seconds()-2) > 0.01 || f.Recovered == nil || math.Abs(f.Recovered.Seconds()-2) > 0.15 {
			t.Errorf("%s: the fault %+v", name, f)
		}
		if r.Degradation == nil || math.Abs(r.Degradation.Loss()) > 0.02 {
			t.Errorf("%s: degradation %+v", name, r.Degradation)
		}
		if _, err := os.Stat(filepath.Join(dir, report.SeriesFile)); err == nil {
			t.Error("a series was written")
		}
	}
	kept := &report.Result{Drive: &report.Drive{Committed: 3}}
	if timeline, err := Recompute(dir, kept); err != nil || timeline != nil || kept.Drive.Committed != 3 {
		t.Errorf("measurements that were there: %+v, %v", kept.Drive, err)
	}
	empty := new(report.Result)
	if timeline, err := Recompute(recording(t, 1, 0, nil), empty); err != nil || timeline != nil || empty.Drive != nil {
		t.Errorf("no transaction: %+v, %v", empty.Drive, err)
	}
}

// TestRecomputeInTheWarmUp checks that a run killed in its warm-up has no measurements, and a warm-up no longer than
// the run.
func TestRecomputeInTheWarmUp(t *testing.T) {
	r := &report.Result{Scenario: []report.Setting{{Name: "warmup", Value: "1m"}, {Name: "duration", Value: "10m"}}}
	if _, err := Recompute(cutRun(t), r); err != nil {
		t.Fatal(err)
	}
	if d := r.Drive; !d.Unmeasured() || d.WarmupSeconds != 20 || d.TPS.Mean != nil || d.TPS.Median != nil || !strings.HasPrefix(endedEarly(d), "Nothing was measured") {
		t.Errorf("%+v, %+v, %q", d, d.TPS, endedEarly(d))
	}
	measured := &report.Drive{Seconds: 1, WarmupSeconds: 1}
	if said := endedEarly(measured); said != "" {
		t.Errorf("a drive that was measured: %q", said)
	}
}

// TestRecomputedOpenLoopLacksUnsent checks that unsent transactions of an open loop are not known.
func TestRecomputedOpenLoopLacksUnsent(t *testing.T) {
	r := &report.Result{Scenario: []report.Setting{{Name: "rate", Value: "2000"}, {Name: "arrival", Value: "poisson"}}}
	if _, err := Recompute(cutRun(t), r); err != nil {
		t.Fatal(err)
	}
	if d := r.Drive; d.Rate != 2000 || d.RatePlan != "2000" || d.Arrival != "poisson" || len(d.DueAtLeast) != 7 {
		t.Errorf("%+v", d)
	}
}

// TestRecomputeWritesTheSeries checks that a check of the run writes the series too.
func TestRecomputeWritesTheSeries(t *testing.T) {
	dir := cutRun(t)
	c := newConductor(Options{Dir: &Directory{Path: dir}})
	if err := c.recompute(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, report.SeriesFile)); err != nil || c.result.Drive == nil {
		t.Errorf("%v, %+v", err, c.result.Drive)
	}
}

// TestUnmeasuredFaultHasNoKeys checks that unknown measurements have no key in faults.jsonl.
func TestUnmeasuredFaultHasNoKeys(t *testing.T) {
	f := good()
	f.InEffect, f.Healing, f.Late = new(fault.Round(5.01)), new(fault.Round(7.5)), "it waited until a node led"
	dir := cutRun(t, f)
	text, err := os.ReadFile(filepath.Join(dir, FaultsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"outage_s", "unknown", "found_aborted", "tps_before", "recovered_s"} {
		if strings.Contains(string(text), key) {
			t.Errorf("%s is in %s", key, text)
		}
	}
	lines, err := readFaults(dir)
	read := lines.faults
	if err != nil || len(read) != 1 || *read[0].InEffect != fault.Round(5.01) || *read[0].Healing != fault.Round(7.5) || read[0].Late != f.Late || *read[0].Healed != fault.Round(8) {
		t.Errorf("read %+v, %v", read, err)
	}
}

// TestOutageWithinTheNoise checks that an outage is undecided if the database pauses longer than the limit without a
// fault.
func TestOutageWithinTheNoise(t *testing.T) {
	f := good()
	f.Outage, f.LongestGap, f.Noise = new(fault.Round(0)), new(fault.Round(0.3)), new(fault.Round(0.4))
	for most, want := range map[time.Duration]string{100 * time.Millisecond: report.ObjectiveUnknown, time.Second: report.ObjectiveMet} {
		if r := outages([]fault.Record{f}, most); r.Status != want {
			t.Errorf("at most %v: %+v", most, r)
		}
	}
	if r := outages([]fault.Record{f, good()}, 100*time.Millisecond); r.Status != report.ObjectiveMissed {
		t.Errorf("another fault's outage is beyond it: %+v", r)
	}
}

// TestDegradationNeedsNoRecovery checks that the limit applies to permanent damage.
func TestDegradationNeedsNoRecovery(t *testing.T) {
	f := good()
	f.At, f.Healed = fault.Round(3), new(fault.Round(3.1))
	dir := cutRun(t, f)
	c := newConductor(Options{Dir: &Directory{Path: dir}})
	r := c.result
	r.Drive = &report.Drive{WarmupSeconds: 1, Seconds: 6} // it ends within the outage
	if err := c.effects(); err != nil {
		t.Fatal(err)
	}
	if r.Degradation == nil || r.Degradation.Loss() < 0.4 || r.Faults[0].Recovered != nil {
		t.Errorf("%+v, %+v", r.Degradation, r.Faults[0])
	}
	r.Drive.Seconds = 2.5
	if err := c.effects(); err != nil || r.Degradation != nil {
		t.Errorf("less than a second after the heal: %+v, %v", r.Degradation, err)
	}
}

// The kinds of the transactions of these tests.
const (
	kindTransfer = 1 * history.Numbered
	kindInquiry  = 2*history.Numbered | history.ReadOnly
)
