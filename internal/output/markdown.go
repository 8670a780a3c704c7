package output

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"stroppy/internal/report"
)

// writeMarkdown writes what runs came to as GitHub reads it: of one its verdict, measurements
// and checks; of several the answer, the ratios and a table of the sides.
func writeMarkdown(w io.Writer, runs []Run, compared *report.ComparisonData) error {
	var out strings.Builder
	if compared == nil {
		markdownRun(&out, runs[0].Result)
	} else {
		markdownComparison(&out, compared)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func markdownRun(out *strings.Builder, r *report.Result) {
	d := report.NewPageData(report.Input{Result: r})
	fmt.Fprintf(out, "**%s** %s on %s\n\n%s\n", strings.ToUpper(cmp.Or(r.Verdict, "unknown")), cell(d.Workload), cell(d.Database), cell(d.Reason))
	measured := report.NewPageTable("", "", []int{0, 1}, "measurement", "value")
	for _, f := range d.Figures {
		measured.Add(f.Name, strings.Join(append([]string{strings.TrimSpace(f.Value + " " + f.Unit)}, f.Below...), " · "))
	}
	table(out, measured)
	checks := report.NewPageTable("", "", []int{0, 1, 2}, "check", "status", "detail")
	for _, c := range append(d.Failed, d.Checks...) {
		first, _, _ := strings.Cut(c.Detail, "\n")
		checks.Add(c.Name, c.Shown, first)
	}
	table(out, checks)
	objectives := report.NewPageTable("", "", []int{0, 1, 2}, "objective", "status", "detail")
	for _, o := range d.Objectives {
		first, _, _ := strings.Cut(o.Detail, "\n")
		objectives.Add(o.Name, o.Status, first)
	}
	table(out, objectives)
}

func markdownComparison(out *strings.Builder, c *report.ComparisonData) {
	for _, answer := range c.Answer {
		fmt.Fprintf(out, "**%s**\n\n", cell(answer))
	}
	for _, side := range c.Facts {
		fmt.Fprintf(out, "- %s: %s\n", side.Name, cell(side.Value))
	}
	ratios := report.NewPageTable("", "", []int{0, 1, 3}, "", "measurement", "ratio (95 % interval)", "difference")
	for _, r := range c.Ratios {
		ratios.Add(r.Against, r.Name, r.Text, r.Difference)
	}
	table(out, ratios)
	table(out, c.Table)
}

// table writes a table with a blank line before it; nothing of one without rows.
func table(out *strings.Builder, t report.PageTable) {
	if len(t.Rows) > 0 {
		out.WriteString("\n" + t.AsMarkdown())
	}
}

// cell is a text on one line, in which nothing is Markdown of its own.
func cell(text string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "|", `\|`, "`", "\\`").Replace(line(text))
}
