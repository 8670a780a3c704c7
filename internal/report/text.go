package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// width is the number of columns that the text fills.
const width = 100

// Options say how the text is shown.
type Options struct {
	Color bool   // ANSI colours
	Dir   string // the run's directory, as the person named it
}

// Text writes the report of a run, the verdict first: what its page shows, but for the
// charts, the scenario, and the tables that are made for a paper.
func Text(w io.Writer, r *Result, o Options) error {
	t, d := &text{r: r, color: o.Color}, NewPageData(Input{Result: r})
	t.out.WriteString(t.status(r.Verdict, strings.ToUpper(r.Verdict)) + "  " +
		t.paint(bold, clean(strings.TrimSpace(r.Workload+" on "+databaseOf(r)))) + "\n")
	if d.Reason != "" {
		t.hang("", 2, d.Reason)
	}
	for _, n := range d.Notes {
		t.line(n.Kind, n.Text)
	}
	t.head("Run")
	var settings []string
	for _, s := range r.Settings {
		settings = append(settings, s.Name+" = "+s.Value)
	}
	for _, f := range append(d.Facts, Setting{"Settings", OrNotKnown(joined(settings...))}) {
		if !strings.HasPrefix(f.Value, NotKnown) {
			t.line(f.Name, f.Value)
		}
	}
	if r.Drive != nil {
		t.head("Measurements")
	}
	for _, f := range d.Figures {
		t.line(f.Name, joined(append([]string{f.Value + " " + f.Unit}, f.Below...)...))
	}
	t.tables("", d.Latency...)
	t.tables("Outcomes", d.Outcomes...)
	t.tables("", ownTables(r)...)
	t.faults()
	t.tables("", eventTables(r)...)
	t.checks()
	if r.Drive != nil {
		t.tables("Cost", d.Cost...)
	}
	t.files(o.Dir)
	_, err := io.WriteString(w, t.out.String())
	return err
}

type text struct {
	r     *Result
	out   strings.Builder
	color bool
}

// The colours are those of ECMA-48: bold, green, red, yellow, faint.
const (
	bold   = "\x1b[1m"
	green  = "\x1b[1;32m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	faint  = "\x1b[2m"
	plain  = "\x1b[0m"
)

func (t *text) paint(color, s string) string {
	if !t.color || s == "" {
		return s
	}
	return color + s + plain
}

func (t *text) status(status, shown string) string {
	return t.paint(cmp.Or(map[string]string{"valid": green, "invalid": red}[status], yellow), shown)
}

func (t *text) head(title string) { t.out.WriteString("\n" + t.paint(bold, clean(title)) + "\n") }

// line writes a name and its value, which is wrapped under itself.
func (t *text) line(name, value string) {
	const column = 18
	t.hang(fmt.Sprintf("  %-*s", column, name), column+2, value)
}

// tables writes tables, the first below a title where it has none of its own.
func (t *text) tables(title string, list ...PageTable) {
	for _, p := range list {
		t.head(cmp.Or(p.Title, title))
		_ = p.WriteText(&t.out)
		if p.Note != "" {
			t.hang("", 2, p.Note)
		}
	}
}

// hang writes lead and then detail, wrapped at the indent. Beside a wide lead the detail
// stands in a narrow column beyond the width.
func (t *text) hang(lead string, indent int, detail string) {
	parts := wrap(detail, max(width-indent, 20))
	if len(parts) == 0 {
		parts = []string{""}
	}
	for i, part := range parts {
		if i > 0 || lead == "" {
			lead = strings.Repeat(" ", indent)
		}
		t.out.WriteString(strings.TrimRight(lead+part, " ") + "\n")
	}
}

// faults writes a line a fault: when, what, and how the database took it.
func (t *text) faults() {
	if len(t.r.Faults) == 0 {
		return
	}
	t.head("Faults")
	const columns = "  %7s  %-28s%9s%9s  %8s%8s%8s%10s\n"
	fmt.Fprintf(&t.out, columns, "at", "", "outage", "back in", "tps", "", "", "in doubt")
	t.out.WriteString(strings.TrimRight(fmt.Sprintf(columns, "", "", "", "", "before", "during", "after", ""), " \n") + "\n")
	for _, f := range t.r.Faults {
		row := faultRow(f)
		c := row.Cells
		fmt.Fprintf(&t.out, columns, c[2], short(clean(f.Fault), 28), c[4], c[5], c[6], c[7], c[8], c[12])
		if c[9] != none {
			row.Below = append(row.Below, fmt.Sprintf("p99 in ms %s before, %s during, %s after", c[9], c[10], c[11]))
		}
		for _, note := range row.Below {
			const indent = 11
			for _, part := range wrap(note, width-indent) {
				t.out.WriteString(strings.Repeat(" ", indent) + t.paint(faint, part) + "\n")
			}
		}
	}
}

func (t *text) checks() {
	t.head("Checks")
	if len(t.r.Checks) == 0 {
		t.out.WriteString("  None was made.\n")
	}
	for _, c := range t.r.Checks {
		t.check(pageCheck(c))
	}
	if v := t.r.Violations; v != nil {
		more := ""
		if v.More > 0 {
			more = fmt.Sprintf(" and %s more that are not in it", group(v.More))
		}
		t.line("all witnesses", fmt.Sprintf("%s, %s%s; `stroppy history RUN_DIR ID` shows a transaction", v.File, Counted(v.Lines, "line"), more))
	}
}

func (t *text) check(c PageCheck) {
	weight, shown := "required", c.Status
	if !c.Required {
		weight = "for information"
	}
	switch shown {
	case "invalid":
		shown = "INVALID"
	case notApplicable: // whether it is required does not matter
		weight = ""
	}
	lead := fmt.Sprintf("  %-17s", clean(c.Name))
	if weight == "" {
		lead += t.paint(faint, fmt.Sprintf("%-26s", shown))
	} else {
		lead += t.status(c.Status, fmt.Sprintf("%-9s", shown)) + t.paint(faint, fmt.Sprintf("%-17s", weight))
	}
	if c.Status != "invalid" {
		t.hang(lead, 45, c.Detail)
		return
	}
	t.out.WriteString(strings.TrimRight(lead, " ") + "\n")
	for _, f := range c.Findings {
		t.hang("", 6, f.Text)
		for _, e := range f.Edges {
			number, text, _ := strings.Cut(e, " ")
			t.hang(fmt.Sprintf("%10s ", number), 11, text)
		}
		note := f.Note
		if f.File != "" {
			note += " Drawing: " + f.File
		}
		if note != "" {
			t.hang("", 8, note)
		}
	}
	for _, line := range labelled("transactions: ", some(c.Witness, 20)) {
		t.hang("", 6, line)
	}
}

func (t *text) files(dir string) {
	t.head("Files")
	if dir != "" {
		t.line("directory", dir)
	}
	if t.r.Command != "" {
		t.out.WriteString("  " + fmt.Sprintf("%-18s", "repeat with") + clean(t.r.Command) + "\n")
	}
}
