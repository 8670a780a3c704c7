package cli

import (
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/db/memory"
	"stroppy/internal/scenario"
)

// list returns the lines of one kind of thing that this build knows.
func list(kind string, kinds []string) (lines []string, err error) {
	switch kind {
	case "workloads":
		return []string{"bank  transfers, payrolls and audits over accounts; every transfer is checked"}, nil
	case "databases":
		return databases(), nil
	case "clusters":
		return []string{"No cluster is built into this version: start the database yourself and name it with --db."}, nil
	case "faults":
		return []string{"No fault is built into this version: a run drives the database undisturbed, or hurt by your own hand."}, nil
	case "checks":
		for _, c := range check.About() {
			lines = append(lines, fmt.Sprintf("%-13s %s", c[0], c[1]))
		}
		return lines, nil
	}
	return nil, usagef("%q cannot be listed; the nearest is %s", kind, scenario.Nearest(kind, kinds))
}

func databases() (lines []string) {
	for _, d := range drivers() {
		if d.about == "" {
			continue
		}
		url, about, _ := strings.Cut(d.about, "  ")
		lines = append(lines, fmt.Sprintf("%-46s %s", url, about))
	}
	lines = append(lines, "", "Mutants of memory:, each a bug that real databases have had:")
	for _, m := range memory.Mutants() {
		lines = append(lines, fmt.Sprintf("  %-19s %s", m.Name, m.Bug))
	}
	return lines
}
