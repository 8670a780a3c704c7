package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"stroppy/tools/try"
)

// The page, and the record that it is made from. The record also has the runs of other days and
// machines.
const pageFile, recordFile = "docs/tables/seeds.md", "data/seeds.json"

// outcome is the result of a run.
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

// readOutcome reads a run. It reports false if the run has not ended.
func readOutcome(dir string) (o outcome, ended bool) {
	note, err := os.ReadFile(filepath.Join(dir, "ended.txt"))
	if errors.Is(err, os.ErrNotExist) {
		return o, false
	}
	try.Check(err)
	if o = try.JSON[outcome](filepath.Join(dir, "run", "result.json")); o.Verdict == "" {
		output, _ := os.ReadFile(filepath.Join(dir, "output.txt"))
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		o.Verdict, o.Reason = "none", lines[len(lines)-1]
	}
	try.Must(fmt.Sscan(string(note), &o.Exit, &o.Busy))
	return o, true
}

// earlier are the seeds' folders that were put aside, as in 17.overload.
var earlier = regexp.MustCompile(`^(\d+)(?:\.([a-z-]+))?$`)

// attempt is one run of a seed, with what the seed drew then.
type attempt struct {
	Seed      int      `json:"seed"`
	Aside     string   `json:"aside,omitempty"` // why it does not count: the name that its folder got
	Cluster   string   `json:"cluster"`
	Workload  string   `json:"workload"`
	Faults    []string `json:"faults"`
	Server    string   `json:"server,omitempty"`
	Verdict   string   `json:"verdict"`
	Committed uint64   `json:"committed"`
	Load      float64  `json:"load"` // the highest of the machine meanwhile
}

func attemptOf(p plan, o outcome, aside string) attempt {
	a := attempt{Seed: p.seed, Aside: aside, Cluster: p.cluster, Workload: p.workload, Faults: p.faults, Verdict: o.Verdict, Committed: o.Drive.Committed, Load: o.Busy}
	if o.Version != "" {
		version, _, _ := strings.Cut(strings.Fields(o.Version)[0], "-")
		a.Server = o.Database + " " + version
	}
	return a
}

// attemptsIn returns the runs in a folder that have ended.
func attemptsIn(runs string) (list []attempt) {
	for _, entry := range try.Must(os.ReadDir(runs)) {
		name := earlier.FindStringSubmatch(entry.Name())
		if name == nil {
			continue
		}
		if o, ended := readOutcome(filepath.Join(runs, entry.Name())); ended {
			list = append(list, attemptOf(draw(try.Must(strconv.Atoi(name[1]))), o, name[2]))
		}
	}
	return list
}

// merged adds later runs to the record, where they replace runs of the same seed.
func merged(record, later []attempt) []attempt {
	list := slices.DeleteFunc(slices.Clone(record), func(old attempt) bool {
		return slices.ContainsFunc(later, func(a attempt) bool { return a.Seed == old.Seed && a.Aside == old.Aside })
	})
	list = append(list, later...)
	slices.SortStableFunc(list, func(a, b attempt) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), strings.Compare(b.Aside, a.Aside)) // an earlier attempt first
	})
	return list
}

// writeTable adds all runs in the folder to the record, and writes the page of it.
func writeTable(runs string) {
	list := merged(try.JSON[[]attempt](recordFile), attemptsIn(runs))
	try.WriteJSON(recordFile, list)
	try.Write(pageFile, []byte(pageOf(list)))
}

func pageOf(list []attempt) string {
	var page strings.Builder
	page.WriteString(`# Seeded runs

` + "`./scripts/test.sh seeds`" + ` writes this page. A run lasts 20 s. Its seed draws cluster, workload and faults (` + "`tools/seeds/draw.go`" + `). The cluster promises to lose nothing under these faults, so every run must be valid. ` + "`go run ./tools/seeds -list -from SEED -count 1`" + ` prints the command of a row. Load is the highest load average during the run.

`)
	page.WriteString(counts(list))
	page.WriteString("\n| seed | cluster | workload | faults | committed | load | verdict |\n|---|---|---|---|---|---|---|\n")
	for _, a := range list {
		verdict := a.Verdict
		if a.Aside != "" {
			verdict += " (does not count: " + strings.ReplaceAll(a.Aside, "-", " ") + ")"
		}
		fmt.Fprintf(&page, "| %d | `%s` | %s | %s | %d | %.0f | %s |\n",
			a.Seed, a.Cluster, a.Workload, strings.Join(a.Faults, "; "), a.Committed, a.Load, verdict)
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
