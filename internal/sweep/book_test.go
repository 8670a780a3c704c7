package sweep

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/report"
)

func TestBookResumesOnlySameSweep(t *testing.T) {
	dir := t.TempDir()
	b := &Book{Kind: Steps, Workload: "bank", Database: "SQLite", Over: "clients=1,2", Scenario: "seed: 7\n", StartedAt: "2026-11-21T00:00:00Z"}
	fresh, err := b.Resume(dir)
	if err != nil || fresh != b {
		t.Fatalf("an empty directory gives %+v, %v", fresh, err)
	}
	b.Points = []Point{{Value: 1, Dir: "01-clients-1", Verdict: "valid", TPS: new(12.5), P99MS: new(0.25)}}
	if err := b.Save(dir); err != nil {
		t.Fatal(err)
	}
	again, err := (&Book{Kind: Steps, Over: b.Over, Scenario: b.Scenario}).Resume(dir)
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

// TestUnmeasuredValueIsNull checks that a value that a step does not measure is null in the book.
func TestUnmeasuredValueIsNull(t *testing.T) {
	dir := t.TempDir()
	b := &Book{Kind: Steps, Over: "clients=1,2", Points: []Point{
		{Value: 1, TPS: new(12.5)},
		{Value: 2, TPS: new(0.0), Low: new(0.0), High: new(1.5), Median: new(0.0), Best: new(0.0),
			MeanMS: new(1.0), P50MS: new(1.0), P99MS: new(2.0), P999MS: new(3.0), MaxMS: new(4.0)},
	}}
	if err := b.Save(dir); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(dir, string(Steps)))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"tps_low", "tps_high", "tps_median", "tps_best", "latency_mean_ms", "latency_p50_ms", "latency_p99_ms", "latency_p999_ms", "latency_max_ms"} {
		if strings.Count(string(kept), `"`+key+`": null`) != 1 {
			t.Errorf("%s is not null once in\n%s", key, kept)
		}
	}
	if again, err := Steps.Read(dir); err != nil || !reflect.DeepEqual(again, b) {
		t.Errorf("kept is %+v, %v; want %+v", again, err, b)
	}
}

func TestReadRejectsInvalidBooks(t *testing.T) {
	for text, why := range map[string]string{
		"":                            "no sweep of stroppy",
		"{}":                          "no schema",
		`{"schema":2,"over":"rate"}`:  "newer stroppy",
		`{"schema":1,"over":"x"}`:     "rate, clients, nodes or scenarios",
		`{"schema":1,"points":"all"}`: "does not fit schema 1: its points is a JSON string",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, string(Steps)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := Steps.Read(dir); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q is read as %+v, %v; want an error with %q", text, b, err, why)
		}
	}
}

func TestComparisonIsSavedAndResumed(t *testing.T) {
	dir := t.TempDir()
	if _, err := Comparison.Read(dir); !errors.Is(err, fs.ErrNotExist) || KindOf(dir) != "" {
		t.Errorf("an empty directory holds a comparison: %v", err)
	}
	b := &Book{
		Kind: Comparison, Names: []string{"a", "b"}, Repeat: 2, Seed: 7, Stroppy: "1.0",
		Points: []Point{{Scenario: "a", Dir: "01-a"}, {Scenario: "b", Dir: "01-b"}, {Scenario: "a", Dir: "02-a"}},
	}
	if err := b.Save(dir); err != nil {
		t.Fatal(err)
	}
	kept, err := (&Book{Kind: Comparison, Names: b.Names, Repeat: 3, Stroppy: "1.0"}).Resume(dir)
	if err != nil || kept.Seed != 7 || kept.Repeat != 3 || !reflect.DeepEqual(kept.Points, b.Points) {
		t.Errorf("kept %+v, %v", kept, err)
	}
	for _, other := range []Book{{Names: b.Names[:1]}, {Names: b.Names, Repeat: 1}, {Names: b.Names, Seed: 8}} {
		other.Kind, other.Stroppy = Comparison, "1.0"
		if kept, err := other.Resume(dir); err == nil {
			t.Errorf("%+v continues as %+v", other, kept)
		}
	}
}

// TestEarlierComparisonIsRead checks that a book from before comparisons kept results is read.
func TestEarlierComparisonIsRead(t *testing.T) {
	for text, why := range map[string]string{
		`{`:                             "it is not whole",
		`{"schema":1,"sides":[{}]}`:     "fewer than two sides",
		`{"schema":99,"sides":[{},{}]}`: "schema",
		`{"schema":1,"command":"stroppy compare a b","rounds":2,"sides":[{"name":"a","runs":["01-a","02-a"]},{"name":"b","runs":["/x/01-b"]}]}`: "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, string(Comparison)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		b, err := Comparison.Read(dir)
		if why != "" {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v and not %q", text, err, why)
			}
			continue
		}
		want := []string{filepath.Join("c", "01-a"), "/x/01-b", filepath.Join("c", "02-a")}
		if err != nil || !slices.Equal(b.Runs("c"), want) || !slices.Equal(b.Names, []string{"a", "b"}) || b.Repeat != 2 {
			t.Errorf("read %+v, %v; want %q", b, err, want)
		}
	}
}

// TestPointCopiesFiguresOfResult checks that a point has the figures of its result, and no figures for a run without
// a load phase.
func TestPointCopiesFiguresOfResult(t *testing.T) {
	r := &report.Result{
		Verdict: "valid", Database: "X", DatabaseVersion: "1", ScaledDownBy: 10, Load: &report.Load{Accounts: 100}, FootprintBytes: new(int64(5)),
		Drive: &report.Drive{Clients: 3, Committed: 9, TPS: &report.Throughput{Mean: new(2.0)}, Latency: &report.Latency{Mean: 1, P99: 2, Max: 3}},
	}
	data, err := json.Marshal(NewPoint(0, "d", r))
	for _, want := range []string{
		`"dir":"d","verdict":"valid","database":"X 1","scaled_down_by":10,"clients":3,"loaded":100,"committed":9,"tps":2,`,
		`"tps_median":null,"tps_best":null,"latency_mean_ms":1,`, `"latency_p99_ms":2,`, `"latency_max_ms":3,"footprint_bytes":5,`,
	} {
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%v, %s lacks %s", err, data, want)
		}
	}
	if p := NewPoint(0, "d", &report.Result{}); p.TPS != nil || p.MeanMS != nil || p.Footprint != nil {
		t.Errorf("%+v", p)
	}
}
