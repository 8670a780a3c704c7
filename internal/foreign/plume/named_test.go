package plume

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/sessions"
	"stroppy/internal/isolation"
)

// named holds the smallest histories of the named anomalies with their sources and the levels that they
// satisfy, because the format has no comments. It cannot express anomalies of predicates.
var named = map[string]struct{ source, levels string }{
	"healthy":                   {"a serial order of three transactions", "holds serializable"},
	"aborted-read":              {"Adya, Weak Consistency (MIT 1999), G1a", "broken read-committed"},
	"intermediate-read":         {"Adya, G1b", "broken read-committed"},
	"circular-information-flow": {"Adya, G1c", "broken read-committed"},
	"non-monotonic-read":        {"Biswas and Enea, OOPSLA 2019, figure 2 (a)", "broken read-committed"},
	"fractured-read":            {"Bailis and others, SIGMOD 2014, definition of fractured reads", "holds read-committed broken read-atomic"},
	"non-repeatable-read":       {"Berenson and others, SIGMOD 1995, P2", "holds read-committed broken read-atomic"},
	"causality-violation":       {"Biswas and Enea, figure 2 (c)", "holds read-atomic broken causal"},
	"long-fork":                 {"Sovran and others, SOSP 2011; Cerone and others, CONCUR 2015", "holds causal broken snapshot-isolation"},
	"lost-update":               {"Berenson and others, P4", "holds causal broken snapshot-isolation"},
	"write-skew":                {"Berenson and others, A5B; Adya, G2-item", "holds snapshot-isolation broken serializable"},
	"unordered-writes":          {"two versions whose order no read shows", "holds causal"},
}

// TestEachAnomalyIsNamed checks the smallest history of each named anomaly, also after it was written and read
// again.
func TestEachAnomalyIsNamed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) != len(named) {
		t.Fatalf("%d files of %d: %v", len(files), len(named), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		of, ok := named[name]
		if !ok {
			t.Errorf("%s is not in the list", path)
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		h, err := parse(string(data), 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found, err := sessions.Check(context.Background(), h, isolation.Unknown)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		compare(t, name, strings.Fields(of.levels), found.Results)
	}
}

// compare compares results with a list of claims: holds or broken, and a level.
func compare(t *testing.T, name string, claims []string, results []check.Result) {
	t.Helper()
	for i := 0; i+1 < len(claims); i += 2 {
		level, err := isolation.Parse(claims[i+1])
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for _, r := range results {
			of, err := isolation.Parse(r.Name)
			if err != nil {
				t.Fatal(err)
			}
			seen = seen || of == level
			// The weak levels include the order of sessions, which the two strong ones do not: these may hold
			// if a weak one does not.
			apart := (of == isolation.SnapshotIsolation || of == isolation.Serializable) && !level.Includes(isolation.SnapshotIsolation)
			switch {
			case claims[i] == "holds" && level.Includes(of) && r.Status != check.Valid,
				claims[i] == "broken" && of.Includes(level) && !apart && r.Status != check.Invalid:
				t.Errorf("%s: %s is %v: %+v", name, r.Name, r.Status, r.Findings)
			}
		}
		if !seen {
			t.Errorf("%s: %v was not decided", name, level)
		}
	}
}
