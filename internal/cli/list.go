package cli

import (
	"fmt"
	"strings"

	"stroppy/internal/db/memory"
	"stroppy/internal/nemesis"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/scenarios"
)

// list returns the lines of one kind of thing that this build knows.
func list(kind string, kinds []string) (lines []string, err error) {
	switch kind {
	case "workloads":
		for _, w := range workloads() {
			lines = append(lines, w.Name+"  "+w.About)
		}
	case "databases":
		lines = databaseLines()
	case "clusters":
		lines = clusterLines()
	case "faults":
		for _, f := range nemesis.List() {
			lines = append(lines, fmt.Sprintf("%s\n      %s", f[0], f[1]))
		}
	case "checks":
		for i, w := range workloads() {
			if i > 0 {
				lines = append(lines, "", "Of the workload "+w.Name+":")
			}
			lines = append(lines, about(w.Checks)...)
			if i == 0 {
				lines = append(lines, about(run.Checks())...)
			}
		}
	case "scenarios":
		for _, s := range scenarios.All() {
			lines = append(lines, fmt.Sprintf("%-18s %-21s %-8s %s", s.Name, s.Database, s.Verdict, s.About))
		}
	case "formats":
		for _, f := range formats() {
			lines = append(lines, fmt.Sprintf("%-15s %s", f.Name, f.About))
		}
	default:
		err = usagef("%q cannot be listed; the nearest is %s", kind, scenario.Nearest(kind, kinds))
	}
	return lines, err
}

// about writes names with what they mean.
func about(list [][2]string) (lines []string) {
	for _, c := range list {
		lines = append(lines, fmt.Sprintf("%-15s %s", c[0], c[1]))
	}
	return lines
}

func databaseLines() (lines []string) {
	for _, d := range databases() {
		url, about, _ := strings.Cut(d.about, "  ")
		lines = append(lines, fmt.Sprintf("%-46s %s", url, about))
	}
	lines = append(lines, "", "Mutants of memory:, each a bug that real databases have had:")
	for _, m := range memory.Mutants() {
		lines = append(lines, fmt.Sprintf("  %-19s %s", m.Name, m.Bug))
	}
	return lines
}
