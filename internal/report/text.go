package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// usualWidth is the width, in columns, of a text that no terminal shows. leastWidth is the width
// of the narrowest terminal that a text is made for.
const usualWidth, leastWidth = 100, 60

// Detail selects the parts of a report in the text.
type Detail uint8

const (
	Short   Detail = iota // what fits one screen, of a run that is valid
	Full                  // all of it
	Verdict               // the verdict and its reason alone
)

// Options select the form of the text.
type Options struct {
	Color  bool   // ANSI colours
	Dir    string // the run's directory, as the person named it
	Quoted string // Dir as a shell takes it
	Detail Detail
	Width  int // of the terminal, in columns; 0: there is none
}

// Columns returns the width of the text.
func (o Options) Columns() int { return max(cmp.Or(o.Width, usualWidth), leastWidth) }

// Unwrapped is a width that breaks no line.
const Unwrapped = math.MaxInt32

// All returns the options with all details.
func (o Options) All() Options {
	o.Detail = Full
	return o
}

// Text writes the report of a run: the verdict first, and directly below it what is wrong.
// With all details it has what the page shows, except charts, the scenario and the study's tables.
func Text(w io.Writer, r *Result, o Options) error {
	d := RunDocument(Input{Result: r, Dir: cmp.Or(o.Quoted, o.Dir)})
	d.Add(Section{ID: "files", Title: "Files", Facts: present(Setting{"directory", o.Dir}), Command: r.Command})
	return d.WriteText(w, o)
}

// WriteText writes the document for people: the verdict, what is wrong, the notes, and then what
// was measured.
func (d *Document) WriteText(w io.Writer, o Options) error {
	t := &text{dir: cmp.Or(o.Quoted, o.Dir, runDir), color: o.Color, width: o.Columns(), terminal: o.Width > 0, full: o.Detail == Full}
	t.verdict(d.Verdict, d.Objectives, d.Subject)
	if d.Reason != "" {
		t.hang("", 2, d.Reason)
	}
	if d.Cause != nil {
		t.hang("", 2, d.Cause.Whose)
		t.hang("", 2, cureLead+d.Cause.Cure)
	}
	for _, answer := range d.Answer {
		t.hang("", 2, answer)
	}
	if o.Detail != Verdict {
		t.sections(d)
	}
	_, err := io.WriteString(w, t.out.String())
	return err
}

// cureLead stands before the remedy of a violation.
const cureLead = "What to do: "

// sections writes the sections of a text, with the notes behind what is wrong, which is the first section.
func (t *text) sections(d *Document) {
	format := InShort
	if t.full {
		format = InFull
	}
	sections := d.sectionsIn(format)
	if len(sections) > 0 && sections[0].ID == failedID {
		t.failed(&sections[0], d.Cause)
		sections = sections[1:]
	}
	for _, n := range d.Notes {
		if t.full || n.Kind == "warning" {
			t.line(n.Kind, n.Text)
		}
	}
	for i := range sections {
		t.section(&sections[i])
	}
}

// section writes one section. A section of tables has the heading of its first table, if it has one.
func (t *text) section(s *Section) {
	title := s.Title
	if len(s.Tables) == 0 || len(s.Checks)+len(s.Figures)+len(s.Text)+len(s.Facts) > 0 {
		t.head(title)
		title = ""
	}
	for _, c := range s.Checks {
		if s.ID == checksID && !t.full {
			t.brief(c)
		} else {
			t.check(c, t.full)
		}
	}
	for i := range s.Figures {
		f := s.Figures[i].fact()
		t.line(f.Name, f.Value)
	}
	for _, paragraph := range s.Text {
		t.hang("", 2, paragraph)
	}
	for _, f := range s.Facts {
		t.line(f.Name, f.Value)
	}
	t.tables(title, s.Tables...)
	if s.Note != "" {
		t.hang("", 2, s.Note)
	}
	if s.Command != "" {
		fmt.Fprintf(&t.out, "  %-18s%s\n", "repeat with", clean(s.Command))
	}
}

// failed writes what is wrong: in full each check with what was found, else the evidence of the
// cause, if it is known, and the other findings, a line each.
func (t *text) failed(s *Section, cause *Explanation) {
	if t.full || cause == nil {
		t.section(s)
		return
	}
	t.head(s.Title)
	if f := cause.Finding; f != nil {
		t.finding(*f)
	}
	for _, o := range cause.Others {
		t.hang("  - ", 4, o.Title)
	}
	for _, f := range s.Facts {
		t.line(f.Name, f.Value)
	}
}

// brief writes a check that is not wrong on a line, unless it could not be decided.
func (t *text) brief(c Item) {
	c.Detail, c.Findings = FirstLine(c.Detail), nil
	if c.Status != "unknown" {
		c.Detail = short(firstSentence(c.Detail), t.width-checkColumns+1)
	}
	t.check(c, false)
}

// objectivesBeside stands behind a verdict if objectives are not met.
var objectivesBeside = map[string]string{ObjectiveMissed: ", OBJECTIVES MISSED", ObjectiveUnknown: ", OBJECTIVES UNKNOWN"}

func (t *text) verdict(verdict, objectives, what string) {
	word, missed := strings.ToUpper(clean(verdict)), objectivesBeside[objectives]
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

// judgedOf returns what a verdict is about: the database, and who fails over if the settings name it.
func judgedOf(r *Result) string {
	by, _, _ := strings.Cut(settingOf(r.Settings, FailoverSetting), " (")
	if by, _, _ = strings.Cut(by, ", "); by == "" {
		return databaseOf(r)
	}
	return databaseOf(r) + ", " + FailoverSetting + " " + clean(by)
}

// text is a report that is being written for people.
type text struct {
	dir      string // as a command takes it
	out      strings.Builder
	color    bool
	width    int // in columns
	terminal bool
	full     bool
}

// The colors are from ECMA-48: bold, green, red, yellow, faint.
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
	return t.paint(cmp.Or(map[string]string{"valid": green, ObjectiveMet: green, "invalid": red}[status], yellow), shown)
}

// head writes an empty line, and the title if there is one.
func (t *text) head(title string) {
	t.out.WriteString("\n")
	if title != "" {
		t.out.WriteString(t.paint(bold, clean(title)) + "\n")
	}
}

// line writes a name and its value, which is wrapped under itself.
func (t *text) line(name, value string) {
	const column = 18
	lead := fmt.Sprintf("  %-*s", column, name)
	if !strings.HasSuffix(lead, " ") && value != "" {
		lead += "  "
	}
	t.hang(lead, column+2, value)
}

// tables writes tables. The title stands above the first one, unless it has its own.
func (t *text) tables(title string, list ...DataTable) {
	for i, p := range list {
		if i > 0 {
			title = ""
		}
		t.head(cmp.Or(p.Title, title))
		if t.terminal {
			p = p.narrowed(t.width)
		}
		p.write(&t.out, t.width, func(below string) { t.faint(11, below) })
		if p.Note != "" {
			t.hang("", 2, p.Note)
		}
	}
}

// hang writes lead and then detail, wrapped at the indent. If the lead leaves little room, the
// detail gets a narrow column beyond the width.
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

// Hang returns lead and a text about it, which is wrapped under itself at the width of a terminal
// in columns. If the lead leaves little room, the text stands below it.
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

// faint writes a text in a faint color, wrapped at the indent.
func (t *text) faint(indent int, text string) {
	for _, part := range wrap(text, t.width-indent) {
		t.out.WriteString(strings.Repeat(" ", indent) + t.paint(faint, part) + "\n")
	}
}

// firstSentence returns a text up to the end of its first sentence.
func firstSentence(text string) string {
	if at := strings.Index(text, ". "); at >= 0 {
		return text[:at+1]
	}
	return text
}

// checkColumns is the column in which the detail of a check begins.
const checkColumns = 40

// check writes one check. It writes all findings of an invalid check, or only the first one.
func (t *text) check(c Item, all bool) {
	lead := fmt.Sprintf("  %-16s ", clean(c.Name))
	switch {
	case c.Status == notApplicable:
		lead += t.paint(faint, fmt.Sprintf("%-21s", c.Status))
	case !c.Required && c.Status == "invalid":
		lead += t.paint(faint, fmt.Sprintf("%-21s", "no, and not claimed"))
	case !c.Required:
		lead += t.paint(faint, fmt.Sprintf("%-21s", c.Status+", not claimed"))
	case c.Status == "invalid":
		lead += t.status(c.Status, "INVALID")
	default:
		lead += t.status(c.Status, fmt.Sprintf("%-21s", c.Status))
	}
	if c.Status != "invalid" || len(c.Findings) == 0 {
		if utf8.RuneCountInString(c.Name) > 16 {
			t.out.WriteString(strings.TrimRight(lead, " ") + "\n")
			lead = ""
		}
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
		of := "transactions: "
		if c.WitnessOf != "" {
			of = "transactions (" + c.WitnessOf + "): "
		}
		for _, line := range labelled(of, some(c.Witness, 20), "All of it: ", c.Command) {
			t.hang("", 6, line)
		}
	}
}

func (t *text) finding(f Evidence) {
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
