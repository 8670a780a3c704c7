package sweep

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestBook(t *testing.T) {
	dir := t.TempDir()
	b := &Book{Workload: "bank", Database: "SQLite", Over: "clients=1,2", Scenario: "seed: 7\n", StartedAt: "2026-11-21T00:00:00Z"}
	fresh, err := b.Resume(dir)
	if err != nil || fresh != b {
		t.Fatalf("an empty directory gives %+v, %v", fresh, err)
	}
	b.Points = []Point{{Value: 1, Dir: "01-clients-1", Verdict: "valid", TPS: new(12.5), P99MS: new(0.25)}}
	if err := b.Save(dir); err != nil {
		t.Fatal(err)
	}
	again, err := (&Book{Over: b.Over, Scenario: b.Scenario}).Resume(dir)
	if err != nil || !reflect.DeepEqual(again, b) {
		t.Errorf("kept is %+v, %v; want %+v", again, err, b)
	}
	for _, other := range []Book{{Over: "rate", Scenario: b.Scenario}, {Over: b.Over, Scenario: "seed: 8\n"}} {
		if _, err := other.Resume(dir); !errors.Is(err, ErrOther) {
			t.Errorf("the sweep over %s of %q goes on in another's directory: %v", other.Over, other.Scenario, err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the directory holds %v", entries)
	}
}

// TestUnknownIsKeptAsNull: what a step does not measure is null in the book.
func TestUnknownIsKeptAsNull(t *testing.T) {
	dir := t.TempDir()
	b := &Book{Over: "clients=1,2", Points: []Point{
		{Value: 1, TPS: new(12.5)},
		{Value: 2, TPS: new(0.0), Low: new(0.0), High: new(1.5), Median: new(0.0), Best: new(0.0),
			MeanMS: new(1.0), P50MS: new(1.0), P99MS: new(2.0), P999MS: new(3.0), MaxMS: new(4.0)},
	}}
	if err := b.Save(dir); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"tps_low", "tps_high", "tps_median", "tps_best", "latency_mean_ms", "latency_p50_ms", "latency_p99_ms", "latency_p999_ms", "latency_max_ms"} {
		if strings.Count(string(kept), `"`+key+`": null`) != 1 {
			t.Errorf("%s is not null once in\n%s", key, kept)
		}
	}
	if again, err := Read(dir); err != nil || !reflect.DeepEqual(again, b) {
		t.Errorf("kept is %+v, %v; want %+v", again, err, b)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                            "no sweep of stroppy",
		"{}":                          "no schema",
		`{"schema":2,"over":"rate"}`:  "newer stroppy",
		`{"schema":1,"over":"x"}`:     "rate, clients, nodes or scenarios",
		`{"schema":1,"points":"all"}`: "does not fit schema 1: its points is a JSON string",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := Read(dir); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q is read as %+v, %v; want an error with %q", text, b, err, why)
		}
	}
}
