package matrix

import (
	"cmp"
	"fmt"
	"io"
	"strings"

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
	t.WriteString("| level | claims | amounts to |")
	for _, a := range schedule.Anomalies() {
		fmt.Fprintf(&t, " %s |", a)
	}
	t.WriteString("\n|---|---|---|" + strings.Repeat(":-:|", len(schedule.Anomalies())) + "\n")
	for i := range m.Levels {
		l := &m.Levels[i]
		name := l.Name
		if l.Default {
			name += " ★"
		}
		fmt.Fprintf(&t, "| %s | %s | %s |", cell(name), l.Claims, cell(l.AmountsTo))
		for _, a := range schedule.Anomalies() {
			fmt.Fprintf(&t, " %s |", l.Anomalies[a.String()].Mark())
		}
		t.WriteString("\n")
	}
	for i := range m.Levels {
		m.Levels[i].markdown(&t)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// markdown writes one level: how each anomaly was prevented, or what was seen of it.
func (l *Level) markdown(t *strings.Builder) {
	fmt.Fprintf(t, "\n### %s\n\nClaims %s (%s). Amounts to %s%s.\n\n", l.Name, l.Claims, cmp.Or(l.Source, "no source"), l.AmountsTo, l.besides())
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
			fmt.Fprintf(t, "| %s | under load | not seen | in %d transactions |\n", a, c.Transactions)
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
