package report

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
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

// PageShape is the version of the data of all pages.
const PageShape = 1

// NotKnown is what a page shows for what nobody measured.
const NotKnown = "not known"

// none is the cell of what does not apply.
const none = "–"

// Head is what the data of every page begins with. All of a page is in its own words:
// numbers of tables are text already, numbers of charts are numbers.
type Head struct {
	Shape    int          `json:"shape"`
	Title    string       `json:"title"`
	Workload string       `json:"workload"`
	Database string       `json:"database"` // with its version
	Started  string       `json:"started"`  // the day
	Verdict  string       `json:"verdict"`  // valid, invalid, unknown, running or unfinished
	Reason   string       `json:"reason"`
	Notes    []PageNote   `json:"notes"`   // what a reader must know before the measurements
	Figures  []PageFigure `json:"figures"` // the few that matter most
	Facts    []Setting    `json:"facts"`   // what was run
	Command  string       `json:"command"` // repeats it
	Made     string       `json:"made"`    // by which program
}

// NewHead is the head of what was started at a time in RFC 3339 by a version of stroppy.
func NewHead(workload, database, startedAt, command, stroppy string) Head {
	h := Head{Shape: PageShape, Workload: workload, Database: database, Command: command, Figures: []PageFigure{}, Facts: []Setting{}}
	if at, err := time.Parse(time.RFC3339, startedAt); err == nil {
		h.Started = at.UTC().Format("2 January 2006")
	}
	h.Made = strings.TrimSpace("stroppy " + strings.TrimPrefix(stroppy, "stroppy "))
	return h
}

// PageNote is a sentence that the measurements must not be read without.
type PageNote struct {
	Kind string `json:"kind"` // warning or note
	Text string `json:"text"`
}

// Notes gathers those of a page.
type Notes struct{ warnings, others []PageNote }

// Warn adds a warning.
func (n *Notes) Warn(format string, args ...any) {
	n.warnings = append(n.warnings, PageNote{"warning", fmt.Sprintf(format, args...)})
}

// Note adds what is no warning.
func (n *Notes) Note(format string, args ...any) {
	n.others = append(n.others, PageNote{"note", fmt.Sprintf(format, args...)})
}

// All are the warnings and then the others.
func (n *Notes) All() []PageNote { return append(append([]PageNote{}, n.warnings...), n.others...) }

// PageFigure is one number in large type.
type PageFigure struct {
	Name  string   `json:"name"`
	Value string   `json:"value"`
	Unit  string   `json:"unit"`
	Below []string `json:"below"`
}

// Figure makes a number in large type, which has no unit where it is not known.
func Figure(name, value, unit string, below ...string) PageFigure {
	if value == NotKnown {
		unit = ""
	}
	return PageFigure{Name: name, Value: value, Unit: unit, Below: append([]string{}, below...)}
}

// PageTable is a table as it is shown. An empty cell says that there is nothing
// to show.
type PageTable struct {
	Title    string    `json:"title"`
	Note     string    `json:"note"`
	Columns  []string  `json:"columns"`
	Text     []int     `json:"text_columns"` // by index: those that are no numbers
	Rows     []PageRow `json:"rows"`
	Markdown string    `json:"markdown"` // the same to be copied; empty: not offered
}

// PageRow is one row of a table, with what is reported below it.
type PageRow struct {
	Cells []string `json:"cells"`
	Below []string `json:"below,omitempty"`
	Page  string   `json:"page,omitempty"` // the address, beside this page's, of another that its first cell leads to
	Mark  string   `json:"mark,omitempty"` // the icon before it: invalid, unknown or warning
}

// NewPageTable makes a table without rows; text are the indexes of the columns that are no numbers.
func NewPageTable(title, note string, text []int, columns ...string) PageTable {
	return PageTable{Title: title, Note: note, Columns: columns, Text: text, Rows: []PageRow{}}
}

func (t *PageTable) Add(cells ...string) { t.Rows = append(t.Rows, PageRow{Cells: cells}) }

// WriteText writes the columns and rows for a terminal of a width, in columns. A last column of
// text is wrapped.
func (t *PageTable) WriteText(w io.Writer, width int) error {
	var out strings.Builder
	rows := t.lines()
	widths, gap := t.fitted(rows, width)
	for i, row := range rows {
		t.writeRow(&out, row, widths, gap, i == 0)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Fits says whether WriteText keeps to a width.
func (t *PageTable) Fits(width int) bool {
	widths, gap := t.fitted(t.lines(), width)
	columns := 2 - gap
	for _, w := range widths {
		columns += gap + w
	}
	return columns <= width
}

// lines are the headings and the cells below them.
func (t *PageTable) lines() [][]string {
	rows := [][]string{t.Columns}
	for _, row := range t.Rows {
		rows = append(rows, row.Cells[:min(len(row.Cells), len(t.Columns))])
	}
	return rows
}

// fitted returns the width of each column, and of the gaps between them, so that a row fits a
// width as far as it can: first headings are broken between their words, then long texts, and
// last the gaps are narrowed. A text in the last column is given what is left.
func (t *PageTable) fitted(rows [][]string, width int) (widths []int, gap int) {
	const least, leastLast = 24, 20
	gap = 2
	last := len(t.Columns) - 1
	measure := func(of func(row int, cell string) int) {
		widths = make([]int, len(t.Columns))
		for n, row := range rows {
			for i, cell := range row {
				widths[i] = max(widths[i], of(n, cell))
			}
		}
	}
	excess := func() int {
		sum := 2 - gap - width
		for i, w := range widths {
			if i == last && t.isText(i) {
				w = min(w, leastLast)
			}
			sum += gap + w
		}
		return sum
	}
	whole := func(_ int, cell string) int { return utf8.RuneCountInString(clean(cell)) }
	measure(func(n int, cell string) int {
		if n > 0 {
			return whole(n, cell)
		}
		return longestWord(cell)
	})
	broken := widths
	measure(whole)
	for excess() > 0 {
		at := -1
		for i, w := range widths { // the heading that gives most room
			if w > broken[i] && (at < 0 || w-broken[i] > widths[at]-broken[at]) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		widths[at] = broken[at]
	}
	for i := range t.Columns {
		if over := excess(); over > 0 && i != last && t.isText(i) && widths[i] > least {
			words := least
			for _, row := range rows {
				if i < len(row) {
					words = max(words, longestWord(row[i]))
				}
			}
			widths[i] = min(widths[i], max(words, widths[i]-over))
		}
	}
	if excess() > 0 {
		if gap = 1; excess() > 0 { // it would not help
			gap = 2
		}
	}
	if t.isText(last) && widths[last] > leastLast {
		widths[last] = min(widths[last], leastLast+max(0, -excess()))
	}
	return widths, gap
}

func longestWord(text string) (columns int) {
	for word := range strings.FieldsSeq(clean(text)) {
		columns = max(columns, utf8.RuneCountInString(word))
	}
	return columns
}

func (t *PageTable) isText(column int) bool { return slices.Contains(t.Text, column) }

// writeRow writes a row of cells, each wrapped in its column; headings stand at the bottom.
func (t *PageTable) writeRow(out *strings.Builder, row []string, widths []int, gap int, heading bool) {
	cells, lines := make([][]string, len(row)), 0
	for i, cell := range row {
		cells[i] = []string{clean(cell)}
		if utf8.RuneCountInString(cells[i][0]) > widths[i] {
			cells[i] = wrap(cell, widths[i])
		}
		lines = max(lines, len(cells[i]))
	}
	for n := range lines {
		line := strings.Repeat(" ", 2-gap)
		for i, cell := range cells {
			at, text, columns := n, "", widths[i]
			if heading {
				at -= lines - len(cell)
			}
			if at >= 0 && at < len(cell) {
				text = cell[at]
			}
			if t.isText(i) {
				columns = -columns // at the left
			}
			line += strings.Repeat(" ", gap) + fmt.Sprintf("%*s", columns, text)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// AsMarkdown writes a table as GitHub reads it
// (https://github.github.com/gfm/#tables-extension-).
func (t *PageTable) AsMarkdown() string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + strings.ReplaceAll(strings.ReplaceAll(clean(c), `\`, `\\`), "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	line(t.Columns)
	for i := range t.Columns {
		if slices.Contains(t.Text, i) {
			b.WriteString("| :-- ")
		} else {
			b.WriteString("| --: ")
		}
	}
	b.WriteString("|\n")
	for _, r := range t.Rows {
		line(r.Cells)
	}
	return b.String()
}

// OrNotKnown is the text where there is one.
func OrNotKnown(s string) string { return cmp.Or(s, NotKnown) }

// Perhaps writes a number that may not be known.
func Perhaps[N any](x *N, write func(N) string) string { return textOr(NotKnown, x, write) }

// textOr writes a number, or in its place what is shown where there is none.
func textOr[N any](missing string, x *N, write func(N) string) string {
	if x == nil {
		return missing
	}
	return write(*x)
}

// Capital is a text with a capital letter.
func Capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// Sentence is a detail with a capital letter and an end.
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

// VerdictMark is the icon of a verdict; a valid one has none.
func VerdictMark(verdict string) string {
	switch verdict {
	case "valid":
		return ""
	case "invalid":
		return "invalid"
	}
	return "unknown"
}

// PageFrom is the address of a run's page, seen from a page in dir; empty where
// there is no way from one to the other.
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

// SeedText writes a seed; no run has the seed 0.
func SeedText(seed uint64) string {
	if seed == 0 {
		return NotKnown
	}
	return fmt.Sprint(seed)
}

// Sheet is one HTML file that needs nothing else: what all pages share, the
// style, the charts and the shapes of their parts, around data that a script of
// the page's own shows.
type Sheet struct {
	Title   string
	Data    any      // becomes JSON, which the script reads
	Scripts []string // the page's own, of the folder assets
	Live    bool     // the script may ask where the page came from for newer data
}

//go:embed assets
var assets embed.FS

// The styles of every page, and the scripts that come before its own, in order.
// Those of uPlot are as its authors published them; scripts/uplot.sh fetches them.
var (
	styles = []string{"uPlot.min.css", "palette.css", "page.css", "drawing.css"}
	shared = []string{"uPlot.iife.min.js", "charts.js", "parts.js"}
)

// sheet is the file. Its policy lets nothing run but its own scripts and style, above all
// no network; a live page may ask where it came from.
var sheet = template.Must(template.New("sheet.html").Funcs(template.FuncMap{"source": source}).ParseFS(assets, "assets/sheet.html"))

// Write writes the file, with the same as text for a browser without scripts. Nothing
// in the data can end the script that it stands in.
func (s *Sheet) Write(w io.Writer, text func(io.Writer) error) error {
	var plain, style strings.Builder
	if err := text(&plain); err != nil {
		return err
	}
	encoded, err := json.Marshal(s.Data) // it escapes <, > and &
	if err != nil {
		return err
	}
	for _, name := range styles {
		style.WriteString(asset(name))
	}
	var scripts []string
	for _, name := range slices.Concat(shared, s.Scripts) {
		script := asset(name)
		if strings.HasPrefix(name, "uPlot") { // its licence asks to be in every copy
			script = "/*\n" + asset("uPlot.LICENSE") + "*/\n" + script
		}
		scripts = append(scripts, script)
	}
	return sheet.Execute(w, struct {
		Title, Style, Icons, Plain, Data string
		Scripts                          []string
		Live                             bool
	}{s.Title, style.String(), asset("icons.svg"), plain.String(), string(encoded), scripts, s.Live})
}

// asset is an embedded file; a page whose own files are not in the program is a mistake
// of the program.
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
