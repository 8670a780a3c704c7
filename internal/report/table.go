package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// DataTable is a table as it is shown.
type DataTable struct {
	Title    string   `json:"title"`
	Note     string   `json:"note"`
	Columns  []string `json:"columns"`
	Text     []int    `json:"text_columns"` // by index: those that are no numbers
	Rows     []Row    `json:"rows"`
	Markdown string   `json:"markdown"` // the same to be copied; empty: not offered
	Spare    []string `json:"-"`        // the columns that a narrow terminal leaves out, the first one first
}

// Row is one row of a table, with lines below it.
type Row struct {
	Cells []string `json:"cells"`
	Below []string `json:"below,omitempty"`
	Page  string   `json:"page,omitempty"` // the address, beside this page's, of another that its first cell leads to
	Mark  string   `json:"mark,omitempty"` // the icon before it: invalid, unknown or warning
}

// NewTable makes a table without rows. text are the indexes of the columns that hold no numbers.
func NewTable(title, note string, text []int, columns ...string) DataTable {
	return DataTable{Title: title, Note: note, Columns: columns, Text: text, Rows: []Row{}}
}

// Add appends a row.
func (t *DataTable) Add(cells ...string) { t.Rows = append(t.Rows, Row{Cells: cells}) }

// write writes the columns and rows for a terminal of a width, in columns. A last column of
// text is wrapped. It calls below for each line below a row.
func (t *DataTable) write(out *strings.Builder, width int, below func(line string)) {
	rows := t.lines()
	widths, gap := t.fitted(rows, width)
	for i, row := range rows {
		t.writeRow(out, row, widths, gap, i == 0)
		if i > 0 {
			for _, line := range t.Rows[i-1].Below {
				below(line)
			}
		}
	}
}

// narrowed leaves out columns that a terminal has no room for, in the order of Spare, and says
// so in the note.
func (t DataTable) narrowed(width int) DataTable {
	var out []string
	for _, name := range t.Spare {
		at := slices.Index(t.Columns, name)
		if at < 0 || t.fits(width) {
			continue
		}
		out = append(out, name)
		t.Columns = slices.Delete(slices.Clone(t.Columns), at, at+1)
		t.Rows = slices.Clone(t.Rows)
		for i := range t.Rows {
			t.Rows[i].Cells = slices.Delete(slices.Clone(t.Rows[i].Cells), at, at+1)
		}
	}
	if len(out) > 0 {
		t.Note = strings.TrimSpace(t.Note + " The terminal has no room for these columns: " + strings.Join(out, ", ") + ".")
	}
	return t
}

// fits reports whether write keeps to a width.
func (t *DataTable) fits(width int) bool {
	widths, gap := t.fitted(t.lines(), width)
	columns := 2 - gap
	for _, w := range widths {
		columns += gap + w
	}
	return columns <= width
}

// lines are the headings and the cells below them.
func (t *DataTable) lines() [][]string {
	rows := [][]string{t.Columns}
	for _, row := range t.Rows {
		rows = append(rows, row.Cells[:min(len(row.Cells), len(t.Columns))])
	}
	return rows
}

// fitted returns the width of each column and of the gaps between them, so that a row fits a width if it can.
// First the longest headings of numbers are broken between their words, then the widest texts are wrapped. At
// last the gaps are narrowed, if that helps.
func (t *DataTable) fitted(rows [][]string, width int) (widths []int, gap int) {
	const least, leastLast = 24, 20
	last := len(t.Columns) - 1
	narrow := make([]int, len(t.Columns)) // the least width of each column
	widths = make([]int, len(t.Columns))
	for n, row := range rows {
		for i, cell := range row {
			whole := utf8.RuneCountInString(clean(cell))
			widths[i] = max(widths[i], whole)
			if n == 0 || t.isText(i) {
				whole = min(whole, max(longestWord(cell), least*min(n, 1)))
			}
			if i == last && t.isText(i) {
				whole = min(whole, leastLast)
			}
			narrow[i] = max(narrow[i], whole)
		}
	}
	room := func(i int) int { // more than zero: the column can shrink
		if r := widths[i] - narrow[i]; r > 0 && !t.isText(i) {
			return r + width
		}
		return widths[i] - narrow[i]
	}
	var sum int
	for gap = 2; gap > 0; gap-- {
		for sum = 2 - gap; ; sum = 2 - gap {
			widest := 0
			for i, w := range widths {
				sum += gap + w
				if room(i) > room(widest) {
					widest = i
				}
			}
			if sum <= width || room(widest) <= 0 {
				break
			}
			widths[widest]--
		}
		if sum <= width {
			return widths, gap
		}
	}
	return widths, 2 // a narrow gap would not help
}

func longestWord(text string) (columns int) {
	for word := range strings.FieldsSeq(clean(text)) {
		columns = max(columns, utf8.RuneCountInString(word))
	}
	return columns
}

func (t *DataTable) isText(column int) bool { return slices.Contains(t.Text, column) }

// writeRow writes a row of cells, each wrapped in its column; headings stand at the bottom.
func (t *DataTable) writeRow(out *strings.Builder, row []string, widths []int, gap int, heading bool) {
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
func (t *DataTable) AsMarkdown() string {
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
