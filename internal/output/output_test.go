package output

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/report"
	"stroppy/internal/sweep"
)

var update = flag.Bool("update", false, "write the golden files anew")

// result is one run with every status of a check and of an objective.
func result(verdict string, tps float64) *report.Result {
	rss, cpu := int64(48_123_904), 2.5
	return &report.Result{
		Schema: report.Schema, Verdict: verdict, Reason: "The balances add up to 9.00, and at the load to 10.00: 1.00 was lost.", Workload: "bank",
		Cause: &report.Cause{
			Kind: "wrong-sums", Check: "total", Finding: "sum", Count: 1, Culprit: "undecided", Explains: []report.Consequence{},
			Text: "1.00 net lost.", CulpritText: "Not decided <between> them.", Cure: "Look at the transactions.",
		},
		Database: "PostgreSQL", DatabaseVersion: "15.13", StartedAt: "2026-11-26T12:00:00Z", Stroppy: "v1.2.3", Finished: true,
		Phases: []report.Phase{{Name: "load", Seconds: 0.5}, {Name: "drive", Seconds: 10}},
		Client: &report.Client{MaxRSSBytes: &rss, CPUSeconds: &cpu},
		Drive: &report.Drive{
			Clients: 16, Seconds: 10, Committed: 123456, TPS: &report.Throughput{Mean: &tps},
			Latency: &report.Latency{Mean: 1.25, P50: 1.1, P90: 2.2, P95: 3.3, P99: 9.75, P999: 45.6, Max: 1234.5},
		},
		Checks: []report.Check{
			{Name: "total", Status: "invalid", Required: true, Detail: "The balances add up to 9.00, and at the load to 10.00: 1.00 was lost.\n<more> & \"more\""},
			{Name: "durable", Status: "valid", Required: true, Detail: "All of it."},
			{Name: "ledger", Status: "unknown", Required: true, Detail: "Not decided: there is | no end state."},
			{Name: "strict", Status: "invalid", Detail: "A stale read."},
			{Name: "audits", Status: "not applicable", Required: true, Detail: "None was asked for."},
		},
		Objectives: []report.Objective{{Name: "p99<5ms", Status: report.ObjectiveMissed, Detail: "It is 9.75 ms."}, {Name: "tps>1", Status: report.ObjectiveMet, Detail: "It is 12,346."}, {Name: "outage<1s", Status: report.ObjectiveUnknown, Detail: "Not decided."}},
	}
}

// sets returns one set of each kind: a run, a comparison, a sweep and a sweep over scenarios. The sweep was cut off and
// lacks the folder of its first step, and some scenarios have no run.
func sets(t *testing.T) map[string]*Set {
	t.Helper()
	sides := []report.Side{
		{Name: "a.yaml", Runs: []report.Recorded{{Dir: "x/01-a", Result: result("valid", 12345.6)}}},
		{Name: "b.yaml", Runs: []report.Recorded{{Dir: "x/01-b", Result: result("invalid", 15000)}}},
	}
	compared, err := report.Compare(sides, "x", "stroppy compare")
	if err != nil {
		t.Fatal(err)
	}
	read := func(dir string) (*report.Result, error) {
		switch filepath.Base(dir) {
		case "01-rate-full":
			return nil, fs.ErrNotExist
		case "03-rate-500":
			return result("valid", 480.5), nil
		}
		return result("invalid", 490), nil
	}
	swept, err := OfSweep(&sweep.Book{
		Schema: report.Schema, Workload: "bank", Database: "PostgreSQL 15.13", Over: "rate=500,1000", Repeat: 2, Seed: 7, Command: "stroppy sweep bank --over rate=500,1000 --repeat 2",
		Points: []sweep.Point{
			{Value: 0, Dir: "01-rate-full", Verdict: "invalid", TPS: new(1234.5), P99MS: new(9.5), Samples: 12345, Violations: []report.FirstFinding{{Check: "total", Detail: "1.00 was lost.", Witness: []string{"1-2-3"}}}},
			{Value: 500, Dir: "02-rate-500", Verdict: "invalid", TPS: new(490.0), P99MS: new(9.75), Samples: 123456, Objectives: report.ObjectiveMissed, ObjectivesText: "objectives missed: p99<5ms: It is 9.75 ms"},
			{Value: 500, Dir: "03-rate-500", Verdict: "valid", TPS: new(480.5), P99MS: new(9.75), Samples: 123456},
		},
	}, "s", read)
	if err != nil {
		t.Fatal(err)
	}
	scenarios, err := OfScenarios(&sweep.Book{Kind: sweep.Scenarios,
		Names: []string{"study/one", "two.yaml", "three.yaml"}, Seed: 7, Command: "stroppy sweep --over scenarios",
		Points: []sweep.Point{{Scenario: "study/one", Dir: "01-one", Verdict: "invalid", Database: "PostgreSQL 15.13"}, {Scenario: "two.yaml", Problem: "start the cluster: it is not here"}},
	}, nil, "s", read)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Set{
		"run": OfRun("a\nrun", result("invalid", 12345.6)), "nothing": OfRun("run", &report.Result{}),
		"comparison": OfComparison(sides, compared, "x", ""), "sweep": swept, "scenarios": scenarios,
	}
}

// TestFormsMatchGoldenFiles compares each form with its golden file.
func TestFormsMatchGoldenFiles(t *testing.T) {
	for _, name := range Names()[1:] {
		for kind, set := range sets(t) {
			var out bytes.Buffer
			if err := Write(&out, name, set); err != nil {
				t.Fatalf("%s of a %s: %v", name, kind, err)
			}
			wellFormed(t, name, kind, out.Bytes())
			file := filepath.Join("testdata", kind+"."+name)
			if *update {
				if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, out.Bytes()) {
				t.Errorf("it is not as %s (%v): run go test ./internal/output -update and look at the difference\n%s", file, err, &out)
			}
		}
	}
	if Known("xml") || !Known(Text) || Write(new(bytes.Buffer), "xml", &Set{}) == nil {
		t.Error("there is a form xml, or none for people")
	}
}

// TestNotesNameWhatAFormOmits checks that a note names what a form has no place for.
func TestNotesNameWhatAFormOmits(t *testing.T) {
	all := sets(t)
	for kind, want := range map[string][]string{
		"run": nil, "comparison": nil,
		"sweep":     {"s: The sweep is not finished", "s/01-rate-full has no result.json"},
		"scenarios": {"s: The sweep is not finished"},
	} {
		notes := all[kind].Notes
		if len(notes) != len(want) {
			t.Errorf("of a %s: %q", kind, notes)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(notes[i], want[i]) {
				t.Errorf("of a %s: %q and not %q", kind, notes[i], want[i])
			}
		}
	}
	s, err := OfSweep(&sweep.Book{Over: "clients=1", Finished: true, Points: []sweep.Point{{Value: 1, Dir: "01-clients-1", Verdict: "valid"}}}, "s",
		func(string) (*report.Result, error) { return result("invalid", 1), nil })
	if err != nil || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "it is invalid, and the sweep has kept that it was valid") || s.Runs[0].Result.Verdict != "invalid" {
		t.Errorf("a step that was checked again: %v, %v", s, err)
	}
}

// TestStepWithoutFolderKeepsSummary checks that a step whose folder is gone has the sweep's summary, and no zeros.
func TestStepWithoutFolderKeepsSummary(t *testing.T) {
	gone := func(string) (*report.Result, error) { return nil, fs.ErrNotExist }
	swept, err := OfSweep(&sweep.Book{Workload: "bank", Over: "rate=500", Finished: true, Points: []sweep.Point{
		{Value: 500, Dir: "01-rate-500", Verdict: "valid", TPS: new(490.0), Samples: 1000, Backlog: 7},
	}}, "s", gone)
	if err != nil {
		t.Fatal(err)
	}
	scenarios, err := OfScenarios(&sweep.Book{Kind: sweep.Scenarios, Names: []string{"one"}, Finished: true, Points: []sweep.Point{{Scenario: "one", Dir: "01-one", Verdict: "unknown"}}}, nil, "s", gone)
	if err != nil {
		t.Fatal(err)
	}
	for kind, s := range map[string]*Set{"sweep": swept, "sweep over scenarios": scenarios} {
		for figure, want := range map[string]bool{"backlog": false, "shed": false, "clients": false, "committed": kind == "sweep"} {
			if x := s.Runs[0].figure(figure); x != nil != want {
				t.Errorf("a %s: %s is known: %v", kind, figure, x != nil)
			}
		}
	}
	var out strings.Builder
	if err := Write(&out, "benchstat", swept); err != nil || !strings.Contains(out.String(), " 7 unsent-tx\n") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestViolationOfACutStepCounts checks that a violation in a step that was cut off belongs to the sweep. The step's
// measurements do not.
func TestViolationOfACutStepCounts(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"01-clients-1", "02-clients-2"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	s, err := OfSweep(&sweep.Book{Workload: "bank", Over: "clients=1,2", Points: []sweep.Point{{Value: 1, Dir: "01-clients-1", Verdict: "valid"}}}, dir,
		func(dir string) (*report.Result, error) {
			if filepath.Base(dir) == "01-clients-1" {
				return result("valid", 1), nil
			}
			return result("invalid", 2), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string]string{
		"csv": ",invalid,", "markdown": "**INVALID** bank", "benchstat": "02-clients-2: invalid\n", "junit": `<testcase name="verdict" classname="bank.clients=2">` + "\n      <failure ",
	} {
		var out strings.Builder
		if err := Write(&out, form, s); err != nil || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "BenchmarkBank/clients=2") {
			t.Errorf("%s does not say %q: %v\n%s", form, want, err, &out)
		}
	}
}

// wellFormed reads a form as its readers do.
func wellFormed(t *testing.T, name, kind string, data []byte) {
	t.Helper()
	var err error
	switch name {
	case "json":
		err = json.Unmarshal(data, new(map[string]any))
	case "csv":
		_, err = csv.NewReader(bytes.NewReader(data)).ReadAll() // each line has as many cells
	case "junit":
		var suites testSuites
		if err = xml.Unmarshal(data, &suites); err == nil && kind == "run" {
			if s := suites.Suites[0]; s.Tests != 9 || s.Failures != 3 || s.Errors != 2 || s.Skipped != 2 || len(s.Cases) != s.Tests {
				t.Errorf("the suite counts %+v", s)
			}
		}
	case "benchstat":
		for text := range strings.Lines(string(data)) {
			fields := strings.Fields(text)
			if strings.HasPrefix(text, "Benchmark") && (len(fields) < 4 || len(fields)%2 != 0) {
				t.Errorf("%s: not pairs of a value and a unit: %s", kind, text)
			}
		}
	}
	if err != nil {
		t.Errorf("%s of a %s: %v\n%s", name, kind, err, data)
	}
}

// TestSidesStandInOneRow checks that the differences between the sides of a comparison are in the side's value, so
// that benchstat puts them side by side. Common properties are keys or a part of the name.
func TestSidesStandInOneRow(t *testing.T) {
	a, b := result("valid", 12345.6), result("valid", 15000)
	b.Database, b.DatabaseVersion, b.Drive.Clients = "Redis", "7.0.15", 8
	compared := func(b *report.Result) string {
		sides := []report.Side{{Name: "a.yaml", Runs: []report.Recorded{{Dir: "a", Result: a}}}, {Name: "b.yaml", Runs: []report.Recorded{{Dir: "b", Result: b}}}}
		data, err := report.Compare(sides, "x", "stroppy compare")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := writeBenchstat(&out, OfComparison(sides, data, "x", "")); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := compared(b)
	for _, want := range []string{"\nside: A, PostgreSQL 15.13, clients=16\n", "\nside: B, Redis 7.0.15, clients=8\n", "\nBenchmarkBank 123456 12345.6 tx/s", "\nBenchmarkBank 123456 15000 tx/s"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\ndatabase: ") {
		t.Errorf("a key keeps the sides apart:\n%s", text)
	}
	if text = compared(a); !strings.Contains(text, "\nside: B\n") || !strings.Contains(text, "\ndatabase: PostgreSQL 15.13\n") || !strings.Contains(text, "\nBenchmarkBank/clients=16 ") {
		t.Errorf("sides that are alike:\n%s", text)
	}
}
