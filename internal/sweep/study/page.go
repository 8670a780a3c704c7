package study

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"stroppy/internal/report"
)

// PageName is the page's name in the directory of the sweep.
const PageName = "scenarios.html"

// PageData is what the page of a sweep over scenarios shows.
type PageData struct {
	report.Head
	Runs    report.PageTable   `json:"runs"`
	Missing report.PageTable   `json:"missing"` // why there is no run of a scenario
	Tables  []report.PageTable `json:"tables"`  // of the studies, with ours beside
}

// NewPageData puts a sweep into the form of the page. again is the command that repeats it, or
// goes on with one that is not finished.
func NewPageData(b *Book, published []Published, again string) *PageData {
	d := &PageData{Head: report.NewHead("sweep over scenarios", "", b.StartedAt, again, b.Stroppy), Tables: b.tables(published)}
	d.Workload, d.Database = "sweep", report.Counted(uint64(len(b.Over)), "scenario")
	d.Verdict, d.Reason = b.verdict()
	d.Title = report.Capital(d.Verdict) + ": sweep over scenarios"
	notes := report.Notes{}
	d.Runs = report.NewPageTable("Runs", "Latencies in milliseconds, from the intended start time.", []int{0, 1, 9}, "scenario", "verdict", "scaled down by", "clients", "loaded", "committed", "TPS", "mean", "99 %", "database")
	d.Missing = report.NewPageTable("Could not run", "", []int{0, 1}, "scenario", "reason")
	anyScaled, first := false, map[string]string{} // scenario of each reason
	for i := range b.Rows {
		r := &b.Rows[i]
		if r.Problem != "" {
			reason := r.Problem
			if same := first[reason]; same != "" {
				reason = "as " + same
			} else {
				first[reason] = r.Scenario
			}
			d.Missing.Add(r.Scenario, reason)
			d.Runs.Rows = append(d.Runs.Rows, report.PageRow{Mark: "unknown", Cells: []string{r.Scenario, "could not run", none, none, none, none, none, none, none, none}})
			continue
		}
		anyScaled = anyScaled || r.ScaledDown > 0
		d.Runs.Rows = append(d.Runs.Rows, report.PageRow{Page: link(r.Dir), Mark: report.VerdictMark(r.Verdict), Cells: []string{
			r.Scenario, r.Verdict, scaled(r), report.Group(uint64(r.Clients)), report.Group(r.Loaded), report.Group(r.Committed),
			number(r.TPS, report.RateText), number(r.MeanMS, report.LatencyText), number(r.P99MS, report.LatencyText), r.server(),
		}})
	}
	if n := len(d.Missing.Rows); n > 0 {
		notes.Warn("%d of %s could not be run: the reasons stand below.", n, report.Counted(uint64(len(b.Over)), "scenario"))
	}
	if anyScaled {
		notes.Warn("Runs were scaled down, so their measurements are not those of the scenarios as they were written, nor to be compared with a study's.")
	}
	d.Notes = notes.All()
	for _, t := range []*report.PageTable{&d.Runs, &d.Missing} {
		t.Markdown = t.AsMarkdown()
	}
	d.Facts = []report.Setting{
		{Name: "Scenarios", Value: strings.Join(b.Over, ", ")},
		{Name: "Seed", Value: report.SeedText(b.Seed)},
		{Name: "Started", Value: report.StartText(b.StartedAt)},
		{Name: "Machine", Value: report.OrNotKnown(b.Machine)},
	}
	return d
}

// verdict is that of all runs together. What could not be run leaves it unknown.
func (b *Book) verdict() (verdict, reason string) {
	var runs []Row
	for _, r := range b.Rows {
		if r.Problem == "" {
			runs = append(runs, r)
		}
	}
	verdict, reason = report.CombinedVerdict("run", runs, func(r Row) (string, string) { return r.Scenario, r.Verdict })
	if len(runs) == 0 {
		verdict, reason = "unknown", "No scenario was run."
	}
	if n := len(b.Rows) - len(runs); n > 0 {
		if reason += fmt.Sprintf(" %d of %s could not be run.", n, report.Counted(uint64(len(b.Over)), "scenario")); verdict == "valid" {
			verdict = "unknown"
		}
	}
	if !b.Finished {
		if reason += " The sweep is not finished: it goes on, or was cut off."; verdict != "invalid" {
			verdict = "unfinished"
		}
	}
	return verdict, reason
}

// link is the address of a run's page, beside the sweep's; empty where the book names no folder
// of the sweep.
func link(dir string) string {
	if dir == "" || dir == "." || !filepath.IsLocal(dir) || filepath.Base(dir) != dir {
		return ""
	}
	return report.PageFrom("", dir)
}

// SavePage makes the page in the sweep's directory, and puts it in place at once.
func SavePage(b *Book, dir string, published []Published, again string) error {
	data := NewPageData(b, published, again)
	sheet := report.Sheet{Title: data.Title, Data: data, Scripts: []string{"scenarios.js"}}
	err := report.WriteFile(dir, PageName, func(w io.Writer) error {
		return sheet.Write(w, func(w io.Writer) error { return Text(w, b, dir, published) })
	})
	if err != nil {
		return fmt.Errorf("make the page of the sweep in %s: %w", dir, err)
	}
	return nil
}

// shown are the tables that have rows.
func (d *PageData) shown() (list []report.PageTable) {
	for _, t := range append([]report.PageTable{d.Runs, d.Missing}, d.Tables...) {
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	return list
}

// Text writes the sweep for people.
func Text(w io.Writer, b *Book, dir string, published []Published) error {
	d := NewPageData(b, published, "")
	var out strings.Builder
	fmt.Fprintf(&out, "%s  %s; seed %d\n  %s\n", strings.ToUpper(d.Verdict), d.Database, b.Seed, d.Reason)
	for _, n := range d.Notes {
		fmt.Fprintf(&out, "  %s: %s\n", report.Capital(n.Kind), n.Text)
	}
	for _, t := range d.shown() {
		out.WriteString("\n" + t.Title + "\n")
		_ = t.WriteText(&out, report.Options{}.Columns()) // a Builder returns no error
		if t.Note != "" {
			out.WriteString("  " + t.Note + "\n")
		}
	}
	if !b.Finished {
		fmt.Fprintf(&out, "\nThe sweep was interrupted: the same command with --out %s goes on.\n", dir)
	}
	fmt.Fprintf(&out, "\n%s/%s and %s; a folder with its own report for each run\n", dir, FileName, PageName)
	_, err := io.WriteString(w, out.String())
	return err
}

// Markdown writes the sweep as GitHub reads it.
func Markdown(w io.Writer, b *Book, published []Published) error {
	d := NewPageData(b, published, "")
	var out strings.Builder
	fmt.Fprintf(&out, "**%s** %s\n\n%s\n", strings.ToUpper(d.Verdict), d.Database, d.Reason)
	for _, t := range d.shown() {
		fmt.Fprintf(&out, "\n### %s\n\n%s", t.Title, t.Markdown)
		if t.Note != "" {
			out.WriteString("\n" + t.Note + "\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
