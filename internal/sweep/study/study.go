// Package study shows a sweep over scenarios: what each run came to, or why it could not be
// carried out, and the tables that studies published, with our measurements beside theirs.
package study

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"stroppy/internal/report"
	"stroppy/internal/sweep"
)

// PageName is the page's name in the directory of the sweep.
const PageName = "scenarios.html"

// NewDocument returns the document of a sweep over scenarios. again is the command that repeats
// it, or continues one that is not finished.
func NewDocument(b *sweep.Book, published []Published, again string) *report.Document {
	d := report.NewDocument("sweep", report.Counted(uint64(len(b.Names)), "scenario"), b.StartedAt, b.Stroppy)
	d.Foot += " The sweep's directory holds the same as data: scenarios.json, and a folder for each run."
	d.Subject = fmt.Sprintf("%s; seed %d", d.Database, b.Seed)
	judge(b, d)
	runs, missing := runTables(b)
	notes := report.Notes{}
	if n := len(missing.Rows); n > 0 {
		notes.Warn("%d of %s could not be run: the reasons stand below.", n, d.Database)
	}
	if slices.ContainsFunc(b.Points, func(r sweep.Point) bool { return r.ScaledDown > 0 }) {
		notes.Warn("Runs were scaled down. Do not compare their measurements with a study, or with runs of the full scenarios.")
	}
	d.Notes = notes.All()
	d.Add(report.Section{ID: "what", Title: "What was run", Command: again, In: report.InPage, Facts: []report.Setting{
		{Name: "Scenarios", Value: strings.Join(b.Names, ", ")},
		{Name: "Seed", Value: report.SeedText(b.Seed)},
		{Name: "Started", Value: report.StartText(b.StartedAt)},
		{Name: "Machine", Value: report.OrNotKnown(b.Machine)},
	}})
	d.Add(report.Section{ID: "runs", Title: "Runs", Tables: []report.DataTable{runs}})
	d.Add(report.Section{ID: "missing", Title: "Could not run", Tables: []report.DataTable{missing}})
	d.Add(report.Section{ID: "tables", Title: "Beside what studies published", Tables: tables(b, published)})
	return d
}

// runTables returns the runs, and the reasons why scenarios have none.
func runTables(b *sweep.Book) (runs, missing report.DataTable) {
	runs = report.NewTable("", "Latencies in milliseconds, from the intended start time.", []int{0, 1, 9}, "scenario", "verdict", "scaled down by", "clients", "loaded", "committed", "TPS", "mean", "99 %", "database")
	missing = report.NewTable("", "", []int{0, 1}, "scenario", "reason")
	first := map[string]string{} // scenario of each reason
	for i := range b.Points {
		r := &b.Points[i]
		if r.Problem != "" {
			reason := r.Problem
			if same := first[reason]; same != "" {
				reason = "as " + same
			} else {
				first[reason] = r.Scenario
			}
			missing.Add(r.Scenario, reason)
			runs.Rows = append(runs.Rows, report.Row{Mark: "unknown", Cells: append([]string{r.Scenario, "could not run"}, slices.Repeat([]string{none}, 8)...)})
			continue
		}
		runs.Rows = append(runs.Rows, report.Row{Page: report.PageBeside(r.Dir), Mark: report.VerdictMark(r.Verdict), Cells: []string{
			r.Scenario, r.Verdict, scaled(r), report.Group(uint64(r.Clients)), report.Group(r.Loaded), report.Group(r.Committed),
			report.Perhaps(r.TPS, report.RateText), report.Perhaps(r.MeanMS, report.LatencyText), report.Perhaps(r.P99MS, report.LatencyText), server(r),
		}})
	}
	runs.Markdown, missing.Markdown = runs.AsMarkdown(), missing.AsMarkdown()
	return runs, missing
}

// judge sets the verdict of all runs together. A scenario that could not be run leaves it unknown.
func judge(b *sweep.Book, d *report.Document) {
	runs := slices.DeleteFunc(slices.Clone(b.Points), func(r sweep.Point) bool { return r.Problem != "" })
	verdict, reason := report.CombinedVerdict("run", runs, func(r sweep.Point) (string, string) { return r.Scenario, r.Verdict })
	if len(runs) == 0 {
		verdict, reason = "unknown", "No scenario was run."
	}
	if n := len(b.Points) - len(runs); n > 0 {
		if reason += fmt.Sprintf(" %d of %s could not be run.", n, d.Database); verdict == "valid" {
			verdict = "unknown"
		}
	}
	if d.Judge(verdict, reason, "sweep over scenarios"); !b.Finished {
		d.CutOff(report.NotFinished)
	}
}

// SavePage puts the page into the directory of the sweep at once.
func SavePage(b *sweep.Book, dir string, published []Published, again string) error {
	return NewDocument(b, published, again).SavePage(dir, PageName)
}

// Text writes the sweep in a directory for people.
func Text(w io.Writer, b *sweep.Book, dir string, published []Published) error {
	o := report.Options{Dir: dir, Detail: report.Full}
	d := NewDocument(b, published, "")
	d.AddFiles(o, string(sweep.Scenarios)+" and "+PageName+"; a folder with its own report for each run", b.Finished)
	return d.WriteText(w, o)
}

// Save fills in the tables of the studies, and puts the book in place.
func Save(b *sweep.Book, dir string, published []Published) error {
	b.Tables = []report.Table{}
	for _, t := range tables(b, published) {
		plain := report.Table{Title: t.Title, Columns: t.Columns, Notes: []string{t.Note}}
		for _, row := range t.Rows {
			plain.Rows = append(plain.Rows, row.Cells)
		}
		b.Tables = append(b.Tables, plain)
	}
	return b.Save(dir)
}

// Published holds the published runs of one study.
type Published struct {
	Study  string           `yaml:"study"` // its name, for titles
	Tables []PublishedTable `yaml:"tables"`
}

// PublishedTable is a table as the study prints it.
type PublishedTable struct {
	Title   string         `yaml:"title"`
	Note    string         `yaml:"note"`
	Columns []string       `yaml:"columns"`
	Ours    []string       `yaml:"ours"` // what is shown of our runs: names of figures
	Rows    []PublishedRow `yaml:"rows"`
}

// PublishedRow is a row of a study's table, with the scenarios beside it.
type PublishedRow struct {
	Scenarios []string `yaml:"scenarios"`
	Cells     []string `yaml:"cells"`
}

// none is the cell of a value that does not exist.
const none = "–"

// figure is a measurement or a setting of a run.
type figure struct {
	column string
	text   func(*sweep.Point) string
}

// figures are the figures by the names that tables give them.
var figures = map[string]figure{
	"clients":    {"our clients", func(r *sweep.Point) string { return report.Group(uint64(r.Clients)) }},
	"accounts":   {"our accounts", func(r *sweep.Point) string { return report.Group(r.Loaded) }},
	"committed":  {"our committed", func(r *sweep.Point) string { return report.Group(r.Committed) }},
	"tps":        {"our TPS", func(r *sweep.Point) string { return report.Perhaps(r.TPS, report.RateText) }},
	"tps_median": {"our median TPS", func(r *sweep.Point) string { return report.Perhaps(r.Median, report.RateText) }},
	"tps_best":   {"our best second", func(r *sweep.Point) string { return report.Perhaps(r.Best, report.RateText) }},
	"mean_ms":    {"our mean, ms", func(r *sweep.Point) string { return report.Perhaps(r.MeanMS, report.LatencyText) }},
	"p99_ms":     {"our 99 %, ms", func(r *sweep.Point) string { return report.Perhaps(r.P99MS, report.LatencyText) }},
	"max_ms":     {"our max, ms", func(r *sweep.Point) string { return report.Perhaps(r.MaxMS, report.LatencyText) }},
	"footprint":  {"our footprint", func(r *sweep.Point) string { return report.Perhaps(r.Footprint, gigabytes) }},
}

func gigabytes(n int64) string { return fmt.Sprintf("%.3g GB", float64(n)/1e9) }

// Parse reads the tables of a study. name is the name of the file, for errors.
func Parse(name string, data []byte) (p Published, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&p); err != nil {
		return p, fmt.Errorf("read the tables in %s: %w", name, err)
	}
	for _, t := range p.Tables {
		for _, ours := range t.Ours {
			if _, known := figures[ours]; !known {
				return p, fmt.Errorf("read the tables in %s: %q has %q in the same table, which no run has", name, t.Title, ours)
			}
		}
		for i, row := range t.Rows {
			if len(row.Cells) != len(t.Columns) {
				return p, fmt.Errorf("read the tables in %s: row %d of %q has %d cells and there are %d columns", name, i+1, t.Title, len(row.Cells), len(t.Columns))
			}
		}
	}
	return p, nil
}

// has reports whether a scenario of the table is in the sweep.
func (t *PublishedTable) has(over []string) bool {
	return slices.ContainsFunc(t.Rows, func(r PublishedRow) bool {
		return slices.ContainsFunc(r.Scenarios, func(s string) bool { return slices.Contains(over, s) })
	})
}

// tables returns the tables of the studies whose scenarios are in the sweep, with our measurements.
func tables(b *sweep.Book, published []Published) (list []report.DataTable) {
	for _, p := range published {
		for i := range p.Tables {
			if t := &p.Tables[i]; t.has(b.Names) {
				list = append(list, beside(b, p.Study, t))
			}
		}
	}
	return list
}

// beside returns a table of a study with a line for each scenario of a row. The first line has the cells of
// the study.
func beside(b *sweep.Book, study string, p *PublishedTable) report.DataTable {
	var ours []figure
	columns := slices.Clone(p.Columns)
	for _, name := range p.Ours {
		f := figures[name] // Parse has refused others
		ours, columns = append(ours, f), append(columns, f.column)
	}
	columns = append(columns, "scaled down by", "our verdict", "our database", "scenario")
	words := append(p.words(), len(columns)-3, len(columns)-2, len(columns)-1)
	note := fmt.Sprintf("The columns that begin with 'our' are measurements of this sweep, on its machines and with its settings. The %d before them are cited from the %s.", len(p.Columns), study)
	if p.Note != "" {
		note = p.Note + " " + note
	}
	t := report.NewTable(study+", "+p.Title, note, words, columns...)
	for _, row := range p.Rows {
		names := row.Scenarios
		if len(names) == 0 {
			names = []string{none}
		}
		for i, name := range names {
			cells := make([]string, len(p.Columns))
			if i == 0 {
				copy(cells, row.Cells)
			}
			t.Rows = append(t.Rows, line(b, cells, ours, name))
		}
	}
	t.Markdown = t.AsMarkdown()
	return t
}

// words returns the columns of the study that hold no numbers.
func (t *PublishedTable) words() (columns []int) {
	for i := range t.Columns {
		if slices.ContainsFunc(t.Rows, func(r PublishedRow) bool {
			_, err := strconv.ParseFloat(r.Cells[i], 64)
			return err != nil
		}) {
			columns = append(columns, i)
		}
	}
	return columns
}

// line adds the result of a scenario to the cells of a study. Only a measured cell has a number.
func line(b *sweep.Book, cells []string, ours []figure, name string) report.Row {
	row, state := b.Point(name), ""
	switch {
	case name == none:
		state = none
	case !slices.Contains(b.Names, name):
		state = "not in this sweep"
	case row == nil:
		state = "not run yet"
	case row.Problem != "":
		state = "could not run"
	}
	for _, f := range ours {
		if state != "" {
			cells = append(cells, none)
		} else {
			cells = append(cells, f.text(row))
		}
	}
	if state != "" {
		return report.Row{Cells: append(cells, none, state, none, name)}
	}
	return report.Row{Cells: append(cells, scaled(row), row.Verdict, server(row), name)}
}

// scaled returns the factor by which a run was scaled down.
func scaled(r *sweep.Point) string {
	if r.ScaledDown == 0 {
		return none
	}
	return fmt.Sprintf("%g", r.ScaledDown)
}

// server returns the database without the parentheses in its version, which name a package.
func server(r *sweep.Point) string {
	name, _, _ := strings.Cut(r.Database, " (")
	return name
}
