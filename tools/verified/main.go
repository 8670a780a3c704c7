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
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"stroppy/internal/report"
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

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "verified:", err)
		os.Exit(1)
	}
}

func write(sources []string) error {
	rows, err := readRows(recordFile)
	if err != nil {
		return err
	}
	servers, err := readServers(versionsFile)
	if err != nil {
		return err
	}
	for _, source := range sources {
		list, newer, err := read(source)
		if err != nil {
			return err
		}
		for _, e := range list {
			if !slices.Contains(workloads, e.Workload) {
				return fmt.Errorf("%s reports on the workload %q, for which the table has no column", source, e.Workload)
			}
			rows = add(rows, e)
		}
		servers = addServers(servers, newer)
	}
	return errors.Join(keep(recordFile, rows, pageFile, withTable, table(rows)), keep(versionsFile, servers, versionsPage, withVersions, versionsTable(servers)))
}

// keep writes a record, and the table that is made from it into its page.
func keep(file string, record any, page string, with func(page []byte, table string) ([]byte, error), table string) error {
	data, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err == nil {
		text, err = with(text, table)
	}
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(file, append(data, '\n'), 0o644), os.WriteFile(page, text, 0o644))
}

func readRows(file string) (rows []row, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return rows, nil
}

// read returns what a test log or the directory of a run reports.
func read(source string) (list []evidence, servers []server, err error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		e, err := ofRun(source)
		return []evidence{e}, nil, err
	}
	data, err := os.ReadFile(source)
	if err != nil {
		return nil, nil, err
	}
	if list, err = ofTests(data); err == nil {
		servers, err = serversOf(data)
	}
	return list, servers, err
}

func ofRun(dir string) (evidence, error) {
	data, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil {
		return evidence{}, err
	}
	r, err := report.Parse(data)
	if err != nil {
		return evidence{}, fmt.Errorf("read the result of %s: %w", dir, err)
	}
	if r.Verdict != "valid" {
		return evidence{}, fmt.Errorf("%s verifies nothing: its verdict is %s", dir, r.Verdict)
	}
	e := evidence{Database: r.Database, Version: r.DatabaseVersion, Workload: r.Workload}
	for _, f := range r.Faults {
		e.Faults = append(e.Faults, f.Fault)
	}
	return e, nil
}

// ofTests finds the lines of those tests that have passed.
func ofTests(log []byte) (list []evidence, err error) {
	type event struct{ Action, Package, Test, Output string }
	said := map[string][]evidence{}
	for lines := bufio.NewReader(bytes.NewReader(log)); ; {
		line, readErr := lines.ReadBytes('\n')
		var e event
		if len(bytes.TrimSpace(line)) > 0 {
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("read a test log: %w", err)
			}
		}
		test := e.Package + " " + e.Test
		if _, text, found := strings.Cut(e.Output, " verified {"); found {
			var v evidence
			if err := json.Unmarshal([]byte("{"+text), &v); err != nil {
				return nil, fmt.Errorf("read what %s reports: %w", test, err)
			}
			said[test] = append(said[test], v)
		}
		if e.Action == "pass" && !strings.HasPrefix(e.Test, versionsTest) {
			list = append(list, said[test]...)
		}
		if e.Action == "pass" || e.Action == "fail" {
			delete(said, test)
		}
		if readErr != nil {
			return list, nil
		}
	}
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

// withTable replaces what is between the two marks of the page.
func withTable(page []byte, text string) ([]byte, error) {
	return between(page, pageFile, first, last, text)
}

func withVersions(page []byte, text string) ([]byte, error) {
	return between(page, versionsPage, versionsFirst, versionsLast, text)
}

func between(page []byte, name, first, last, text string) ([]byte, error) {
	before, rest, found := bytes.Cut(page, []byte(first))
	_, after, ended := bytes.Cut(rest, []byte(last))
	if !found || !ended {
		return nil, fmt.Errorf("%s has no place for the table: put the lines %q and %q there", name, first, last)
	}
	return slices.Concat(before, []byte(first+"\n\n"+text+"\n"+last), after), nil
}
