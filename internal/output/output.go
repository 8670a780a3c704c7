// Package output writes the results of runs in formats that other programs read: CSV, Markdown,
// JUnit's XML, JSON, and the format of Go's benchmarks that benchstat compares.
package output

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/report"
)

// Set is the content of one report: a run, or several runs that belong together.
type Set struct {
	Runs  []Run
	Lead  []string // names of what the runs differ in, which come first in CSV
	Whole *Whole   // nil: the set is one run
	Notes []string // what a person must know beside the report, a sentence each

	document *report.Document
}

// Run is a recorded run, or a run of the set that was not made.
type Run struct {
	Dir    string         // as the person named it; empty: there is none
	Lead   []string       // a value for each name of the set's Lead
	Step   string         // such as rate=500, as part of a benchmark's name; empty: none
	Key    report.Setting // a key of its own in benchmarks, such as side: A; zero: none
	Result *report.Result
	Figs   map[string]float64 // the known figures if there is no result; nil if there is one
}

// Whole describes the runs of a set together.
type Whole struct {
	Kind    string // such as sweep
	Name    string // its directory
	Missing string // why runs are missing, in a sentence; empty: none is
	json    any    // what the set is as JSON
}

// figure returns a number of a run by its keys in result.json; nil if it is not known.
func (r Run) figure(name string) *float64 {
	if r.Figs == nil {
		return r.Result.Figure(name)
	}
	if x, known := r.Figs[name]; known {
		return &x
	}
	return nil
}

// format is one format.
type format struct {
	name  string
	write func(io.Writer, *Set) error
}

// formats are all formats but Text.
var formats = []format{
	{"json", writeJSON}, {"csv", writeCSV}, {"markdown", writeMarkdown}, {"junit", writeJUnit}, {"benchstat", writeBenchstat},
}

func writeMarkdown(w io.Writer, s *Set) error {
	_, err := io.WriteString(w, s.document.Markdown())
	return err
}

// Text is the name of the format for people, which this package does not write.
const Text = "text"

// Names returns the names of all formats.
func Names() []string {
	names := []string{Text}
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Known reports whether there is a format of this name.
func Known(name string) bool { return slices.Contains(Names(), name) }

// Write writes a set in a format other than Text.
func Write(w io.Writer, name string, s *Set) error {
	for _, f := range formats {
		if f.name == name {
			return f.write(w, s)
		}
	}
	return fmt.Errorf("write the report: there is no form %q", name)
}

// OfRun returns the set of one run.
func OfRun(dir string, r *report.Result) *Set {
	return &Set{
		Lead: []string{"side"}, Runs: []Run{{Dir: dir, Lead: []string{""}, Result: r}},
		document: report.RunDocument(report.Input{Result: r, Dir: dir}),
	}
}

// OfComparison returns the set of a comparison. dir is its directory, empty if there is none, and
// missing says why runs are missing, empty if none is.
func OfComparison(sides []report.Side, c *report.Document, dir, missing string) *Set {
	s := &Set{Lead: []string{"side"}, Whole: &Whole{Kind: "comparison", Name: dir}, document: c}
	for i, side := range sides {
		name := report.SideName(i)
		for _, r := range side.Runs {
			s.Runs = append(s.Runs, Run{Dir: r.Dir, Lead: []string{name}, Key: report.Setting{Name: sideKey, Value: name}, Result: r.Result})
		}
	}
	s.Whole.json = comparisonOf(s.Runs, c)
	if missing != "" {
		s.missing(missing)
	}
	return s
}

// comparison is the JSON of a comparison. Keys may be added, never changed.
type comparison struct {
	Schema  int                      `json:"schema"`
	Verdict string                   `json:"verdict"` // the worst of all runs; unfinished if runs are missing
	Reason  string                   `json:"reason"`
	Answer  []string                 `json:"answer"` // a sentence for each side but the first
	Runs    []comparedRun            `json:"runs"`
	Ratios  []report.ComparisonRatio `json:"ratios"`
}

type comparedRun struct {
	Side   string         `json:"side"`
	Dir    string         `json:"dir"`
	Result *report.Result `json:"result"` // as result.json has it
}

func writeJSON(w io.Writer, s *Set) error {
	if s.Whole != nil {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(s.Whole.Kind == "sweep") // as its file is written
		encoder.SetIndent("", "  ")
		return encoder.Encode(s.Whole.json)
	}
	data, err := s.Runs[0].Result.JSON()
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

func comparisonOf(runs []Run, compared *report.Document) *comparison {
	c := &comparison{Schema: report.Schema, Verdict: compared.Verdict, Reason: compared.Reason, Answer: compared.Answer, Runs: []comparedRun{}, Ratios: report.Ratios(compared)}
	for _, r := range runs {
		c.Runs = append(c.Runs, comparedRun{r.Lead[0], r.Dir, r.Result})
	}
	return c
}

// line returns a text without line breaks and control characters.
func line(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}

// column is one column of the CSV: its name, and its value of a run; empty if it is not known.
type column struct {
	name string
	of   func(Run) string
}

// columns returns the columns of the CSV behind those in which the runs differ. Measurements have
// their names in result.json, with the unit.
func columns() []column {
	list := []column{
		{"dir", func(r Run) string { return r.Dir }},
		{"started_at", func(r Run) string { return r.Result.StartedAt }},
		{"workload", func(r Run) string { return r.Result.Workload }},
		{"database", func(r Run) string { return r.Result.Database }},
		{"database_version", func(r Run) string { return r.Result.DatabaseVersion }},
		{"verdict", func(r Run) string { return r.Result.Verdict }},
		{"objectives", func(r Run) string { return r.Result.ObjectivesStatus() }},
	}
	for _, figure := range []string{
		"clients", "seconds", "rate", "committed", "aborted", "unknown", "retries", "conflicts",
		"tps.mean", "tps.median", "tps.max",
		"latency_ms.mean", "latency_ms.p50", "latency_ms.p90", "latency_ms.p95", "latency_ms.p99", "latency_ms.p999", "latency_ms.max",
		"service_ms.mean", "service_ms.p50", "service_ms.p99", "service_ms.p999",
		"client.cpu_seconds", "client.max_rss_bytes", "footprint_bytes",
		"tps_interval.low", "tps_interval.high", "backlog", "shed",
	} {
		list = append(list, column{figure, func(r Run) string { return number(r, figure) }})
	}
	return append(list, column{"reason", func(r Run) string { return line(r.Result.Reason) }})
}

// number returns the exact value of a figure of a run; empty if it is not known.
func number(r Run, figure string) string {
	x := r.figure(figure)
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}

// writeCSV writes a line of column names and then a line for each run. The form is RFC 4180, but lines end in a
// single newline.
func writeCSV(w io.Writer, s *Set) error {
	cells := slices.Clone(s.Lead)
	for _, c := range columns() {
		cells = append(cells, c.name)
	}
	rows := [][]string{cells}
	for _, r := range s.Runs {
		cells := slices.Clone(r.Lead)
		for _, c := range columns() {
			cells = append(cells, c.of(r))
		}
		rows = append(rows, cells)
	}
	return csv.NewWriter(w).WriteAll(rows)
}
