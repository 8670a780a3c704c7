package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// usualWidth is the number of columns that a text fills which no terminal shows, and
// leastWidth that of the narrowest terminal that it is made for.
const usualWidth, leastWidth = 100, 60

// Detail is how much of a report the text has.
type Detail uint8

const (
	Short   Detail = iota // what fits one screen, of a run that is valid
	Full                  // all of it
	Verdict               // the verdict and its reason alone
)

// Options say how the text is shown.
type Options struct {
	Color  bool   // ANSI colours
	Dir    string // the run's directory, as the person named it
	Quoted string // Dir as a shell takes it
	Detail Detail
	Width  int // of the terminal, in columns; 0: there is none
}

// Columns is how wide the text is made.
func (o Options) Columns() int { return max(cmp.Or(o.Width, usualWidth), leastWidth) }

// Text writes the report of a run, the verdict first and what is wrong directly below it.
// In full it has what the page shows, but for the charts, the scenario, and the tables
// that are made for a paper.
func Text(w io.Writer, r *Result, o Options) error {
	return NewPageData(Input{Result: r}).text(w, r, o)
}

// text writes the page's data, and what a text has beside them of the result.
func (d *PageData) text(w io.Writer, r *Result, o Options) error {
	t := &text{r: r, dir: cmp.Or(o.Quoted, o.Dir, "RUN_DIR"), color: o.Color, width: o.Columns(), live: d.Live}
	t.headline(d.Verdict)
	if d.Reason != "" {
		t.hang("", 2, d.Reason)
	}
	if d.Cause != nil {
		t.hang("", 2, d.Cause.Whose)
		t.hang("", 2, "What to do: "+d.Cause.Cure)
	}
	switch o.Detail {
	case Verdict:
	case Full:
		t.full(d, o.Dir)
	default:
		t.short(d, o.Dir)
	}
	_, err := io.WriteString(w, t.out.String())
	return err
}

func (t *text) headline(verdict string) {
	t.verdict(verdict, t.r.ObjectivesStatus(), strings.TrimSpace(t.r.Workload+" on "+judgedOf(t.r)))
}

// Headline is the first line of a report on what, with its end: the verdict, and behind it what
// came of the objectives where they are not met. It is wrapped at a width, in columns.
func Headline(verdict, objectives, what string, color bool, width int) string {
	t := &text{color: color, width: width}
	t.verdict(verdict, objectives, what)
	return t.out.String()
}

func (t *text) verdict(verdict, objectives, what string) {
	word, missed := strings.ToUpper(clean(verdict)), map[string]string{
		ObjectiveMissed: ", OBJECTIVES MISSED", ObjectiveUnknown: ", OBJECTIVES UNKNOWN",
	}[objectives]
	t.out.WriteString(t.status(verdict, word) + t.paint(yellow, missed) + "  ")
	indent := len(word + missed + "  ")
	for i, part := range wrap(clean(what), max(t.width-indent, leastWidth/2)) {
		if i > 0 {
			t.out.WriteString(strings.Repeat(" ", indent))
		}
		t.out.WriteString(t.paint(bold, part) + "\n")
	}
}

// FailoverSetting is the name of the setting that says who fails over, such as "by PROGRAM
// VERSION (its settings)".
const FailoverSetting = "fail-over"

// judgedOf is what a verdict is of: the database, and who fails over.
func judgedOf(r *Result) string { return databaseOf(r) + failoverOf(r) }

// failoverOf is who fails over, to be added to the database; empty if nobody does.
func failoverOf(r *Result) string {
	for _, s := range r.Settings {
		if s.Name == FailoverSetting {
			by, _, _ := strings.Cut(s.Value, " (")
			by, _, _ = strings.Cut(by, ", ")
			return ", " + FailoverSetting + " " + clean(by)
		}
	}
	return ""
}

// full writes all of a report.
func (t *text) full(d *PageData, dir string) {
	t.failed(d.Failed, true)
	for _, n := range d.Notes {
		t.line(n.Kind, n.Text)
	}
	if t.r.Drive != nil {
		t.head("Measurements")
	}
	for _, f := range d.Figures {
		t.figure(f)
	}
	t.tables("", d.Latency...)
	t.tables("Outcomes", d.Outcomes...)
	t.tables("", ownTables(t.r)...)
	t.faults()
	t.tables("", acknowledgedTables(t.r)...)
	t.tables("", eventTables(t.r)...)
	t.checks(d, true)
	t.objectives()
	if t.r.Drive != nil {
		t.tables("Cost", d.Cost...)
	}
	t.head("Run")
	var settings []string
	for _, s := range t.r.Settings {
		settings = append(settings, s.Name+" = "+s.Value)
	}
	for _, f := range append(d.Facts, Setting{"Settings", OrNotKnown(joined(settings...))}) {
		if !strings.HasPrefix(f.Value, NotKnown) {
			t.line(f.Name, f.Value)
		}
	}
	t.files(dir)
}

// short writes what of a report fits one screen: of what was found, the first of each check.
func (t *text) short(d *PageData, dir string) {
	t.wrong(d)
	for _, n := range d.Notes {
		if n.Kind == "warning" {
			t.line(n.Kind, n.Text)
		}
	}
	if len(d.Figures) > 0 {
		t.out.WriteString("\n")
	}
	if t.r.Drive != nil {
		t.line("Load phase", t.r.Drive.modeText())
	}
	for _, f := range d.Figures {
		t.figure(f)
	}
	if t.r.Drive != nil {
		for _, s := range countLines(t.r) {
			t.line(s.Name, s.Value)
		}
	}
	t.faults()
	t.checks(d, false)
	t.objectives()
	t.files(dir)
}

func (t *text) figure(f PageFigure) {
	t.line(f.Name, joined(append([]string{strings.TrimSpace(f.Value + " " + f.Unit)}, f.Below...)...))
}

type text struct {
	r     *Result
	dir   string // as a command takes it
	out   strings.Builder
	color bool
	width int // in columns
	live  bool
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
	lead := fmt.Sprintf("  %-*s", column, name)
	if !strings.HasSuffix(lead, " ") && value != "" {
		lead += "  "
	}
	t.hang(lead, column+2, value)
}

// tables writes tables, the first below a title where it has none of its own.
func (t *text) tables(title string, list ...PageTable) {
	for _, p := range list {
		t.head(cmp.Or(p.Title, title))
		_ = p.WriteText(&t.out, t.width)
		if p.Note != "" {
			t.hang("", 2, p.Note)
		}
	}
}

// hang writes lead and then detail, wrapped at the indent. Beside a wide lead the detail
// stands in a narrow column beyond the width.
func (t *text) hang(lead string, indent int, detail string) {
	parts := wrap(detail, max(t.width-indent, 20))
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

// Hang writes lead and then what is said of it, wrapped under itself at the width of a terminal
// in columns. Where that leaves little room it stands below the lead.
func Hang(lead, about string, width int) string {
	const least, below = 30, 6
	t, indent := &text{width: width}, utf8.RuneCountInString(lead)
	if utf8.RuneCountInString(strings.TrimRight(lead, " ")) > width { // its other columns do, too
		name, rest, _ := strings.Cut(lead, "  ")
		lead, about = name, strings.TrimSpace(rest)+" "+about
	}
	if indent > below && indent > width-least {
		t.out.WriteString(strings.TrimRight(lead, " ") + "\n")
		lead, indent = "", below
	}
	t.hang(lead, indent, about)
	return t.out.String()
}

// faint writes what is said beside, wrapped at the indent.
func (t *text) faint(indent int, text string) {
	for _, part := range wrap(text, t.width-indent) {
		t.out.WriteString(strings.Repeat(" ", indent) + t.paint(faint, part) + "\n")
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
		row := faultRow(f, t.live)
		c := row.Cells
		fmt.Fprintf(&t.out, columns, c[2], short(clean(f.Fault), 28), c[4], c[5], c[6], c[7], c[8], c[13])
		if c[9] != none || c[10] != none {
			during := c[10] + " during"
			if c[11] != none {
				during += fmt.Sprintf(" (no commit in %s of that time)", c[11])
			}
			row.Below = append(row.Below, fmt.Sprintf("p99 in ms %s before, %s, %s after", c[9], during, c[12]))
		}
		for _, note := range row.Below {
			const indent = 11
			t.faint(indent, note)
		}
	}
}

// wrong writes the evidence of the cause, and the other findings, a line each.
func (t *text) wrong(d *PageData) {
	if d.Cause == nil {
		t.failed(d.Failed, false)
		return
	}
	t.head("What is wrong")
	if f := d.Cause.Finding; f != nil {
		t.finding(*f)
	}
	for _, o := range d.Cause.Others {
		const indent = 4
		t.hang("  - ", indent, o.Text)
	}
	t.violationsFile()
}

// failed writes what is wrong: the checks that the verdict fails by, each with what was found,
// and one that explains them.
func (t *text) failed(list []PageCheck, all bool) {
	if len(list) == 0 {
		return
	}
	t.head("What is wrong")
	for _, c := range list {
		t.check(c, all)
	}
	t.violationsFile()
}

// violationsFile names the file that has all violations.
func (t *text) violationsFile() {
	v := t.r.Violations
	if v == nil {
		return
	}
	more := ""
	if v.More > 0 {
		more = fmt.Sprintf(" and %s more that are not in it", Group(v.More))
	}
	t.line("all of it", fmt.Sprintf("%s, %s%s; `stroppy history %s ID` shows a transaction", v.File, Counted(v.Lines, "line"), more, t.dir))
}

// checks writes the other checks, in short a line each.
func (t *text) checks(d *PageData, all bool) {
	if len(d.Checks) == 0 {
		if len(d.Failed) == 0 {
			t.head("Checks")
			t.out.WriteString("  " + d.unchecked() + "\n")
		}
		return
	}
	t.head("Checks")
	for _, c := range d.Checks {
		if all {
			t.check(c, true)
			continue
		}
		first := FirstLine(c.Detail)
		if c.Status != "unknown" {
			first = firstSentence(first)
			first = short(first, t.width-checkColumns+1)
		}
		c.Detail, c.Findings = first, nil
		t.check(c, false)
	}
}

// firstSentence is a text up to the end of its first sentence.
func firstSentence(text string) string {
	if at := strings.Index(text, ". "); at >= 0 {
		return text[:at+1]
	}
	return text
}

// objectives writes what the run was given as limits, a line each.
func (t *text) objectives() {
	if len(t.r.Objectives) == 0 {
		return
	}
	t.head("Objectives")
	colors, names := map[string]string{ObjectiveMet: green}, 16
	for _, o := range t.r.Objectives {
		names = max(names, utf8.RuneCountInString(clean(o.Name)))
	}
	for _, o := range t.r.Objectives {
		lead := fmt.Sprintf("  %-*s ", names, clean(o.Name)) + t.paint(cmp.Or(colors[o.Status], yellow), fmt.Sprintf("%-8s", o.Status))
		t.hang(lead+" ", names+12, o.Detail)
	}
}

// checkColumns is where the detail of a check begins.
const checkColumns = 40

// check writes one check; of an invalid one what was found, or in short the first of it.
func (t *text) check(c PageCheck, all bool) {
	lead := fmt.Sprintf("  %-17s", clean(c.Name))
	switch {
	case c.Status == notApplicable:
		lead += t.paint(faint, fmt.Sprintf("%-21s", c.Status))
	case !c.Required:
		lead += t.paint(faint, fmt.Sprintf("%-21s", c.shortStatus()))
	case c.Status == "invalid":
		lead += t.status(c.Status, "INVALID")
	default:
		lead += t.status(c.Status, fmt.Sprintf("%-21s", c.Status))
	}
	if c.Status != "invalid" || len(c.Findings) == 0 {
		t.hang(lead, checkColumns, c.Detail)
		return
	}
	t.out.WriteString(strings.TrimRight(lead, " ") + "\n")
	for i, f := range c.Findings {
		if i > 0 && !all {
			t.faint(6, strings.TrimSpace(fmt.Sprintf("More of it: `stroppy report %s --verbose`. %s", t.dir, c.Rest)))
			return
		}
		t.finding(f)
	}
	if all {
		t.faint(6, c.Rest)
		for _, line := range labelled("transactions: ", some(c.Witness, 20)) {
			t.hang("", 6, line)
		}
	}
}

func (t *text) finding(f PageFinding) {
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

func (t *text) files(dir string) {
	t.head("Files")
	if dir != "" {
		t.line("directory", dir)
	}
	if t.r.Command != "" {
		t.out.WriteString("  " + fmt.Sprintf("%-18s", "repeat with") + clean(t.r.Command) + "\n")
	}
}
