// Command verified keeps two tables. The table in docs/tables/verified.md shows which workload was verified on which
// database. The table in docs/tables/versions.md shows the servers of each version. The command reads the
// reports of tests and runs, adds them to data/verified.json and data/versions.json, and writes the
// tables:
//
//	go run ./tools/verified TEST_LOG|RUN_DIR…
//
// The reports of TestVersions count for the table of versions alone, and only for servers on which the
// whole matrix ran.
//
// A test log is the output of go test -json. A test reports with a line that begins with "verified". A
// run counts by its result.json if its verdict is valid, so that all its faults were injected and
// healed. Without arguments the command writes the tables alone.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"stroppy/internal/report"
	"stroppy/tools/try"
)

const (
	recordFile = "data/verified.json"
	pageFile   = "docs/tables/verified.md"
	first      = "<!-- verified: written by tools/verified -->"
	last       = "<!-- end of verified -->"
)

// workloads are the columns of the table.
var workloads = []string{"bank", "tpcb", "kv", "events", "append"}

// row is one database in one version, and by workload the faults through which a run
// had the verdict valid. A workload without a fault that has run has an empty list.
type row struct {
	Database  string              `json:"database"`
	Version   string              `json:"version"`
	StandIn   bool                `json:"stand_in,omitempty"` // no server of the database's maker answered
	Workloads map[string][]string `json:"workloads"`
}

// evidence is the report of one test or one run.
type evidence struct {
	Database string   `json:"database"`
	Version  string   `json:"version"`
	StandIn  bool     `json:"stand_in"`
	Workload string   `json:"workload"`
	Faults   []string `json:"faults"`
}

func main() { try.Main("verified", 1, func() { write(os.Args[1:]) }) }

func write(sources []string) {
	rows, servers := try.JSON[[]row](recordFile), try.JSON[[]server](versionsFile)
	for _, source := range sources {
		list, newer := read(source)
		for _, e := range list {
			if !slices.Contains(workloads, e.Workload) {
				try.Fail("%s reports on the workload %q, for which the table has no column", source, e.Workload)
			}
			rows = add(rows, e)
		}
		servers = addServers(servers, newer)
	}
	verified, versions := withTable(".", rows), withVersions(".", servers)
	try.WriteJSON(recordFile, rows)
	try.WriteJSON(versionsFile, servers)
	try.Write(pageFile, verified)
	try.Write(versionsPage, versions)
}

// read returns what a test log or the directory of a run reports.
func read(source string) ([]evidence, []server) {
	if try.Must(os.Stat(source)).IsDir() {
		return []evidence{ofRun(source)}, nil
	}
	log := eventsOf(try.Must(os.ReadFile(source)))
	return ofTests(log), serversOf(log)
}

func ofRun(dir string) evidence {
	r := try.Must(report.Parse(try.Must(os.ReadFile(filepath.Join(dir, "result.json")))))
	if r.Verdict != "valid" {
		try.Fail("%s verifies nothing: its verdict is %s", dir, r.Verdict)
	}
	e := evidence{Database: r.Database, Version: r.DatabaseVersion, Workload: r.Workload}
	for _, f := range r.Faults {
		e.Faults = append(e.Faults, f.Fault)
	}
	return e
}

// event is a line of a test log.
type event struct {
	Time                          time.Time
	Action, Package, Test, Output string
}

func eventsOf(log []byte) (list []event) {
	for line := range bytes.Lines(log) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var e event
			try.Check(json.Unmarshal(line, &e))
			list = append(list, e)
		}
	}
	return list
}

// reported reads the JSON that a test has printed after a word. It reports false if there is none.
func reported[T any](e *event, word string) (value T, found bool) {
	_, text, found := strings.Cut(e.Output, " "+word+" {")
	if found {
		try.Check(json.Unmarshal([]byte("{"+text), &value))
	}
	return value, found
}

// ofTests returns the reports of the tests that have passed.
func ofTests(log []event) (list []evidence) {
	said := map[string][]evidence{}
	for _, e := range log {
		test := e.Package + " " + e.Test
		if v, found := reported[evidence](&e, "verified"); found {
			said[test] = append(said[test], v)
		}
		if e.Action == "pass" && !strings.HasPrefix(e.Test, versionsTest) {
			list = append(list, said[test]...)
		}
		if e.Action == "pass" || e.Action == "fail" {
			delete(said, test)
		}
	}
	return list
}

// number is the version in what a server says of itself.
var number = regexp.MustCompile(`\d+(\.\d+)+`)

// add adds what e reports to the rows, which stay sorted.
func add(rows []row, e evidence) []row {
	if n := number.FindString(e.Version); n != "" {
		e.Version = n
	}
	i := slices.IndexFunc(rows, func(r row) bool { return r.Database == e.Database && r.Version == e.Version && r.StandIn == e.StandIn })
	if i < 0 {
		rows, i = append(rows, row{Database: e.Database, Version: e.Version, StandIn: e.StandIn, Workloads: map[string][]string{}}), len(rows)
	}
	faults := slices.Clone(rows[i].Workloads[e.Workload])
	for _, fault := range e.Faults {
		kind, _, _ := strings.Cut(fault, " ") // without its target
		faults = append(faults, kind)
	}
	slices.Sort(faults)
	rows[i].Workloads[e.Workload] = append([]string{}, slices.Compact(faults)...)
	slices.SortFunc(rows, func(a, b row) int {
		return strings.Compare(strings.ToLower(a.Database+" "+a.Version), strings.ToLower(b.Database+" "+b.Version))
	})
	return rows
}

// table is the rows in Markdown.
func table(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| database | version | %s |\n|---|---|%s\n", strings.Join(workloads, " | "), strings.Repeat("---|", len(workloads)))
	for _, r := range rows {
		version := r.Version
		if r.StandIn {
			version += ", a stand-in"
		}
		fmt.Fprintf(&b, "| %s | %s |", r.Database, version)
		for _, w := range workloads {
			faults, ran := r.Workloads[w]
			cell := "not yet"
			if ran {
				cell = strings.Join(append([]string{"no fault"}, faults...), ", ")
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// withTable returns the page below root with the table of the rows between its two marks.
func withTable(root string, rows []row) []byte {
	return between(root, pageFile, first, last, table(rows))
}

func withVersions(root string, servers []server) []byte {
	return between(root, versionsPage, versionsFirst, versionsLast, versionsTable(servers))
}

func between(root, name, first, last, text string) []byte {
	before, rest, found := bytes.Cut(try.Must(os.ReadFile(filepath.Join(root, name))), []byte(first))
	_, after, ended := bytes.Cut(rest, []byte(last))
	if !found || !ended {
		try.Fail("%s has no place for the table: put the lines %q and %q there", name, first, last)
	}
	return slices.Concat(before, []byte(first+"\n\n"+text+"\n"+last), after)
}
