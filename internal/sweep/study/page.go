package study

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"stroppy/internal/report"
)

// PageName is the page's name in the directory of the sweep.
const PageName = "scenarios.html"

// NewDocument returns the document of a sweep over scenarios. again is the command that repeats
// it, or continues one that is not finished.
func NewDocument(b *Book, published []Published, again string) *report.Document {
	d := report.NewDocument("sweep", report.Counted(uint64(len(b.Over)), "scenario"), b.StartedAt, b.Stroppy)
	d.Foot += " The sweep's directory holds the same as data: scenarios.json, and a folder for each run."
	d.Subject = fmt.Sprintf("%s; seed %d", d.Database, b.Seed)
	b.judge(d)
	runs, missing := b.runTables()
	notes := report.Notes{}
	if n := len(missing.Rows); n > 0 {
		notes.Warn("%d of %s could not be run: the reasons stand below.", n, d.Database)
	}
	if slices.ContainsFunc(b.Rows, func(r Row) bool { return r.ScaledDown > 0 }) {
		notes.Warn("Runs were scaled down, so their measurements are not those of the scenarios as they were written, nor to be compared with a study's.")
	}
	d.Notes = notes.All()
	d.Add(report.Section{ID: "what", Title: "What was run", Command: again, In: report.InPage, Facts: []report.Setting{
		{Name: "Scenarios", Value: strings.Join(b.Over, ", ")},
		{Name: "Seed", Value: report.SeedText(b.Seed)},
		{Name: "Started", Value: report.StartText(b.StartedAt)},
		{Name: "Machine", Value: report.OrNotKnown(b.Machine)},
	}})
	d.Add(report.Section{ID: "runs", Title: "Runs", Tables: []report.PageTable{runs}})
	d.Add(report.Section{ID: "missing", Title: "Could not run", Tables: []report.PageTable{missing}})
	d.Add(report.Section{ID: "tables", Title: "Beside what studies published", Tables: b.tables(published)})
	return d
}

// runTables returns the runs, and why there is no run of a scenario.
func (b *Book) runTables() (runs, missing report.PageTable) {
	runs = report.NewPageTable("", "Latencies in milliseconds, from the intended start time.", []int{0, 1, 9}, "scenario", "verdict", "scaled down by", "clients", "loaded", "committed", "TPS", "mean", "99 %", "database")
	missing = report.NewPageTable("", "", []int{0, 1}, "scenario", "reason")
	first := map[string]string{} // scenario of each reason
	for i := range b.Rows {
		r := &b.Rows[i]
		if r.Problem != "" {
			reason := r.Problem
			if same := first[reason]; same != "" {
				reason = "as " + same
			} else {
				first[reason] = r.Scenario
			}
			missing.Add(r.Scenario, reason)
			runs.Rows = append(runs.Rows, report.PageRow{Mark: "unknown", Cells: append([]string{r.Scenario, "could not run"}, slices.Repeat([]string{none}, 8)...)})
			continue
		}
		runs.Rows = append(runs.Rows, report.PageRow{Page: report.PageBeside(r.Dir), Mark: report.VerdictMark(r.Verdict), Cells: []string{
			r.Scenario, r.Verdict, scaled(r), report.Group(uint64(r.Clients)), report.Group(r.Loaded), report.Group(r.Committed),
			report.Perhaps(r.TPS, report.RateText), report.Perhaps(r.MeanMS, report.LatencyText), report.Perhaps(r.P99MS, report.LatencyText), r.server(),
		}})
	}
	runs.Markdown, missing.Markdown = runs.AsMarkdown(), missing.AsMarkdown()
	return runs, missing
}

// judge sets the verdict of all runs together. A scenario that could not be run leaves it unknown.
func (b *Book) judge(d *report.Document) {
	var runs []Row
	for _, r := range b.Rows {
		if r.Problem == "" {
			runs = append(runs, r)
		}
	}
	verdict, reason := report.CombinedVerdict("run", runs, func(r Row) (string, string) { return r.Scenario, r.Verdict })
	if len(runs) == 0 {
		verdict, reason = "unknown", "No scenario was run."
	}
	if n := len(b.Rows) - len(runs); n > 0 {
		if reason += fmt.Sprintf(" %d of %s could not be run.", n, d.Database); verdict == "valid" {
			verdict = "unknown"
		}
	}
	if d.Judge(verdict, reason, "sweep over scenarios"); !b.Finished {
		d.CutOff(report.NotFinished)
	}
}

// SavePage makes the page in the sweep's directory, and puts it in place at once.
func SavePage(b *Book, dir string, published []Published, again string) error {
	if err := report.WriteFile(dir, PageName, NewDocument(b, published, again).WritePage); err != nil {
		return fmt.Errorf("make the page of the sweep in %s: %w", dir, err)
	}
	return nil
}

// Text writes the sweep in a directory for people.
func Text(w io.Writer, b *Book, dir string, published []Published) error {
	o := report.Options{Dir: dir, Detail: report.Full}
	d := NewDocument(b, published, "")
	d.AddFiles(o, FileName+" and "+PageName+"; a folder with its own report for each run", b.Finished)
	return d.WriteText(w, o)
}
