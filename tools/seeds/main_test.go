package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/nemesis"
	"stroppy/tools/try"
)

// TestSeedDrawsTheSamePlan checks that a seed draws the same plan each time, with known faults.
func TestSeedDrawsTheSamePlan(t *testing.T) {
	clusters := map[string]bool{}
	for seed := 1; seed <= lastSeed; seed++ {
		p := draw(seed)
		if ownOf(seed) == nil {
			clusters[p.cluster] = true
		}
		if !reflect.DeepEqual(p, draw(seed)) {
			t.Errorf("seed %d draws %v and then %v", seed, p, draw(seed))
		}
		for _, fault := range p.faults {
			if _, err := nemesis.Parse(fault); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
	before := 100
	for _, o := range owns() {
		first, last := draw(o.first), draw(o.last)
		if o.first != before+1 || first.cluster != o.kind.cluster || last.cluster != first.cluster || draw(o.first-1).cluster == first.cluster || draw(o.last+1).cluster == first.cluster {
			t.Errorf("seeds %d to %d are not those of %s alone: %v, %v", o.first, o.last, o.kind.cluster, first, last)
		}
		before = o.last
	}
	if before != lastSeed {
		t.Errorf("the last seed is %d, not %d", before, lastSeed)
	}
	if len(clusters) != len(kinds()) {
		t.Errorf("a hundred seeds draw %d of %d kinds of clusters", len(clusters), len(kinds()))
	}
}

// TestTheRecordIsOfTheseSeeds checks that each seed that has run draws yet what is noted of it.
func TestTheRecordIsOfTheseSeeds(t *testing.T) {
	record := try.JSON[[]attempt]("../../" + faults.record)
	if len(record) == 0 {
		t.Fatal("the record is empty")
	}
	for _, a := range record {
		if p := draw(a.Seed); p.cluster != a.Cluster || p.workload != a.Workload || !slices.Equal(p.faults, a.Faults) {
			t.Errorf("seed %d drew %s on %s with %q, and now it draws %v", a.Seed, a.Workload, a.Cluster, a.Faults, p)
		}
	}
}

// TestUnfinishedRunIsRepeated checks that a run that has not ended is repeated, and that a run without a result has
// its reason.
func TestUnfinishedRunIsRepeated(t *testing.T) {
	dir := t.TempDir()
	if _, ended := readOutcome(dir); ended {
		t.Error("a run that has not ended is taken")
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
	if o, ended := readOutcome(dir); !ended || o.Verdict != "none" || o.Exit != 3 || o.Busy != 41.5 || o.Reason != "stroppy: no server" {
		t.Errorf("a run that failed: %+v, %t", o, ended)
	}
	write("run/result.json", `{"verdict": "valid", "load": {"seconds": 1}, "drive": {"committed": 7}}`)
	if o, ended := readOutcome(dir); !ended || o.Verdict != "valid" || o.Drive.Committed != 7 {
		t.Errorf("a valid run: %+v, %t", o, ended)
	}
	for note, verdict := range map[string]string{"0 1.5\n": "measured", "3 1.5\n": "unknown"} {
		write("ended.txt", note)
		write("run/result.json", `{"verdict": "unknown"}`)
		if o, ended := readOutcome(dir); !ended || o.Verdict != verdict {
			t.Errorf("an unknown run with the exit code %s is %+v, %t", note[:1], o, ended)
		}
	}
}

// TestEarlierRunsStay checks that earlier runs stay, and that a run that does not count is not counted.
func TestEarlierRunsStay(t *testing.T) {
	of := func(seed int, verdict, aside string) attempt {
		o := outcome{Verdict: verdict, Database: "etcd", Version: "3.4.23-1"}
		return attemptOf(draw(seed), o, aside)
	}
	list := merged([]attempt{of(1, "unknown", ""), of(2, "valid", "")}, []attempt{of(3, "valid", ""), of(1, "none", "overload"), of(1, "valid", "")})
	want := []attempt{of(1, "none", "overload"), of(1, "valid", ""), of(2, "valid", ""), of(3, "valid", "")}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("the record is %+v", list)
	}
	if text := counts(list[:2]); !strings.Contains(text, "| `"+draw(1).cluster+"` | etcd 3.4.23 | 1 | 0 | 0 | 0 |") {
		t.Errorf("a run that does not count is counted:\n%s", text)
	}
}

// TestPagesFollowTheRecords checks that each page is made from its record.
func TestPagesFollowTheRecords(t *testing.T) {
	t.Chdir("../..")
	for name, b := range map[string]*book{"": faults, " -scripts": scripts} {
		page, err := os.ReadFile(b.page)
		if err != nil {
			t.Fatal(err)
		}
		if b.pageOf(try.JSON[[]attempt](b.record)) != string(page) {
			t.Errorf("%s is not made of %s: go run ./tools/seeds%s -table", b.page, b.record, name)
		}
	}
}
