package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// allDue is the key in Drive.Outcomes of all that was due.
const allDue = "all"

// lacking marks a measurement of the committed transactions that would change if all due transactions had
// been answered.
const lacking = "*"

// measurements returns the measurements, with the share of the transactions that each describes: all of them
// for max. The mean is taken like p99, because few transactions move it little.
func (l *Latency) measurements() []measurement {
	return []measurement{
		{"mean", 0.99, l.Mean}, {"p50", 0.50, l.P50}, {"p90", 0.90, l.P90}, {"p95", 0.95, l.P95},
		{"p99", 0.99, l.P99}, {"p999", 0.999, l.P999}, {"max", 1, l.Max},
	}
}

type measurement struct {
	key   string // in result.json
	share float64
	value float64 // in milliseconds
}

func (m measurement) text() string { return LatencyText(m.value) }

// of returns the measurement of a key; nil if it is not known.
func (l *Latency) of(key string) *float64 {
	if l == nil {
		return nil
	}
	for _, m := range l.measurements() {
		if m.key == key {
			return &m.value
		}
	}
	return nil
}

// cells returns a name and the measurements as write formats them.
func (l *Latency) cells(name string, write func(measurement) string) []string {
	if l == nil {
		return []string{name, NotKnown, none, none, none, none, none, none}
	}
	cells := []string{name}
	for _, m := range l.measurements() {
		cells = append(cells, write(m))
	}
	return cells
}

// lost counts the due transactions that neither committed nor were rejected by a rule of the
// workload, and all due transactions.
func (d *Drive) lost() (lost, due uint64) {
	lost = d.Aborted + d.Unknown + d.Backlog + d.Shed
	return lost, lost + d.Committed + d.Rejected.total()
}

// committedText writes a measurement of the committed transactions, and marks one whose
// share leaves no room for what was lost.
func (d *Drive) committedText(m measurement) string {
	if lost, due := d.lost(); d.Outcomes[allDue] != nil && float64(lost) > (1-m.share)*float64(due) {
		return m.text() + lacking
	}
	return m.text()
}

// outcomeCells returns the measurements of one outcome, with a mark at lower bounds.
func (d *Drive) outcomeCells(name string) []string {
	if name != allDue {
		return d.Outcomes[name].cells(name, measurement.text)
	}
	return d.Outcomes[name].cells("all due", func(m measurement) string {
		if slices.Contains(d.DueAtLeast, m.key) {
			return "≥" + m.text()
		}
		return m.text()
	})
}

// lackingText describes the due transactions that the measurements leave out.
func (d *Drive) lackingText() string {
	lost, due := d.lost()
	if lost == 0 || d.Outcomes[allDue] == nil {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		n    uint64
		what string
	}{{d.Aborted, "aborted"}, {d.Unknown, "in doubt"}, {d.Backlog, "not sent before the end"}, {d.Shed, "shed"}} {
		if p.n > 0 {
			parts = append(parts, Group(p.n)+" "+p.what)
		}
	}
	text := fmt.Sprintf("%s of the transactions that were due were not done (%s). The measurements of committed ones leave them out. All due counts them with the time that they had taken or waited",
		strings.Replace(share(lost, due), "< ", "less than ", 1), strings.Join(parts, ", "))
	if len(d.DueAtLeast) > 0 {
		text += ", which for some is a lower bound (≥)"
	}
	return text + "."
}

// kindsTable returns a row for each kind of transaction, the most frequent kind first.
func (d *Drive) kindsTable(columns []string) DataTable {
	t := NewTable("By kind of transaction", "Committed transactions, since due, in milliseconds. The share is of all that committed.",
		[]int{0}, append([]string{"kind", "committed", "share", "per second"}, columns[1:]...)...)
	names := slices.SortedFunc(maps.Keys(d.ByKind), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.Kinds[b], d.Kinds[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		rate := none
		if d.Seconds > 0 {
			rate = RateText(float64(d.Kinds[name]) / d.Seconds)
		}
		t.Add(append([]string{name, Group(d.Kinds[name]), share(d.Kinds[name], d.Committed), rate}, d.ByKind[name].cells("", measurement.text)[1:]...)...)
	}
	return t
}
