package report

import "fmt"

// faultLines returns faultTables for a text: fewer columns, and the rest below each row.
func faultLines(r *Result, live bool) []DataTable {
	t := NewTable("", "", []int{1}, "at", "fault", "outage", "back in", "tps before", "during", "after", "in doubt")
	for _, f := range r.Faults {
		row := faultRow(f, live)
		c := row.Cells
		if c[9] != none || c[10] != none {
			during := c[10] + " during"
			if c[11] != none {
				during += fmt.Sprintf(" (no commit in %s of that time)", c[11])
			}
			row.Below = append(row.Below, fmt.Sprintf("p99 in ms %s before, %s, %s after", c[9], during, c[12]))
		}
		row.Cells = []string{c[2], f.Fault, c[4], c[5], c[6], c[7], c[8], c[13]}
		t.Rows = append(t.Rows, row)
	}
	return []DataTable{t}
}
