package cli

import (
	"fmt"
	"strings"
	"testing"

	"stroppy/scenarios"
)

// TestStudyPlans holds that each scenario of a study resolves to a plan, and that the nine
// runs of the Stroppy study have what its table 1 says of them. It starts nothing.
func TestStudyPlans(t *testing.T) {
	runs := map[string]string{ // cluster, clients, accounts, transfers, nemesis
		"fdb-3":                "fdb:3 16 10000000 100000000 ",
		"fdb-3-chaos":          "fdb:3 16 10000000 100000000 replace n1 every 2m",
		"fdb-5":                "fdb:5 512 10000000 100000000 ",
		"fdb-5-chaos":          "fdb:5 512 10000000 100000000 replace random every 2m",
		"fdb-5-accounts-100m":  "fdb:5 512 100000000 100000000 ",
		"fdb-20":               "fdb:20 512 100000000 100000000 ",
		"fdb-5-accounts-1000m": "fdb:5 512 1000000000 10000000 ",
		"postgres-3cpu":        "k8s/postgres:2?cpu=3&memory=30G&disk=100G 128 10000000 100000000 ",
		"postgres-10cpu":       "k8s/postgres:2?cpu=10&memory=160G&disk=100G 256 100000000 100000000 ",
	}
	found := 0
	for _, s := range scenarios.All() {
		name, ok := strings.CutPrefix(s.Name, "study/")
		if !ok {
			continue
		}
		written, err := workloads().File(s.Name, s.Data)
		if err != nil {
			t.Error(err)
			continue
		}
		merged, given, err := workloads().Merge(written)
		if err == nil {
			_, err = merged.Plan(given)
		}
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		want, ok := runs[name]
		if !ok {
			continue
		}
		found++
		is := map[string]string{}
		for _, one := range written {
			is[one.Key] = one.Value
		}
		if got := fmt.Sprintf("%s %s %s %s %s", is["cluster"], is["clients"], is["accounts"], is["count"], is["nemesis"]); got != want {
			t.Errorf("%s has %q, and table 1 %q", s.Name, got, want)
		}
	}
	if found != len(runs) {
		t.Errorf("%d of the study's %d runs are there", found, len(runs))
	}
}
