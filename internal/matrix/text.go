package matrix

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"stroppy/internal/schedule"
)

// Mark is the cell in one word: ✓ it was looked for and not seen, seen, some of its
// variants were seen, n/a no schedule applies and no load looked for it, ? not decided.
func (c *Cell) Mark() string {
	switch {
	case c.Some():
		return "some"
	case c.Seen():
		return "seen"
	case c.Schedule == schedule.Undecided:
		return "?"
	case looked(c):
		return "✓"
	}
	return "n/a"
}

// Text writes the matrix for a terminal.
func (m *Matrix) Text(w io.Writer) error {
	var t strings.Builder
	fmt.Fprintf(&t, "%s: %s\n\n", strings.ToUpper(m.Verdict), m.Reason)
	fmt.Fprintf(&t, "%s %s\n\n", cmp.Or(m.Database, "database not known"), m.Version)
	m.grid(&t)
	t.WriteString("  ✓ looked for and not seen   seen   some: seen in some variants   n/a: not applicable   ? not decided   * the default\n")
	if m.NoSchedules != "" {
		fmt.Fprintf(&t, "  No schedule applies: %s.\n", m.NoSchedules)
	}
	for i := range m.Levels {
		m.Levels[i].text(&t)
	}
	fmt.Fprintf(&t, "\nrepeat with       %s\n", m.Command)
	_, err := io.WriteString(w, t.String())
	return err
}

// title is the name, with a star where it is the default.
func (l *Level) title() string {
	if l.Default {
		return l.Name + " *"
	}
	return l.Name
}

// grid writes the table of marks.
func (m *Matrix) grid(t *strings.Builder) {
	first := len("level")
	for i := range m.Levels {
		first = max(first, len(m.Levels[i].title()))
	}
	row := func(name string, cell func(a schedule.Anomaly) string, last string) {
		fmt.Fprintf(t, "  %-*s", first, name)
		for _, a := range schedule.Anomalies() {
			text := cell(a)
			t.WriteString("  " + text + strings.Repeat(" ", max(len(a.String()), len("some"))-utf8.RuneCountInString(text)))
		}
		fmt.Fprintf(t, "  %s\n", last)
	}
	row("level", schedule.Anomaly.String, "amounts to")
	for i := range m.Levels {
		l := &m.Levels[i]
		row(l.title(), func(a schedule.Anomaly) string { return l.Anomalies[a.String()].Mark() }, l.AmountsTo)
	}
}

// besides says what a level prevents that the one it amounts to allows.
func (l *Level) besides() string {
	if len(l.Besides) == 0 {
		return ""
	}
	return ", and showed no " + strings.Join(l.Besides, ", no ")
}

// text writes one level in full.
func (l *Level) text(t *strings.Builder) {
	fmt.Fprintf(t, "\n%s: claims %s; amounts to %s%s\n", l.title(), l.Claims, l.AmountsTo, l.besides())
	for _, a := range schedule.Anomalies() {
		c := l.Anomalies[a.String()]
		if !looked(c) && c.Schedule != schedule.Undecided {
			continue
		}
		fmt.Fprintf(t, "  %-11s %-5s %s\n", a, c.Mark(), c.Sentence())
		for _, witness := range c.Witnesses {
			fmt.Fprintf(t, "  %-11s %-5s %s\n", "", "", witness)
		}
	}
	for _, r := range l.Loads {
		fmt.Fprintf(t, "  %-11s %s: %s\n", "load", r.Verdict, r.Command)
	}
}

// Sentence says by what the anomaly was prevented, as far as it was, and what load says.
func (c *Cell) Sentence() string {
	var parts []string
	switch c.Schedule {
	case schedule.Prevented:
		parts = append(parts, c.How)
	case schedule.Seen:
		if c.Some() {
			parts = append(parts, "prevented in some variants: "+c.How)
		} else {
			parts = append(parts, "in the schedule")
		}
	case schedule.Undecided:
		parts = append(parts, "not decided: "+c.How)
	}
	switch c.Load {
	case LoadNotSeen:
		parts = append(parts, fmt.Sprintf("not seen in %d transactions under load", c.Transactions))
	case LoadSeen:
		parts = append(parts, fmt.Sprintf("seen under load in %d transactions", c.Transactions))
	}
	return strings.Join(parts, "; ")
}
