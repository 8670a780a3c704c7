package report

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"
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
	s.Tables = slices.DeleteFunc(slices.Clone(s.Tables), func(t DataTable) bool { return len(t.Rows) == 0 })
	if !s.empty() {
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

// mostViolated is how many invalid runs of several are shown with their findings.
const mostViolated = 5

// ViolatedRuns returns what was found in the first invalid runs, which noun names, and a line that counts the others.
func ViolatedRuns[R any](noun string, runs []R, item func(R) Item) (list []Item) {
	for _, r := range runs[:min(len(runs), mostViolated)] {
		list = append(list, item(r))
	}
	if more := len(runs) - len(list); more > 0 {
		list = append(list, Violated(Counted(uint64(more), noun)+" more", "They found violations, too: see the table.", ""))
	}
	return list
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
	p.Sections = d.sectionsIn(InPage)
	return json.Marshal(&p)
}

// chartScripts are the scripts that draw each kind of chart, of the folder assets.
var chartScripts = map[string]string{
	"timeline": "plots.js", "server": "plots.js", "histogram": "plots.js",
	"rate": "sweepcharts.js", "size": "sweepcharts.js", "sizes": "sweepcharts.js",
	"ratios": "comparison.js", "runs": "comparison.js", "isolation": "isolation.js",
}

// sectionsIn returns the sections that a format has.
func (d *Document) sectionsIn(f Formats) []Section {
	return slices.DeleteFunc(slices.Clone(d.Sections), func(s Section) bool { return s.In != 0 && s.In&f == 0 })
}

// scripts returns the scripts that the page of a document needs, in a fixed order.
func (d *Document) scripts() []string {
	var names []string
	for _, s := range d.sectionsIn(InPage) {
		if s.Chart != nil {
			names = append(names, chartScripts[s.Chart.Kind])
		}
	}
	slices.Sort(names)
	return append(slices.Compact(names), "document.js")
}

// OrNotKnown returns the text, or NotKnown if it is empty.
func OrNotKnown(s string) string { return cmp.Or(s, NotKnown) }

// Perhaps writes a number, or NotKnown if there is none.
func Perhaps[N any](x *N, write func(N) string) string { return textOr(NotKnown, x, write) }

// textOr writes a number, or the text missing if there is none.
func textOr[N any](missing string, x *N, write func(N) string) string {
	if x == nil {
		return missing
	}
	return write(*x)
}

// Capital returns a text with a capital first letter.
func Capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// Sentence returns a detail with a capital first letter and a period.
func Sentence(detail string) string { return Capital(withPeriod(detail)) }

func withPeriod(s string) string { return strings.TrimSuffix(s, ".") + "." }

// StartText writes a time in RFC 3339 for people.
func StartText(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return OrNotKnown(text)
	}
	return at.UTC().Format("2 January 2006, 15:04:05 UTC")
}

// CombinedVerdict is the worst verdict of several runs, which noun names; judge returns the name and
// the verdict of each. A verdict that is none counts as unknown.
func CombinedVerdict[R any](noun string, runs []R, judge func(R) (name, verdict string)) (verdict, reason string) {
	by := map[string][]string{}
	for _, r := range runs {
		name, verdict := judge(r)
		mark := VerdictMark(verdict)
		by[mark] = append(by[mark], name)
	}
	all := Counted(uint64(len(runs)), noun)
	where := func(names []string) string {
		if len(runs) == 1 {
			return fmt.Sprintf("the %s (%s)", noun, names[0])
		}
		return fmt.Sprintf("%d of %s: %s", len(names), all, some(names, 10))
	}
	if bad := by["invalid"]; len(bad) > 0 {
		return "invalid", fmt.Sprintf("A check found a violation in %s.", where(bad))
	}
	if open := by["unknown"]; len(open) > 0 {
		return "unknown", fmt.Sprintf("A check could not be decided, or none was made, in %s.", where(open))
	}
	if len(runs) == 1 {
		return "valid", "No check found a violation in the " + noun + "."
	}
	return "valid", fmt.Sprintf("No check found a violation in any of %s.", all)
}

// VerdictMark returns the icon of a verdict; a valid one has none.
func VerdictMark(verdict string) string {
	switch verdict {
	case "valid":
		return ""
	case "invalid":
		return "invalid"
	}
	return "unknown"
}

// PageFrom returns the address of a run's page, relative to a page in dir. It is empty if no
// relative path leads there.
func PageFrom(dir, run string) string {
	rel, err := filepath.Rel(dir, run)
	if err != nil {
		return ""
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "./" + strings.Join(parts, "/") + "/" + PageName
}

// PageBeside returns the address of the page of a run in a folder beside a page. It is empty if
// the name does not belong to a folder there.
func PageBeside(folder string) string {
	if folder == "" || folder == "." || !filepath.IsLocal(folder) || filepath.Base(folder) != folder {
		return ""
	}
	return PageFrom("", folder)
}

// SeedText writes a seed; no run has the seed 0.
func SeedText(seed uint64) string {
	if seed == 0 {
		return NotKnown
	}
	return fmt.Sprint(seed)
}

//go:embed assets
var assets embed.FS

// The styles of every page, and the scripts that come before its charts, in order. The files of uPlot are
// unchanged; scripts/uplot.sh fetches them.
var (
	styles = []string{"uPlot.min.css", "palette.css", "page.css", "drawing.css"}
	shared = []string{"uPlot.iife.min.js", "charts.js", "parts.js"}
)

// sheet is the file of a page. Its policy allows its own scripts and style alone, and no network.
// A live page may ask the server that it came from.
var sheet = template.Must(template.New("sheet.html").Funcs(template.FuncMap{"source": source}).ParseFS(assets, "assets/sheet.html"))

// WritePage writes the document as one HTML file that needs nothing else. The file also has the
// document as text, for a browser without scripts. Nothing in the data can end the script that
// holds it.
func (d *Document) WritePage(w io.Writer) error {
	var plain, style strings.Builder
	encoded, err := json.Marshal(d) // it escapes <, > and &
	if err = errors.Join(err, d.WriteText(&plain, Options{Detail: Full})); err != nil {
		return fmt.Errorf("write the page %q: %w", d.Title, err)
	}
	for _, name := range styles {
		style.WriteString(asset(name))
	}
	var scripts []string
	for _, name := range slices.Concat(shared, d.scripts()) {
		script := asset(name)
		if strings.HasPrefix(name, "uPlot") { // every copy must have the license
			script = "/*\n" + asset("uPlot.LICENSE") + "*/\n" + script
		}
		scripts = append(scripts, script)
	}
	err = sheet.Execute(w, struct {
		Title, Style, Icons, Plain, Data string
		Scripts                          []string
		Live                             bool
	}{d.Title, style.String(), asset("icons.svg"), plain.String(), string(encoded), scripts, d.Live})
	if err != nil {
		return fmt.Errorf("write the page %q: %w", d.Title, err)
	}
	return nil
}

// asset returns an embedded file. It panics if the program lacks one that a page needs.
func asset(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// source names an inline script or style for a content security policy
// (https://www.w3.org/TR/CSP3/#grammardef-hash-source).
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
