// Package study shows a sweep over scenarios: what each run came to, or why it could not be
// carried out, and the tables that studies published, with our measurements beside theirs.
package study

import (
	"fmt"
	"io"
	"slices"
	"strings"

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
	var runs []sweep.Point
	for _, r := range b.Points {
		if r.Problem == "" {
			runs = append(runs, r)
		}
	}
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
