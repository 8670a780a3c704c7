package sweep

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"stroppy/internal/report"
)

// Text writes the sweep in the directory of the options for people as its page shows it: the
// verdict and what is wrong, then a table with a row a step, ascending, and what the steps
// together report.
func Text(w io.Writer, b *Book, o report.Options) error {
	dir := cmp.Or(o.Quoted, o.Dir)
	d, err := NewPageData(b, dir, "")
	if err != nil {
		return err
	}
	var out strings.Builder
	hang := func(lead, text string) { out.WriteString(report.Hang(lead, text, o.Columns())) }
	head := fmt.Sprintf("%s on %s, over %s; seed %d", b.Workload, b.Database, b.Over, b.Seed)
	out.WriteString(report.Headline(d.Verdict, d.Objectives, head, o.Color, o.Columns()))
	hang("  ", d.Reason)
	d.failedText(hang)
	if len(d.Notes) > 0 {
		out.WriteString("\n")
	}
	for _, n := range d.Notes {
		hang("  "+report.Capital(n.Kind)+": ", n.Text)
	}
	d.Table.Note = d.TableNote()
	if o.Width > 0 {
		d.Table = narrowed(d.Table, o.Columns())
	}
	for _, t := range append([]report.PageTable{d.Table}, d.Coefficients...) {
		out.WriteString("\n")
		if t.Title != "" {
			hang("", t.Title)
		}
		_ = t.WriteText(&out, o.Columns()) // a Builder returns no error
		out.WriteString("\n")
		hang("", t.Note)
	}
	for _, sentence := range d.Findings {
		out.WriteString("\n")
		hang("", sentence)
	}
	out.WriteString("\n")
	if !b.Finished {
		hang("", fmt.Sprintf("The sweep was interrupted: the same command with --out %s goes on.", dir))
		out.WriteString("\n")
	}
	hang("", fmt.Sprintf("%s/%s and %s; a folder with its own report for each step", o.Dir, FileName, PageName))
	_, err = io.WriteString(w, out.String())
	return err
}

// TableNote is the note of the table of the steps where its rows lead to no page.
func (d *PageData) TableNote() string {
	_, short, _ := strings.Cut(d.Table.Note, linksNote)
	return "Latencies (50 % to max) in milliseconds, from the intended start time." + short
}

// narrowed leaves out columns that a terminal has no room for, those first that are asked for
// least, and says so.
func narrowed(t report.PageTable, columns int) report.PageTable {
	var out []string
	for _, name := range []string{"best second", "median", "50 %", "max", "99.9 %"} {
		at := slices.Index(t.Columns, name)
		if at < 0 || t.Fits(columns) {
			continue
		}
		out = append(out, name)
		t.Columns = slices.Delete(slices.Clone(t.Columns), at, at+1)
		t.Rows = slices.Clone(t.Rows)
		for i := range t.Rows {
			t.Rows[i].Cells = slices.Delete(slices.Clone(t.Rows[i].Cells), at, at+1)
		}
	}
	if len(out) > 0 {
		t.Note += " Left out, for want of room: " + strings.Join(out, ", ") + "."
	}
	return t
}

// failedText writes what is wrong with the invalid steps.
func (d *PageData) failedText(hang func(lead, text string)) {
	if len(d.Failed) == 0 {
		return
	}
	const inner = "      "
	hang("", "\nWhat is wrong")
	for _, f := range d.Failed {
		sentences := f.Sentences()
		hang("  ", sentences[0])
		for _, text := range sentences[1:] {
			hang(inner, text)
		}
		if f.Command != "" {
			hang(inner, "All of it: `"+f.Command+"`")
		}
	}
	if d.FailedMore != "" {
		hang("  ", d.FailedMore)
	}
}

// Sentences say which step it is and which check failed, and what was found.
func (f *PageFailed) Sentences() []string {
	list := []string{strings.TrimSuffix(f.Step+": "+f.Check, ": ")}
	for _, text := range []string{f.Text, f.More, f.transactions()} {
		if text != "" {
			list = append(list, text)
		}
	}
	return list
}

// transactions names those that show a violation; empty where none is known.
func (f *PageFailed) transactions() string {
	if len(f.Witness) == 0 {
		return ""
	}
	return "Transactions (" + f.WitnessOf + "): " + strings.Join(f.Witness, ", ")
}
