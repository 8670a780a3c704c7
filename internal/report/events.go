package report

import "fmt"

// mostEvents bounds what of a supervisor's work is shown; result.json has all.
const mostEvents = 40

// events reports what the cluster's supervisor did by itself.
func (t *text) events() {
	list := t.r.ClusterEvents
	if len(list) == 0 {
		return
	}
	t.head("Cluster events")
	for i, e := range list {
		if i == mostEvents {
			t.line("", fmt.Sprintf("… and %d more, in %s", len(list)-i, FileName))
			return
		}
		t.line(fmt.Sprintf("%.2f s", e.AtSeconds), e.Text)
	}
}

// eventTables is the same for the page.
func eventTables(r *Result) []PageTable {
	if len(r.ClusterEvents) == 0 {
		return nil
	}
	table := PageTable{Title: "Cluster events", Columns: []string{"second", "event"}, Text: []int{1}, Rows: []PageRow{}}
	for i, e := range r.ClusterEvents {
		if i == mostEvents {
			table.Note = fmt.Sprintf("And %d more, in %s.", len(r.ClusterEvents)-i, FileName)
			break
		}
		table.Rows = append(table.Rows, PageRow{Cells: []string{fmt.Sprintf("%.2f", e.AtSeconds), clean(e.Text)}})
	}
	return []PageTable{table}
}
