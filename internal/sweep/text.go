package sweep

import (
	"fmt"
	"io"
	"strings"

	"stroppy/internal/report"
)

// Text writes the sweep for people as its page shows it: a table with a row a step,
// ascending, and what the steps together report.
func Text(w io.Writer, b *Book, dir string) error {
	d, err := NewPageData(b, "")
	if err != nil {
		return err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s on %s, over %s; seed %d\n", b.Workload, b.Database, b.Over, b.Seed)
	_, short, _ := strings.Cut(d.Table.Note, linksNote)
	d.Table.Note = "Latencies (50 % to max) in milliseconds, from the intended start time." + short
	for _, t := range append([]report.PageTable{d.Table}, d.Coefficients...) {
		out.WriteString("\n")
		if t.Title != "" {
			out.WriteString(t.Title + "\n")
		}
		_ = t.WriteText(&out) // a Builder returns no error
		out.WriteString("\n" + t.Note + "\n")
	}
	for _, n := range d.Notes {
		fmt.Fprintf(&out, "\n%s: %s\n", report.Capital(n.Kind), n.Text)
	}
	for _, sentence := range d.Findings {
		fmt.Fprintf(&out, "\n%s\n", sentence)
	}
	if !b.Finished {
		fmt.Fprintf(&out, "\nThe sweep was interrupted: the same command with --out %s goes on.\n", dir)
	}
	fmt.Fprintf(&out, "\n%s/%s and %s; a folder with its own report for each step\n", dir, FileName, PageName)
	_, err = io.WriteString(w, out.String())
	return err
}
