package matrix

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/schedule"
)

// Markdown writes the matrix as a section of a page: the table, and below it what was
// seen, step by step.
func (m *Matrix) Markdown(w io.Writer) error {
	var t strings.Builder
	fmt.Fprintf(&t, "## %s %s\n\n", cmp.Or(m.Database, "A database that is not known"), m.Version)
	fmt.Fprintf(&t, "%s: %s\n\n", capital(m.Verdict), m.Reason)
	fmt.Fprintf(&t, "```\n%s\n```\n\n", m.Command)
	if m.NoSchedules != "" {
		fmt.Fprintf(&t, "No schedule applies: %s.\n\n", m.NoSchedules)
	}
	t.WriteString("| level | claims | upper bound | transactions | schedules |")
	for _, a := range schedule.Anomalies() {
		fmt.Fprintf(&t, " %s |", a)
	}
	t.WriteString("\n|---|---|---|--:|--:|" + strings.Repeat(":-:|", len(schedule.Anomalies())) + "\n")
	for i := range m.Levels {
		l := &m.Levels[i]
		name := l.Name
		if l.Default {
			name += " ★"
		}
		fmt.Fprintf(&t, "| %s | %s | %s | %s | %d |",
			cell(name), l.Claims.Short(), l.Bound(), report.Group(l.Transactions), l.Schedules)
		for _, a := range schedule.Anomalies() {
			fmt.Fprintf(&t, " %s |", l.Anomalies[a.String()].Label())
		}
		t.WriteString("\n")
	}
	fmt.Fprintf(&t, "\n%s; ★ the default.\n", Legend)
	for i := range m.Levels {
		m.Levels[i].markdown(&t)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// markdown writes one level: how each anomaly was prevented, or what was seen of it.
func (l *Level) markdown(t *strings.Builder) {
	fmt.Fprintf(t, "\n### %s\n\nClaims %s (%s). %s%s\n\n",
		l.Name, l.Claims.Literature(), cmp.Or(l.Source, "no source"), l.Summary, l.Unseen())
	t.WriteString("| anomaly | variant | outcome | how, or what was seen |\n|---|---|---|---|\n")
	for _, a := range schedule.Anomalies() {
		c := l.Anomalies[a.String()]
		for _, o := range c.Variants {
			if o.State != schedule.NotApplicable {
				fmt.Fprintf(t, "| %s | %s | %s | %s |\n", a, cell(o.Variant), o.State, cell(o.How+o.Witness))
			}
		}
		switch c.Load {
		case LoadSeen:
			fmt.Fprintf(t, "| %s | under load | seen | %s |\n", a, cell(c.Witnesses[len(c.Witnesses)-1]))
		case LoadNotSeen:
			fmt.Fprintf(t, "| %s | under load | not seen | in %s |\n", a, report.Counted(c.Transactions, "transaction"))
		}
	}
	for _, r := range l.Loads {
		fmt.Fprintf(t, "\nLoad: `%s`\n", r.Command)
	}
}

// cell is a text that cannot end a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
