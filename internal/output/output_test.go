package output

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// result is one run with every status of a check and of an objective.
func result(verdict string, tps float64) *report.Result {
	rss := int64(48_123_904)
	return &report.Result{
		Schema: report.Schema, Verdict: verdict, Reason: "The balances add up to 9.00, and at the load to 10.00: 1.00 was lost.", Workload: "bank",
		Database: "PostgreSQL", DatabaseVersion: "15.13", StartedAt: "2026-11-26T12:00:00Z", Stroppy: "v1.2.3", Finished: true,
		Phases: []report.Phase{{Name: "load", Seconds: 0.5}, {Name: "drive", Seconds: 10}},
		Client: &report.Client{MaxRSSBytes: &rss},
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

// TestForms compares each form with its golden file, of one run and of a comparison.
func TestForms(t *testing.T) {
	sides := []report.Side{
		{Name: "a.yaml", Runs: []report.Recorded{{Dir: "x/01-a", Result: result("valid", 12345.6)}}},
		{Name: "b.yaml", Runs: []report.Recorded{{Dir: "x/01-b", Result: result("invalid", 15000)}}},
	}
	compared, err := report.Compare(sides, "x", "stroppy compare")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names()[1:] {
		for kind, write := range map[string]func(*bytes.Buffer) error{
			"run": func(b *bytes.Buffer) error {
				return Write(b, name, []Run{{Dir: "a\nrun", Result: result("invalid", 12345.6)}}, nil)
			},
			"comparison": func(b *bytes.Buffer) error { return Write(b, name, Runs(sides), compared) },
			"nothing":    func(b *bytes.Buffer) error { return Write(b, name, []Run{{Dir: "run", Result: &report.Result{}}}, nil) },
		} {
			var out bytes.Buffer
			if err := write(&out); err != nil {
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
	if Known("xml") || !Known(Text) || Write(new(bytes.Buffer), "xml", nil, nil) == nil {
		t.Error("there is a form xml, or none for people")
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
