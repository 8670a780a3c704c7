package matrix

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/isolation"
	"stroppy/internal/report"
	"stroppy/internal/schedule"
)

// PageName is the page's name in the directory of a matrix.
const PageName = "isolation.html"

// Chart is the data of the table of a page, whose cells lead to the evidence.
type Chart struct {
	Anomalies   []report.Setting `json:"anomalies"` // the columns, with what each means
	Levels      []ChartLevel     `json:"levels"`
	NoSchedules string           `json:"no_schedules"`
	Legend      string           `json:"legend"`
}

// ChartLevel is a row, and a section of its own. It has the keys of Level, some of them in words.
type ChartLevel struct {
	*Level
	Claims      string      `json:"claims"`
	ClaimsShort string      `json:"claims_short"` // without its meaning in words
	Bound       string      `json:"upper_bound"`
	Summary     string      `json:"summary"`
	Anomalies   []ChartCell `json:"anomalies"` // for each column
}

// ChartCell is one anomaly at one level.
type ChartCell struct {
	*Cell
	Mark     string `json:"mark"`
	Sentence string `json:"sentence"`
}

// Document returns the document of the matrix.
func (m *Matrix) Document() *report.Document {
	d := report.NewDocument("isolation levels", cmp.Or(m.Database, "database not known")+" "+m.Version, m.Started, m.Stroppy)
	d.Subject = "isolation levels of " + d.Database
	d.Judge(m.Verdict, m.Reason, "isolation levels of "+report.OrNotKnown(m.Database))
	none := ""
	if m.NoSchedules != "" {
		none = fmt.Sprintf("No schedule applies: %s.", m.NoSchedules)
	}
	d.Add(report.Section{ID: "matrix", Title: "Levels and anomalies", Chart: &report.Chart{Kind: "isolation", Data: m.chart()}, In: report.InPage})
	d.Add(report.Section{ID: "grid", Title: "Levels and anomalies", Tables: []report.DataTable{m.grid()}, Note: none, In: report.InText | report.InMarkdown})
	for i := range m.Levels {
		l := &m.Levels[i]
		source := ""
		if l.Source != "" {
			source = " (" + l.Source + ")"
		}
		claims := fmt.Sprintf("Claims %s%s. %s%s", l.Claims.Literature(), source, l.Summary, l.Unseen())
		d.Add(report.Section{ID: "level", Title: l.title(), Text: []string{claims}, Tables: []report.DataTable{l.lines()}, In: report.InText})
		d.Add(report.Section{ID: "level", Title: l.title(), Text: []string{claims}, Tables: []report.DataTable{l.variants()}, In: report.InMarkdown})
	}
	d.Add(report.Section{ID: "again", Title: "To make it again", Command: m.Command})
	return d
}

func (m *Matrix) chart() *Chart {
	c := &Chart{Levels: []ChartLevel{}, NoSchedules: m.NoSchedules, Legend: Legend}
	for _, a := range schedule.Anomalies() {
		c.Anomalies = append(c.Anomalies, report.Setting{Name: a.String(), Value: a.Text()})
	}
	for i := range m.Levels {
		l := &m.Levels[i]
		p := ChartLevel{Level: l, Claims: l.Claims.Literature(), ClaimsShort: l.Claims.Short(), Bound: l.Bound(), Summary: l.Summary + l.Unseen()}
		for _, a := range schedule.Anomalies() {
			cell := l.Anomalies[a.String()]
			p.Anomalies = append(p.Anomalies, ChartCell{cell, cell.Mark(), cell.Sentence()})
		}
		c.Levels = append(c.Levels, p)
	}
	return c
}

// grid returns the table of levels and anomalies.
func (m *Matrix) grid() report.DataTable {
	t := report.NewTable("", Legend+"; ★ the default. Upper bound: the strongest level of which no violation was seen in so many "+
		"transactions and schedules; the level may give less.", nil, "level", "claims", "upper bound", "transactions", "schedules")
	t.Text = []int{0, 1, 2}
	for i, a := range schedule.Anomalies() {
		t.Columns, t.Text = append(t.Columns, a.String()), append(t.Text, 5+i)
	}
	for i := range m.Levels {
		l := &m.Levels[i]
		cells := []string{l.title(), l.Claims.Short(), l.Bound(), report.Group(l.Transactions), strconv.Itoa(l.Schedules)}
		for _, a := range schedule.Anomalies() {
			cells = append(cells, l.Anomalies[a.String()].Label())
		}
		t.Add(cells...)
	}
	return t
}

// lines returns what was seen of each anomaly, in short.
func (l *Level) lines() report.DataTable {
	t := report.NewTable("", "", []int{0, 1, 2}, "anomaly", "", "evidence")
	for _, a := range schedule.Anomalies() {
		c := l.Anomalies[a.String()]
		if !looked(c) && c.Schedule != schedule.Undecided {
			continue
		}
		t.Rows = append(t.Rows, report.Row{Cells: []string{a.String(), c.Label(), c.Sentence()}, Below: c.Shown()})
	}
	for _, r := range l.Loads {
		t.Add("load", r.Verdict, r.Command)
	}
	return t
}

// variants returns how each variant of each anomaly was prevented, or what was seen of it.
func (l *Level) variants() report.DataTable {
	t := report.NewTable("", "", []int{0, 1, 2, 3}, "anomaly", "variant", "outcome", "how, or what was seen")
	for _, a := range schedule.Anomalies() {
		c := l.Anomalies[a.String()]
		for _, o := range c.Variants {
			if o.State != schedule.NotApplicable {
				t.Add(a.String(), o.Variant, o.State.String(), o.How+o.Witness)
			}
		}
		switch c.Load {
		case LoadSeen:
			t.Add(a.String(), "under load", "seen", c.Witnesses[len(c.Witnesses)-1])
		case LoadNotSeen:
			t.Add(a.String(), "under load", "not seen", "in "+report.Counted(c.Transactions, "transaction"))
		}
	}
	for _, r := range l.Loads {
		t.Note += "Load: " + r.Command + " "
	}
	return t
}

// Page writes the matrix as one HTML file that needs nothing else.
func (m *Matrix) Page(w io.Writer) error { return m.Document().WritePage(w) }

// Text writes the matrix for a terminal that is as wide as its lines.
func (m *Matrix) Text(w io.Writer) error {
	return m.Document().WriteText(w, report.Options{Width: report.Unwrapped, Detail: report.Full})
}

// Markdown writes the matrix as a section of a page.
func (m *Matrix) Markdown(w io.Writer) error {
	_, err := io.WriteString(w, m.Document().Markdown())
	return err
}

// Mark returns the cell in one word: ✓ (looked for and not seen), seen, some (seen in some variants), n/a
// (nothing looked for it), or ? (not decided).
func (c *Cell) Mark() string {
	switch {
	case c.Some():
		return "some"
	case c.Seen():
		return "seen"
	case c.Schedule == schedule.Undecided:
		return "?"
	case looked(c):
		return notSeen
	}
	return "n/a"
}

const notSeen = "✓"

// Label is Mark in brackets if the anomaly was not seen and the load was short.
func (c *Cell) Label() string {
	if c.Few {
		return "(" + notSeen + ")"
	}
	return c.Mark()
}

// Legend explains Label.
const Legend = "✓ looked for and not seen; (✓) the same, in fewer than 100,000 transactions under load or in none; " +
	"seen; some: seen in some variants; n/a: nothing looked for it; ? not decided"

// title returns the name, with a star if the level is the default.
func (l *Level) title() string {
	if l.Default {
		return l.Name + " ★"
	}
	return l.Name
}

// Bound returns the upper bound by its names in the literature.
func (l *Level) Bound() string {
	if len(l.UpperBound) == 0 {
		return l.AmountsTo
	}
	return joined(l.UpperBound, isolation.Level.Short)
}

// Unseen returns a sentence about what was not seen although the upper bound allows a form of it;
// empty if there is nothing.
func (l *Level) Unseen() string {
	if len(l.Besides) == 0 {
		return ""
	}
	return " Not seen either, although the upper bound allows a form of it: " + strings.Join(l.Besides, ", ") + "."
}

// mostWitnesses is how many variants the text shows of an anomaly.
const mostWitnesses = 5

// Shown returns the first witnesses, and the witnesses of load. JSON, Markdown and the page have all.
func (c *Cell) Shown() []string {
	variants := slices.DeleteFunc(slices.Clone(c.Witnesses), func(w string) bool {
		return strings.HasPrefix(w, underLoad)
	})
	more := len(variants) - mostWitnesses
	if more <= 0 {
		return c.Witnesses
	}
	shown := append(slices.Clone(variants[:mostWitnesses]),
		fmt.Sprintf("and %s: see --json or --format markdown", report.Counted(uint64(more), "more variant")))
	return append(shown, c.Witnesses[len(variants):]...)
}

// Sentence describes how the anomaly was prevented, and the observations under load.
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
		parts = append(parts, fmt.Sprintf("not seen in %s under load", report.Counted(c.Transactions, "transaction")))
	case LoadSeen:
		parts = append(parts, fmt.Sprintf("seen under load in %s", report.Counted(c.Transactions, "transaction")))
	}
	return strings.Join(parts, "; ")
}
