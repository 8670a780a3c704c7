package main

import (
	"cmp"
	"fmt"
	"strings"
)

// faults is the book of runs with faults.
var faults = &book{
	runs: "stroppy-runs/seeds", count: lastSeed, record: "data/seeds.json", page: "docs/tables/seeds.md",
	draw: func(seed int) drawn { return draw(seed) }, pageOf: pageOf,
}

func pageOf(list []attempt) string {
	var page strings.Builder
	page.WriteString(`# Seeded runs

` + "`./scripts/test.sh seeds`" + ` writes this page. A run lasts 20 s. Its seed draws cluster, workload and faults (` + "`tools/seeds/draw.go`" + `). The cluster promises to lose nothing under these faults, so every run must be valid. ` + "`go run ./tools/seeds -list -from SEED -count 1`" + ` prints the command of a row. Load is the highest load average during the run.

`)
	page.WriteString(counts(list))
	page.WriteString("\n| seed | cluster | workload | faults | committed | load | verdict |\n|---|---|---|---|---|---|---|\n")
	for _, a := range list {
		fmt.Fprintf(&page, "| %d | `%s` | %s | %s | %d | %.0f | %s |\n",
			a.Seed, a.Cluster, a.Workload, strings.Join(a.Faults, "; "), a.Committed, a.Load, verdictOf(a))
	}
	return page.String()
}

// counts returns a table of the verdicts by cluster, without the runs that do not count.
func counts(list []attempt) string {
	var order []string
	verdicts := map[string]map[string]int{}
	servers := map[string]string{}
	for _, a := range list {
		if a.Aside != "" {
			continue
		}
		if verdicts[a.Cluster] == nil {
			verdicts[a.Cluster] = map[string]int{}
			order = append(order, a.Cluster)
		}
		verdicts[a.Cluster][a.Verdict]++
		servers[a.Cluster] = cmp.Or(a.Server, servers[a.Cluster])
	}
	text := "| cluster | server | valid | invalid | unknown | not carried out |\n|---|---|---|---|---|---|\n"
	for _, cluster := range order {
		v := verdicts[cluster]
		text += fmt.Sprintf("| `%s` | %s | %d | %d | %d | %d |\n", cluster, servers[cluster], v["valid"], v["invalid"], v["unknown"], v["none"])
	}
	return text
}
