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

// Run is a recorded run, and the side of a comparison that it belongs to.
type Run struct {
	Dir    string // as the person named it
	Side   string // A, B …; empty where there is no comparison
	Result *report.Result
}

// format is one form: how it writes runs, and the comparison of them, which is nil for one run.
type format struct {
	name  string
	write func(w io.Writer, runs []Run, compared *report.ComparisonData) error
}

// formats are all forms but the text for people.
var formats = []format{
	{"json", writeJSON}, {"csv", writeCSV}, {"markdown", writeMarkdown}, {"junit", writeJUnit}, {"benchstat", writeBenchstat},
}

// Text is the name of the form for people, which package report writes.
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

// Write writes runs in a form that is not Text. compared is their comparison; nil where one run
// is shown.
func Write(w io.Writer, name string, runs []Run, compared *report.ComparisonData) error {
	for _, f := range formats {
		if f.name == name {
			return f.write(w, runs, compared)
		}
	}
	return fmt.Errorf("write the report: there is no form %q", name)
}

// Runs are those of the sides of a comparison, in order.
func Runs(sides []report.Side) []Run {
	var list []Run
	for i, side := range sides {
		for _, r := range side.Runs {
			list = append(list, Run{Dir: r.Dir, Side: report.SideName(i), Result: r.Result})
		}
	}
	return list
}

// comparison is the JSON of a comparison. Keys may be added, never changed.
type comparison struct {
	Schema int           `json:"schema"`
	Answer []string      `json:"answer"` // a sentence for each side but the first
	Runs   []comparedRun `json:"runs"`
	Ratios []ratio       `json:"ratios"`
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

func writeJSON(w io.Writer, runs []Run, compared *report.ComparisonData) error {
	if compared == nil {
		data, err := runs[0].Result.JSON()
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	c := comparison{Schema: report.Schema, Answer: compared.Answer, Runs: []comparedRun{}, Ratios: []ratio{}}
	for _, r := range runs {
		c.Runs = append(c.Runs, comparedRun{r.Side, r.Dir, r.Result})
	}
	for _, r := range compared.Ratios {
		c.Ratios = append(c.Ratios, ratio{r.Against, r.Name, r.Value, r.Low, r.High, r.Difference})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(c)
}

// line is a text without what would end its line.
func line(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}
