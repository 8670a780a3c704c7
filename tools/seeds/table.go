package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const pageFile = "docs/seeds.md"

// outcome is what a run came to.
type outcome struct {
	Verdict  string // valid, invalid, unknown, or none: the run could not be carried out
	Reason   string
	Exit     int     `json:"-"`
	Busy     float64 `json:"-"` // the highest load of the machine meanwhile
	Database string
	Version  string `json:"database_version"`
	Drive    struct {
		Committed uint64
	}
}

// readOutcome reads a run that has ended. Of one that has not it is os.ErrNotExist.
func readOutcome(dir string) (outcome, error) {
	note, err := os.ReadFile(filepath.Join(dir, "ended.txt"))
	if err != nil {
		return outcome{}, err
	}
	o := outcome{Verdict: "none"}
	text, err := os.ReadFile(filepath.Join(dir, "run", "result.json"))
	switch {
	case err == nil:
		if err := json.Unmarshal(text, &o); err != nil {
			return outcome{}, fmt.Errorf("read the result in %s: %w", dir, err)
		}
	case errors.Is(err, os.ErrNotExist):
		output, _ := os.ReadFile(filepath.Join(dir, "output.txt"))
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		o.Reason = lines[len(lines)-1]
	default:
		return outcome{}, err
	}
	_, err = fmt.Sscan(string(note), &o.Exit, &o.Busy)
	return o, err
}

// earlier are the seeds' folders that were put aside, as in 17.overload.
var earlier = regexp.MustCompile(`^(\d+)(?:\.([a-z-]+))?$`)

// attempt is one run of a seed.
type attempt struct {
	plan
	outcome
	aside string // why it does not count: the name that its folder got
}

// writeTable writes the page of all runs in the folder.
func writeTable(runs string) error {
	entries, err := os.ReadDir(runs)
	if err != nil {
		return err
	}
	var list []attempt
	for _, entry := range entries {
		name := earlier.FindStringSubmatch(entry.Name())
		if name == nil {
			continue
		}
		seed, err := strconv.Atoi(name[1])
		if err != nil {
			return err
		}
		o, err := readOutcome(filepath.Join(runs, entry.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // it goes on, or was interrupted
		}
		if err != nil {
			return err
		}
		list = append(list, attempt{plan: draw(seed), outcome: o, aside: name[2]})
	}
	slices.SortStableFunc(list, func(a, b attempt) int {
		return 2*(a.seed-b.seed) + strings.Compare(b.aside, a.aside) // an earlier attempt first
	})
	var page strings.Builder
	page.WriteString(`# Seeded runs

Written by ` + "`./scripts/test.sh seeds`" + ` of the runs that it has carried out. Each lasts 20 s; the seed draws cluster, workload and faults, of those faults in which the cluster promises to lose nothing (` + "`tools/seeds/draw.go`" + `), so that every run must be valid. ` + "`go run ./tools/seeds -list -from SEED -count 1`" + ` prints the command of a row. Load is the highest load average of the machine meanwhile.

`)
	page.WriteString(counts(list))
	page.WriteString("\n| seed | cluster | workload | faults | committed | load | verdict |\n|---|---|---|---|---|---|---|\n")
	for _, a := range list {
		verdict := a.Verdict
		if a.aside != "" {
			verdict += " (does not count: " + strings.ReplaceAll(a.aside, "-", " ") + ")"
		}
		fmt.Fprintf(&page, "| %d | `%s` | %s | %s | %d | %.0f | %s |\n",
			a.seed, a.cluster, a.workload, strings.Join(a.faults, "; "), a.Drive.Committed, a.Busy, verdict)
	}
	return os.WriteFile(pageFile, []byte(page.String()), 0o644)
}

// counts says how many runs of each cluster had which verdict, without those that do
// not count.
func counts(list []attempt) string {
	var order []string
	verdicts := map[string]map[string]int{}
	versions := map[string]string{}
	for _, k := range kinds() {
		order = append(order, k.cluster)
		verdicts[k.cluster] = map[string]int{}
	}
	for _, a := range list {
		if a.aside == "" {
			verdicts[a.cluster][a.Verdict]++
			if a.Version != "" {
				version, _, _ := strings.Cut(strings.Fields(a.Version)[0], "-")
				versions[a.cluster] = a.Database + " " + version
			}
		}
	}
	text := "| cluster | server | valid | invalid | unknown | not carried out |\n|---|---|---|---|---|---|\n"
	for _, cluster := range order {
		v := verdicts[cluster]
		text += fmt.Sprintf("| `%s` | %s | %d | %d | %d | %d |\n", cluster, versions[cluster], v["valid"], v["invalid"], v["unknown"], v["none"])
	}
	return text
}
