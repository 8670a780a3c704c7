package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stroppy/internal/campaign"
	"stroppy/internal/registry"
	"stroppy/scenarios"
)

// TestStudyScenariosHaveTheirPlans checks that each scenario of a study resolves to a plan. The nine runs of the
// Stroppy study must agree with its table 1.
func TestStudyScenariosHaveTheirPlans(t *testing.T) {
	runs := map[string]string{ // cluster, clients, accounts, transfers, nemesis
		"fdb-3":                "fdb:3 16 10000000 100000000 ",
		"fdb-3-chaos":          "fdb:3 16 10000000 100000000 replace n1 every 2m",
		"fdb-5":                "fdb:5 512 10000000 100000000 ",
		"fdb-5-chaos":          "fdb:5 512 10000000 100000000 replace random every 2m",
		"fdb-5-accounts-100m":  "fdb:5 512 100000000 100000000 ",
		"fdb-20":               "fdb:20 512 100000000 100000000 ",
		"fdb-5-accounts-1000m": "fdb:5 512 1000000000 10000000 ",
		"postgres-3cpu":        "postgres:2 128 10000000 100000000 ",
		"postgres-10cpu":       "postgres:2 256 100000000 100000000 ",
	}
	found := 0
	for _, s := range scenarios.All() {
		name, ok := strings.CutPrefix(s.Name, "study/")
		if !ok {
			continue
		}
		written, err := registry.Workloads().File(s.Name, s.Data)
		if err != nil {
			t.Error(err)
			continue
		}
		merged, given, err := registry.Workloads().Merge(written)
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

// TestPublishedTablesHaveScenarios checks that each row of a study's table has its scenario. The scenarios of table 1
// must have the printed nodes, clients, accounts and transfers.
func TestPublishedTablesHaveScenarios(t *testing.T) {
	tables, err := campaign.Published()
	if err != nil || len(tables) == 0 || len(tables[0].Tables) != 3 {
		t.Fatalf("%v, %+v", err, tables)
	}
	files := map[string]map[string]string{}
	for _, s := range scenarios.All() {
		written, err := registry.Workloads().File(s.Name, s.Data)
		if err != nil {
			t.Fatal(err)
		}
		files[s.Name] = map[string]string{}
		for _, one := range written {
			files[s.Name][one.Key] = one.Value
		}
	}
	compared := 0
	for _, table := range tables[0].Tables {
		column := func(name string) int { return slices.Index(table.Columns, name) }
		for _, row := range table.Rows {
			for _, name := range row.Scenarios {
				is := files[name]
				if is == nil {
					t.Errorf("%s has the scenario %s, which is not there", table.Title, name)
					continue
				}
				if column("Clients") < 0 {
					continue
				}
				compared++
				_, options, err := registry.ParseCluster(is["cluster"])
				if err != nil {
					t.Error(err)
				}
				got := []string{strconv.Itoa(options.Nodes), is["clients"], strings.TrimSuffix(is["accounts"], "000000"), strings.TrimSuffix(is["count"], "000000")}
				want := []string{row.Cells[column("Number of nodes")], row.Cells[column("Clients")], row.Cells[column("Accounts, Millions")], row.Cells[column("Transfers, millions")]}
				if !slices.Equal(got, want) {
					t.Errorf("%s has %q and its row %q", name, got, want)
				}
				if resources := fmt.Sprintf("cpu=%s,memory=%sG,disk=%sG", row.Cells[column("VCPU/ Node")], row.Cells[column("RAM/ Node,GB")], row.Cells[column("HDD/Node, GB")]); is["node-resources"] != resources {
					t.Errorf("%s has %q and its row %q", name, is["node-resources"], resources)
				}
				if chaos := strings.Contains(row.Cells[column("vendor")], "chaos"); chaos != (is["nemesis"] != "") {
					t.Errorf("%s has the faults %q and its row says %q", name, is["nemesis"], row.Cells[column("vendor")])
				}
			}
		}
	}
	if compared != 9 {
		t.Errorf("%d runs of table 1 were compared", compared)
	}
}
