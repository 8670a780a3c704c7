package report

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// tables writes what the workload adds, in columns.
func (t *text) tables() {
	for _, table := range t.r.Tables {
		t.head(clean(table.Title))
		widths := make([]int, len(table.Columns))
		rows := append([][]string{table.Columns}, table.Rows...)
		for _, row := range rows {
			for i, cell := range row[:min(len(row), len(widths))] {
				widths[i] = max(widths[i], utf8.RuneCountInString(clean(cell)))
			}
		}
		for _, row := range rows {
			var line strings.Builder
			for i, cell := range row[:min(len(row), len(widths))] {
				cell = clean(cell)
				pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
				if i == 0 {
					line.WriteString("  " + cell + pad)
				} else {
					line.WriteString("  " + pad + cell)
				}
			}
			t.out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
		for _, note := range table.Notes {
			t.hang("", 2, note)
		}
	}
}

// ownTables are what the workload adds, for the page.
func ownTables(r *Result) []PageTable {
	list := []PageTable{}
	for _, own := range r.Tables {
		made := table(own.Title, strings.Join(own.Notes, " "), []int{0}, slices.Clone(own.Columns)...)
		for _, row := range own.Rows {
			made.Rows = append(made.Rows, cellsOf(row...))
		}
		list = append(list, made)
	}
	return list
}
