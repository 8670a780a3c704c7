package report

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"stroppy/internal/fault"
	"stroppy/internal/stats"
)

// figureCases are runs whose figures need a warning beside them.
func figureCases() map[string]*Result {
	outage := driven(base("valid", "It is so."))
	d := outage.Drive
	d.Seconds, d.WarmupSeconds, d.Outage = 18, 2, &Outage{AtSeconds: 5, Seconds: 11.8}
	d.Silence = &Silence{Seconds: 11.8, Longest: 11.8, AtSeconds: 5, Count: 1}
	d.Latency = &Latency{3.1, 1.2, 4.4, 9.8, 26, 280, 11800}
	d.Writes, d.Recorded = number(uint64(111_234)), &RecordedCounts{Committed: 140_000, Writes: 126_000, Background: 17}
	d.Errors = []ErrorCount{
		{"aborted", "40001", "commit", 8_623, "could not serialize access"}, {"aborted", "57014", "update", 629, "statement timeout"},
		{"unavailable", "", "open", 8, "refused"},
	}
	d.Conflicts, d.Retries, d.Aborted = 9_252, 8_850, 402
	outage.Faults = []fault.Record{{
		Injection: fault.Injection{Number: 1, Fault: "kill leader", Target: "n0", At: fault.Round(5), Healed: new(fault.Round(13.0)), Verified: "n0 down"},
		Outage:    new(fault.Round(11.8)), P99Before: number(28.0), P99During: number(43.0), SilentDuring: number(0.97), P99After: number(30.0),
		TPSBefore: number(5000.0), TPSDuring: number(3.0), TPSAfter: number(4900.0), Unknown: 16,
	}}
	outage.Resolved = &Resolved{Unknown: 16, Applied: 14, NotApplied: 2, By: "ledger"}
	outage.Host = &Host{
		Seconds: 20, Processors: 2, BusyProcessors: number(1.9), OtherProcessors: number(1.2), LoadAverage: number(6.25), RunQueue: number(4.5),
		CPUPressure: number(0.83), Steal: number(0.0), Throttled: number(0.02), StarvedSeconds: 7,
	}
	outage.Client = &Client{RunDelaySeconds: number(1.25)}
	outage.Warnings = []Warning{
		{Kind: HostBusy, Seconds: 7, OfSeconds: 20, Processors: 1.2, Of: 2, Waiting: 0.83, Load: 6.25},
		*outage.LoopWarning(),
	}

	paced := driven(base("valid", "It is so."))
	d = paced.Drive
	d.Rate, d.RatePlan, d.Arrival, d.Seconds = 500, "500", "uniform", 60
	d.TPS.Mean, d.Backlog = number(498.7), 0
	d.Steady = &stats.Steadiness{State: stats.Unsteady, Of: stats.OfLatency, Detail: "no steady state: the throughput was steady and the median latency rose from about 2 ms at second 0 to 9 ms at second 59"}
	d.Pacing = &Latency{P99: 23}
	paced.Warnings = []Warning{{Kind: HostSteal, Seconds: 60, OfSeconds: 60, Share: 0.12, LateMS: 23}, {Kind: ClientBusy, Processors: 1.7, Of: 2}}
	return map[string]*Result{"outage": outage, "paced": paced}
}

func TestFiguresEqualGoldenFiles(t *testing.T) {
	for name, r := range figureCases() {
		file := filepath.Join("testdata", name+".figures.txt")
		var out bytes.Buffer
		if err := errors.Join(Text(&out, r, Options{Dir: "stroppy-runs/x"}), Text(&out, r, Options{Dir: "stroppy-runs/x", Detail: Full})); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s is not as %s: run go test with -update here and look at the difference\n%s", name, file, &out)
		}
	}
}

// TestWarningsSurviveTheFile checks that warnings and the machine are values in result.json, and that
// what is not known there is null.
func TestWarningsSurviveTheFile(t *testing.T) {
	for name, r := range figureCases() {
		r.Host = &Host{Seconds: 20, Processors: 2, BusyProcessors: number(1.9), Steal: number(0.0)}
		data, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(data)
		if err != nil || !reflect.DeepEqual(again.Warnings, r.Warnings) || !reflect.DeepEqual(again.Host, r.Host) ||
			!reflect.DeepEqual(again.Drive.Silence, r.Drive.Silence) || !reflect.DeepEqual(again.Resolved, r.Resolved) {
			t.Errorf("%s: %+v, %+v, %v", name, again.Warnings, again.Host, err)
		}
		if !bytes.Contains(data, []byte(`"cpu_pressure": null`)) || !bytes.Contains(data, []byte(`"steal": 0`)) {
			t.Errorf("%s: unknown is not null in\n%s", name, data)
		}
	}
}

// TestEveryWarningHasAText checks that the kinds differ, and that only kinds about the client blame
// the client.
func TestEveryWarningHasAText(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range []WarningKind{HostBusy, HostSteal, HostThrottled, HostShared, HostFull, ClientBusy, ClientThreads, ClientLate, ClosedLoop} {
		w := Warning{Kind: kind, Seconds: 1, OfSeconds: 2, Processors: 1, Of: 2, Share: 0.5}
		text := w.Text()
		if text == "" || seen[text] {
			t.Errorf("%s: %q", kind, text)
		}
		seen[text] = true
		blamed := strings.Contains(text, "The client was the bottleneck")
		if blamed != w.ofClient() || blamed != (w.Bottleneck() != "") {
			t.Errorf("%s: %q", kind, text)
		}
		if starved := strings.HasPrefix(text, "The host was starved"); starved != w.ofHost() {
			t.Errorf("%s: %q", kind, text)
		}
	}
}

func TestClosedLoopWithOutageIsWarned(t *testing.T) {
	killed := []fault.Record{{Injection: fault.Injection{Fault: "kill leader"}}}
	silence := &Silence{Seconds: 2, Longest: 2, Count: 1}
	tps := &Throughput{Max: number(4_953.0)}
	for name, c := range map[string]struct {
		drive  Drive
		faults []fault.Record
		want   *Warning
	}{
		"no faults and no silence": {Drive{Seconds: 18, TPS: tps}, nil, nil},
		"faults":                   {Drive{Seconds: 18, TPS: tps}, killed, &Warning{Kind: ClosedLoop, Rate: 2400, Faults: true}},
		"a silence":                {Drive{Seconds: 18, TPS: tps, Silence: silence}, nil, &Warning{Kind: ClosedLoop, Rate: 2400, Seconds: 2}},
		"a silence that no percentile would show": {Drive{Seconds: 3600, TPS: tps, Silence: silence}, nil, nil},
		"a rate":                         {Drive{Seconds: 18, TPS: tps, Rate: 10}, killed, nil},
		"a fault that was left out":      {Drive{Seconds: 18, TPS: tps}, []fault.Record{{Injection: fault.Injection{Skipped: "no majority"}}}, nil},
		"a throughput that is not known": {Drive{Seconds: 18}, killed, &Warning{Kind: ClosedLoop, Faults: true}},
		"less than one a second":         {Drive{Seconds: 18, TPS: &Throughput{Mean: number(1.5)}}, killed, &Warning{Kind: ClosedLoop, Faults: true}},
		"seventeen a second":             {Drive{Seconds: 18, TPS: &Throughput{Mean: number(17.0)}}, killed, &Warning{Kind: ClosedLoop, Rate: 8, Faults: true}},
	} {
		r := &Result{Drive: &c.drive, Faults: c.faults}
		if got := r.LoopWarning(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestDuringNeedsItsSilence checks that the 99th percentile during a fault never stands alone.
func TestDuringNeedsItsSilence(t *testing.T) {
	f := fault.Record{Injection: fault.Injection{Number: 1, Fault: "kill"}, Outage: new(fault.Round(1.0)), P99During: number(43.0)}
	if row := strings.Join(faultRow(f, false).Cells, "|"); strings.Contains(row, "43") {
		t.Errorf("without the share: %s", row)
	}
	f.SilentDuring = number(0.87)
	if row := strings.Join(faultRow(f, false).Cells, "|"); !strings.Contains(row, "|43.0|87 %|") {
		t.Errorf("with the share: %s", row)
	}
}

// TestHeadlineLeavesAFixedThroughputOut checks that the throughput is the first figure only if it was
// measured.
func TestHeadlineLeavesAFixedThroughputOut(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Drive)
		first  string
	}{
		"closed loop":        {func(*Drive) {}, "Throughput, mean"},
		"a rate":             {func(d *Drive) { d.Rate, d.RatePlan = 500, "500" }, "Latency, 99 %"},
		"stages":             {func(d *Drive) { d.Rate, d.RatePlan = 500, "400 for 5s, 600 for 5s" }, "Latency, 99 %"},
		"a rate not reached": {func(d *Drive) { d.Rate, d.RatePlan, d.Backlog = 500, "500", 700 }, "Throughput, mean"},
	} {
		r := driven(base("valid", ""))
		r.Drive.Backlog, r.Drive.Shed = 0, 0
		c.change(r.Drive)
		list := figures(r, false)
		names := ""
		for _, f := range list {
			names += f.Name + ", "
		}
		if list[0].Name != c.first || strings.Contains(names, "Throughput") != (c.first == "Throughput, mean") {
			t.Errorf("%s: %s", name, names)
		}
	}
}

func TestTextExplainsDifferentCounts(t *testing.T) {
	for want, d := range map[string]Drive{
		"": {Committed: 10, Writes: number(uint64(10)), Recorded: &RecordedCounts{Committed: 10, Writes: 10}},
		"10 committed: 8 acknowledged writes and 2 that only read":             {Committed: 10, Writes: number(uint64(8)), Recorded: &RecordedCounts{Committed: 10, Writes: 8}},
		"the recording has 11, with 1 audit":                                   {Committed: 10, Writes: number(uint64(10)), Recorded: &RecordedCounts{Committed: 10, Writes: 10, Background: 1}},
		"the recording has 17, with 5 of the warm-up and 2 audits (14 writes)": {Committed: 10, Writes: number(uint64(10)), Recorded: &RecordedCounts{Committed: 15, Writes: 14, Background: 2}},
	} {
		if got := d.countsText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTextCountsResolvedOutcomes(t *testing.T) {
	for want, r := range map[string]*Resolved{
		"": nil,
		"16 unknown during the run: 14 applied, 2 not, by the ledger":                   {16, 14, 2, "ledger"},
		"3 unknown during the run: 1 applied, 0 not, 2 still unknown, by the end state": {3, 1, 0, ""},
	} {
		if got := r.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
