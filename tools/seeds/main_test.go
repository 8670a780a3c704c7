package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"stroppy/internal/nemesis"
)

// TestDraw: a seed draws the same plan each time, of faults that there are.
func TestDraw(t *testing.T) {
	clusters := map[string]bool{}
	for seed := 1; seed <= 100; seed++ {
		p := draw(seed)
		clusters[p.cluster] = true
		if !reflect.DeepEqual(p, draw(seed)) {
			t.Errorf("seed %d draws %v and then %v", seed, p, draw(seed))
		}
		for _, fault := range p.faults {
			if _, err := nemesis.Parse(fault); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
	if len(clusters) != len(kinds()) {
		t.Errorf("a hundred seeds draw %d of %d kinds of clusters", len(clusters), len(kinds()))
	}
}

// TestOutcome: a run that has not ended is run again, and one without a result says why.
func TestOutcome(t *testing.T) {
	dir := t.TempDir()
	if _, err := readOutcome(dir); !os.IsNotExist(err) {
		t.Errorf("a run that has not ended: %v", err)
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("ended.txt", "3 41.5\n")
	write("output.txt", "a line\nstroppy: no server\n")
	if o, err := readOutcome(dir); err != nil || o.Verdict != "none" || o.Exit != 3 || o.Busy != 41.5 || o.Reason != "stroppy: no server" {
		t.Errorf("a run that failed: %+v, %v", o, err)
	}
	write("run/result.json", `{"verdict": "valid", "load": {"seconds": 1}, "drive": {"committed": 7}}`)
	if o, err := readOutcome(dir); err != nil || o.Verdict != "valid" || o.Drive.Committed != 7 {
		t.Errorf("a valid run: %+v, %v", o, err)
	}
	list := []attempt{{plan: draw(1), outcome: outcome{Verdict: "valid"}}, {plan: draw(1), outcome: outcome{Verdict: "none"}, aside: "overload"}}
	if text := counts(list); !strings.Contains(text, "| `"+draw(1).cluster+"` |  | 1 | 0 | 0 | 0 |") {
		t.Errorf("a run that does not count is counted:\n%s", text)
	}
}
