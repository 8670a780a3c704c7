package report

import (
	"fmt"
	"strings"
)

// Markdown returns the document as GitHub reads it.
func (d *Document) Markdown() string {
	out := &strings.Builder{}
	verdict := strings.ToUpper(d.Verdict) + objectivesBeside[d.Objectives]
	fmt.Fprintf(out, "**%s** %s\n\n%s\n", verdict, inline(d.Subject), inline(d.Reason))
	if c := d.Cause; c != nil {
		fmt.Fprintf(out, "\n%s\n\n%s%s\n", inline(c.Whose), cureLead, inline(c.Cure))
	}
	for _, answer := range d.Answer {
		fmt.Fprintf(out, "\n**%s**\n", inline(answer))
	}
	if len(d.Notes) > 0 {
		out.WriteString("\n")
	}
	for _, n := range d.Notes {
		fmt.Fprintf(out, "- %s: %s\n", Capital(n.Kind), inline(n.Text))
	}
	for _, s := range d.sectionsIn(InMarkdown) {
		s.markdown(out)
	}
	return out.String()
}

func (s *Section) markdown(out *strings.Builder) {
	if s.Title != "" {
		fmt.Fprintf(out, "\n### %s\n", inline(s.Title))
	}
	checks := NewTable("", "", []int{0, 1, 2}, "name", "status", "detail")
	for _, c := range s.Checks {
		checks.Add(c.Name, c.Shown, FirstLine(c.Detail))
	}
	figures := NewTable("", "", []int{0, 1}, "measurement", "value")
	for i := range s.Figures {
		f := s.Figures[i].fact()
		figures.Add(f.Name, f.Value)
	}
	for _, t := range []DataTable{checks, figures} {
		if len(t.Rows) > 0 {
			out.WriteString("\n" + t.AsMarkdown())
		}
	}
	for _, text := range s.Text {
		fmt.Fprintf(out, "\n%s\n", inline(text))
	}
	if len(s.Facts) > 0 {
		out.WriteString("\n")
	}
	for _, f := range s.Facts {
		fmt.Fprintf(out, "- %s: %s\n", inline(f.Name), inline(f.Value))
	}
	for i := range s.Tables {
		t := &s.Tables[i]
		if t.Title != "" {
			fmt.Fprintf(out, "\n#### %s\n", inline(t.Title))
		}
		out.WriteString("\n" + t.AsMarkdown())
		if t.Note != "" {
			fmt.Fprintf(out, "\n%s\n", inline(t.Note))
		}
	}
	if s.Note != "" {
		fmt.Fprintf(out, "\n%s\n", inline(s.Note))
	}
	if s.Command != "" {
		fmt.Fprintf(out, "\n```\n%s\n```\n", oneLine(s.Command))
	}
}

// oneLine returns a text without line breaks and control characters.
func oneLine(text string) string { return strings.Join(strings.Fields(clean(text)), " ") }

// inline returns a text on one line in which nothing is Markdown.
func inline(text string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "|", `\|`, "`", "\\`").Replace(oneLine(text))
}
