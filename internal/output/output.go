// Package output writes what runs came to in the forms that other programs read: CSV,
// Markdown, JUnit's XML, the format of Go's benchmarks that benchstat compares, and JSON.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"stroppy/internal/report"
)

// Set is what one report is of: a run, or several that belong together.
type Set struct {
	Runs  []Run
	Lead  []string // names of what the runs differ in, which come first in CSV
	Whole *Whole   // nil: the set is one run
	Notes []string // what a person must know beside the report, a sentence each
}

// Run is a recorded run, or one that is due and was not made.
type Run struct {
	Dir    string         // as the person named it; empty: there is none
	Lead   []string       // a value for each name of the set's Lead
	Step   string         // such as rate=500, as part of a benchmark's name; empty: none
	Key    report.Setting // a key of its own in benchmarks, such as side: A; zero: none
	Result *report.Result
	Figs   map[string]float64 // what is known where there is no result of its own; nil: there is one
}

// Whole is what the runs of a set are together.
type Whole struct {
	Kind     string // such as sweep
	Name     string // its directory
	Missing  string // why it has not all of its runs, in a sentence; empty: it has
	json     func(io.Writer) error
	markdown func(*strings.Builder)
}

// figure is a number of a run by its keys in result.json.
func (r Run) figure(name string) (float64, bool) {
	if r.Figs != nil {
		x, ok := r.Figs[name]
		return x, ok
	}
	return r.Result.Figure(name)
}

// format is one form.
type format struct {
	name  string
	write func(io.Writer, *Set) error
}

// formats are all forms but the text for people.
var formats = []format{
	{"json", writeJSON}, {"csv", writeCSV}, {"markdown", writeMarkdown}, {"junit", writeJUnit}, {"benchstat", writeBenchstat},
}

// Text is the name of the form for people, which what is reported writes itself.
const Text = "text"

// Names are the names of all forms.
func Names() []string {
	names := []string{Text}
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Known says whether there is a form of this name.
func Known(name string) bool { return slices.Contains(Names(), name) }

// Write writes a set in a form that is not Text.
func Write(w io.Writer, name string, s *Set) error {
	for _, f := range formats {
		if f.name == name {
			return f.write(w, s)
		}
	}
	return fmt.Errorf("write the report: there is no form %q", name)
}

// OfRun is the set of one run.
func OfRun(dir string, r *report.Result) *Set {
	return &Set{Lead: []string{"side"}, Runs: []Run{{Dir: dir, Lead: []string{""}, Result: r}}}
}

// OfComparison is the set of what was compared, in a directory that is empty where there is
// none. missing says why it has not all of its runs; empty: it has.
func OfComparison(sides []report.Side, c *report.ComparisonData, dir, missing string) *Set {
	s := &Set{Lead: []string{"side"}, Whole: &Whole{Kind: "comparison", Name: dir}}
	s.Whole.markdown = func(out *strings.Builder) { markdownComparison(out, s.Runs, c) }
	for i, side := range sides {
		name := report.SideName(i)
		for _, r := range side.Runs {
			s.Runs = append(s.Runs, Run{Dir: r.Dir, Lead: []string{name}, Key: report.Setting{Name: sideKey, Value: name}, Result: r.Result})
		}
	}
	s.Whole.json = func(w io.Writer) error { return comparisonJSON(w, s.Runs, c) }
	if missing != "" {
		s.missing(missing)
	}
	return s
}

// comparison is the JSON of a comparison. Keys may be added, never changed.
type comparison struct {
	Schema  int           `json:"schema"`
	Verdict string        `json:"verdict"` // the worst of all runs; unfinished where some were not made
	Reason  string        `json:"reason"`
	Answer  []string      `json:"answer"` // a sentence for each side but the first
	Runs    []comparedRun `json:"runs"`
	Ratios  []ratio       `json:"ratios"`
}

type comparedRun struct {
	Side   string         `json:"side"`
	Dir    string         `json:"dir"`
	Result *report.Result `json:"result"` // as result.json has it
}

// ratio is one measurement of a side over that of the first, with its 95 % interval; null
// where it is not known.
type ratio struct {
	Against    string   `json:"against"`
	Name       string   `json:"name"`
	Ratio      *float64 `json:"ratio"`
	Low        *float64 `json:"low"`
	High       *float64 `json:"high"`
	Difference string   `json:"difference"`
}

func writeJSON(w io.Writer, s *Set) error {
	if s.Whole != nil {
		return s.Whole.json(w)
	}
	data, err := s.Runs[0].Result.JSON()
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

func comparisonJSON(w io.Writer, runs []Run, compared *report.ComparisonData) error {
	c := comparison{Schema: report.Schema, Verdict: compared.Verdict, Reason: compared.Reason, Answer: compared.Answer, Runs: []comparedRun{}, Ratios: []ratio{}}
	for _, r := range runs {
		c.Runs = append(c.Runs, comparedRun{r.Lead[0], r.Dir, r.Result})
	}
	for _, r := range compared.Ratios {
		c.Ratios = append(c.Ratios, ratio{r.Against, r.Name, r.Value, r.Low, r.High, r.Difference})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(c)
}

// bookJSON writes what a sweep's own file has.
func bookJSON(book any) func(io.Writer) error {
	return func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(book)
	}
}

// line is a text without what would end its line.
func line(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}
