package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Shape is the version of the data of all pages.
const Shape = 1

// NotKnown is shown for a value that nobody measured.
const NotKnown = "not known"

// none is the cell of a value that does not apply.
const none = "–"

// NotFinished is the sentence about a sweep that is not finished.
const NotFinished = "The sweep is not finished: it goes on, or was cut off."

// Document is a report in the form that every format is written from: a headline, and sections
// in their order. Its JSON is the data of a page.
type Document struct {
	Shape      int          `json:"shape"`
	Title      string       `json:"title"`
	Workload   string       `json:"workload"`
	Database   string       `json:"database"` // with its version
	Started    string       `json:"started"`  // the day
	Verdict    string       `json:"verdict"`  // valid, invalid, unknown, running or unfinished
	Objectives string       `json:"objectives_status"`
	Reason     string       `json:"reason"`
	Cause      *Explanation `json:"cause,omitempty"` // of an invalid run
	Answer     []string     `json:"answer,omitempty"`
	Notes      []Note       `json:"notes"` // what a reader must know before the measurements
	Sections   []Section    `json:"sections"`
	Foot       string       `json:"foot"` // the last line of a page
	Live       bool         `json:"live"`

	Subject string `json:"-"` // what the verdict is about, in text and Markdown
}

// NewDocument returns the document of a report that was started at a time in RFC 3339 by a
// version of stroppy.
func NewDocument(workload, database, startedAt, stroppy string) *Document {
	d := &Document{Shape: Shape, Workload: workload, Database: database, Notes: []Note{}, Sections: []Section{}}
	if at, err := time.Parse(time.RFC3339, startedAt); err == nil {
		d.Started = at.UTC().Format("2 January 2006")
	}
	d.Foot = strings.TrimSpace("Made by stroppy "+strings.TrimPrefix(stroppy, "stroppy ")) + "."
	return d
}

// Section is one part of a document. Its parts are written in the order of its fields.
type Section struct {
	ID      string      `json:"id"` // names its place on a page
	Title   string      `json:"title,omitempty"`
	Folded  string      `json:"folded,omitempty"` // the line that opens the section on a page; empty: it is open
	Checks  []Item      `json:"checks,omitempty"`
	Figures []Figure    `json:"figures,omitempty"`
	Chart   *Chart      `json:"chart,omitempty"` // on a page alone
	Text    []string    `json:"text,omitempty"`  // paragraphs
	Facts   []Setting   `json:"facts,omitempty"`
	Tables  []DataTable `json:"tables,omitempty"`
	Note    string      `json:"note,omitempty"`
	Plain   string      `json:"plain,omitempty"`   // lines as they are, on a page alone
	Command string      `json:"command,omitempty"` // makes the report again

	In Formats `json:"-"`
}

// Formats are the formats that have a section.
type Formats uint8

// The formats that a section can be left out of. Zero stands for all of them.
const (
	InPage  Formats = 1 << iota
	InFull          // text with all details
	InShort         // text that fits one screen
	InMarkdown

	InText = InFull | InShort
)

func (s *Section) in(f Formats) bool { return s.In == 0 || s.In&f != 0 }

// empty reports whether a section has nothing to show.
func (s *Section) empty() bool {
	return len(s.Checks)+len(s.Figures)+len(s.Text)+len(s.Facts)+len(s.Tables) == 0 && s.Chart == nil && s.Note+s.Plain+s.Command == ""
}

// Chart is the data of a picture that a page draws.
type Chart struct {
	Kind string `json:"kind"` // names the function of the page's scripts that draws it
	Data any    `json:"data"`
}

// Add appends a section. It leaves out tables without rows, and a section that has nothing.
func (d *Document) Add(s Section) {
	var tables []DataTable
	for _, t := range s.Tables {
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	if s.Tables = tables; !s.empty() {
		d.Sections = append(d.Sections, s)
	}
}

// AddFiles adds the content of the directory of several runs to a text, and the way to continue if runs are
// missing.
func (d *Document) AddFiles(o Options, names string, finished bool) {
	s := Section{ID: "files", Title: "Files", Text: []string{o.Dir + "/" + names}, In: InText}
	if !finished {
		s.Text = append([]string{fmt.Sprintf("The sweep was interrupted: the same command with --out %s goes on.", cmp.Or(o.Quoted, o.Dir))}, s.Text...)
	}
	d.Add(s)
}

// SavePage puts the page of the document into a directory at once.
func (d *Document) SavePage(dir, name string) error {
	if err := WriteFile(dir, name, d.WritePage); err != nil {
		return fmt.Errorf("write the page %s in %s: %w", name, dir, err)
	}
	return nil
}

// Section returns the first section of a name; an empty one if there is none.
func (d *Document) Section(id string) *Section {
	for i := range d.Sections {
		if d.Sections[i].ID == id {
			return &d.Sections[i]
		}
	}
	return &Section{ID: id}
}

// Judge sets the verdict, and the title, which begins with it.
func (d *Document) Judge(verdict, reason, title string) {
	d.Verdict, d.Reason = verdict, reason
	d.Title = Capital(cmp.Or(verdict, "unknown")) + ": " + title
}

// CutOff adds why runs are missing. The document is never valid then.
func (d *Document) CutOff(reason string) {
	d.Reason += " " + reason
	if d.Verdict != "invalid" {
		_, title, _ := strings.Cut(d.Title, ": ")
		d.Judge("unfinished", d.Reason, title)
	}
}

// Violated returns what was found in an invalid run of several, and the address of its page.
func Violated(name, detail, page string) Item {
	return Item{Name: name, Status: "invalid", Shown: "Invalid", Required: true, Detail: detail, Page: page,
		Findings: []Evidence{{Text: detail, Edges: []string{}}}, Witness: []string{}}
}

// MoreViolated returns a line that counts the invalid runs of which nothing else is shown.
func MoreViolated(more uint64, noun string) []Item {
	if more == 0 {
		return nil
	}
	return []Item{Violated(Counted(more, noun)+" more", "They found violations, too: see the table.", "")}
}

// Note is a sentence without which the measurements must not be read.
type Note struct {
	Kind string `json:"kind"` // warning or note
	Text string `json:"text"`
}

// Notes gathers the notes of a document.
type Notes struct{ warnings, others []Note }

// Warn adds a warning.
func (n *Notes) Warn(format string, args ...any) {
	n.warnings = append(n.warnings, Note{"warning", fmt.Sprintf(format, args...)})
}

// Note adds a note that is no warning.
func (n *Notes) Note(format string, args ...any) {
	n.others = append(n.others, Note{"note", fmt.Sprintf(format, args...)})
}

// All returns the warnings and then the others.
func (n *Notes) All() []Note { return append(append([]Note{}, n.warnings...), n.others...) }

// Figure is one number in large type.
type Figure struct {
	Name  string   `json:"name"`
	Value string   `json:"value"`
	Unit  string   `json:"unit"`
	Below []string `json:"below"`
}

// Figure makes a number in large type. A value that is not known has no unit.
func NewFigure(name, value, unit string, below ...string) Figure {
	if value == NotKnown {
		unit = ""
	}
	return Figure{Name: name, Value: value, Unit: unit, Below: append([]string{}, below...)}
}

// fact returns the figure as a name and one line.
func (f *Figure) fact() Setting {
	return Setting{f.Name, joined(append([]string{strings.TrimSpace(f.Value + " " + f.Unit)}, f.Below...)...)}
}

// MarshalJSON writes the document with the sections that a page has.
func (d *Document) MarshalJSON() ([]byte, error) {
	type plain Document
	p := plain(*d)
	p.Sections = []Section{}
	for _, s := range d.Sections {
		if s.in(InPage) {
			p.Sections = append(p.Sections, s)
		}
	}
	return json.Marshal(&p)
}

// chartScripts are the scripts that draw each kind of chart, of the folder assets.
var chartScripts = map[string]string{
	"timeline": "plots.js", "server": "plots.js", "histogram": "plots.js",
	"rate": "sweepcharts.js", "size": "sweepcharts.js", "sizes": "sweepcharts.js",
	"ratios": "comparison.js", "runs": "comparison.js", "isolation": "isolation.js",
}

// scripts returns the scripts that the page of a document needs, in a fixed order.
func (d *Document) scripts() []string {
	var names []string
	for _, s := range d.Sections {
		if s.Chart != nil && s.in(InPage) {
			names = append(names, chartScripts[s.Chart.Kind])
		}
	}
	slices.Sort(names)
	return append(slices.Compact(names), "document.js")
}
