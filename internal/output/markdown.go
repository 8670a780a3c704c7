package output

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/sweep"
)

// writeMarkdown writes what runs came to as GitHub reads it, the verdict first: of one its
// measurements and checks; of several what they are together.
func writeMarkdown(w io.Writer, s *Set) error {
	var out strings.Builder
	if s.Whole == nil {
		markdownRun(&out, s.Runs[0].Result)
	} else {
		s.Whole.markdown(&out)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func markdownRun(out *strings.Builder, r *report.Result) {
	d := report.NewPageData(report.Input{Result: r})
	fmt.Fprintf(out, "**%s** %s on %s\n\n%s\n", strings.ToUpper(cmp.Or(r.Verdict, "unknown")), cell(d.Workload), cell(d.Database), cell(d.Reason))
	if d.Cause != nil {
		fmt.Fprintf(out, "\n%s\n\nWhat to do: %s\n", cell(d.Cause.Whose), cell(d.Cause.Cure))
	}
	measured := report.NewPageTable("", "", []int{0, 1}, "measurement", "value")
	for _, f := range d.Figures {
		measured.Add(f.Name, strings.Join(append([]string{strings.TrimSpace(f.Value + " " + f.Unit)}, f.Below...), " · "))
	}
	table(out, measured)
	checks := report.NewPageTable("", "", []int{0, 1, 2}, "check", "status", "detail")
	for _, c := range append(d.Failed, d.Checks...) {
		checks.Add(c.Name, c.Shown, report.FirstLine(c.Detail))
	}
	table(out, checks)
	objectives := report.NewPageTable("", "", []int{0, 1, 2}, "objective", "status", "detail")
	for _, o := range d.Objectives {
		objectives.Add(o.Name, o.Status, report.FirstLine(o.Detail))
	}
	table(out, objectives)
}

// markdownHead writes the verdict and what was run, and why it is so.
func markdownHead(out *strings.Builder, verdict, objectives, what, reason string) {
	verdict = strings.ToUpper(cmp.Or(verdict, "unknown"))
	switch objectives {
	case report.ObjectiveMissed:
		verdict += ", OBJECTIVES MISSED"
	case report.ObjectiveUnknown:
		verdict += ", OBJECTIVES NOT DECIDED"
	}
	fmt.Fprintf(out, "**%s** %s\n\n%s\n", verdict, cell(what), cell(reason))
}

func markdownNotes(out *strings.Builder, notes []report.PageNote) {
	if len(notes) > 0 {
		out.WriteString("\n")
	}
	for _, n := range notes {
		fmt.Fprintf(out, "- %s: %s\n", report.Capital(n.Kind), cell(n.Text))
	}
}

// markdownSweep writes a sweep: what is wrong with steps, then a table with a row a step, and
// what they show together.
func markdownSweep(out *strings.Builder, b *sweep.Book, d *sweep.PageData) {
	markdownHead(out, d.Verdict, d.Objectives, fmt.Sprintf("%s on %s, over %s; seed %d", b.Workload, report.OrNotKnown(b.Database), b.Over, b.Seed), d.Reason)
	if len(d.Failed) > 0 {
		out.WriteString("\nWhat is wrong:\n\n")
	}
	for _, f := range d.Failed {
		sentences := f.Sentences()
		fmt.Fprintf(out, "- %s: %s\n", cell(sentences[0]), cell(strings.Join(sentences[1:], " ")))
	}
	if d.FailedMore != "" {
		fmt.Fprintf(out, "- %s\n", cell(d.FailedMore))
	}
	markdownNotes(out, d.Notes)
	d.Table.Note = d.TableNote()
	for _, t := range append([]report.PageTable{d.Table}, d.Coefficients...) {
		if len(t.Rows) == 0 {
			continue
		}
		if t.Title != "" {
			fmt.Fprintf(out, "\n%s:\n", cell(t.Title))
		}
		table(out, t)
		if t.Note != "" {
			fmt.Fprintf(out, "\n%s\n", cell(t.Note))
		}
	}
	for _, sentence := range d.Findings {
		fmt.Fprintf(out, "\n%s\n", cell(sentence))
	}
	markdownCommand(out, b.Command)
}

// markdownCommand writes what repeats the measurements; nothing where it is not known.
func markdownCommand(out *strings.Builder, command string) {
	if command != "" {
		fmt.Fprintf(out, "\n```\n%s\n```\n", line(command))
	}
}

// mostWrong is how many invalid runs of a comparison are shown with what was found in them.
const mostWrong = 5

// markdownWrong writes what was found first in the invalid ones of several runs.
func markdownWrong(out *strings.Builder, runs []Run) {
	wrong := uint64(0)
	for _, r := range runs {
		found := r.Result.Findings(0)
		switch {
		case r.Result.Verdict != "invalid" || len(found) == 0:
			continue
		case wrong >= mostWrong:
			wrong++
			continue
		case wrong == 0:
			out.WriteString("\nWhat is wrong:\n\n")
		}
		wrong++
		fmt.Fprintf(out, "- %s: %s: %s\n", cell(filepath.Base(r.Dir)), cell(found[0].Check), cell(found[0].Detail))
	}
	if wrong > mostWrong {
		fmt.Fprintf(out, "- %s more found violations, too.\n", report.Counted(wrong-mostWrong, "run"))
	}
}

func markdownComparison(out *strings.Builder, runs []Run, c *report.ComparisonData) {
	markdownHead(out, c.Verdict, "", fmt.Sprintf("comparison of %s on %s", c.Workload, c.Database), c.Reason)
	markdownWrong(out, runs)
	markdownNotes(out, c.Notes)
	out.WriteString("\n")
	for _, answer := range c.Answer {
		fmt.Fprintf(out, "**%s**\n\n", cell(answer))
	}
	for _, side := range c.Facts {
		fmt.Fprintf(out, "- %s: %s\n", side.Name, cell(side.Value))
	}
	differs := report.NewPageTable("", "", []int{0, 1}, "not the same on all sides", "on each side, in order")
	for _, l := range c.Differs {
		differs.Add(l.Name, l.Value)
	}
	table(out, differs)
	ratios := report.NewPageTable("", "", []int{0, 1, 3}, "", "measurement", "ratio (95 % interval)", "difference")
	for _, r := range c.Ratios {
		ratios.Add(r.Against, r.Name, r.Text, r.Difference)
	}
	table(out, ratios)
	table(out, c.Table)
	markdownCommand(out, c.Command)
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
