package report

import (
	"fmt"
	"slices"
	"strings"
)

// allDue is the key in Drive.Outcomes of all that was due.
const allDue = "all"

// lacking marks a measurement of the committed transactions that would be another one
// if all that was due had been answered.
const lacking = "*"

// measurements are those of a Latency by their keys in result.json, with the share of
// the transactions that each describes: all of them for max. The mean is taken
// like p99, because few transactions move it little.
func (l *Latency) measurements() []describing {
	return []describing{
		{"mean", 0.99, l.Mean}, {"p50", 0.50, l.P50}, {"p90", 0.90, l.P90}, {"p95", 0.95, l.P95},
		{"p99", 0.99, l.P99}, {"p999", 0.999, l.P999}, {"max", 1, l.Max},
	}
}

type describing struct {
	key   string
	share float64
	value float64
}

// of is the measurement of a key; nil where it is not known.
func (l *Latency) of(key string) *float64 {
	if l == nil {
		return nil
	}
	for _, f := range l.measurements() {
		if f.key == key {
			return &f.value
		}
	}
	return nil
}

// lost counts what was due and was neither committed nor refused by a rule of the
// bank, and what was due in all.
func (d *Drive) lost() (lost, due uint64) {
	lost = d.Aborted + d.Unknown + d.Backlog + d.Shed
	return lost, lost + d.Committed + d.Rejected.total()
}

// committedCells writes measurements of the committed transactions, and marks those
// whose share leaves no room for what was lost.
func (d *Drive) committedCells(l *Latency) []string {
	lost, due := d.lost()
	var cells []string
	for _, f := range l.measurements() {
		cell := LatencyText(f.value)
		if d.Outcomes[allDue] != nil && float64(lost) > (1-f.share)*float64(due) {
			cell += lacking
		}
		cells = append(cells, cell)
	}
	return cells
}

// outcomeCells writes measurements of one outcome, and says which are lower bounds.
func (d *Drive) outcomeCells(name string, l *Latency) []string {
	var cells []string
	for _, f := range l.measurements() {
		cell := LatencyText(f.value)
		if name == allDue && slices.Contains(d.DueAtLeast, f.key) {
			cell = "≥" + cell
		}
		cells = append(cells, cell)
	}
	return cells
}

// lackingText says what the measurements of the committed transactions leave out.
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
			parts = append(parts, group(p.n)+" "+p.what)
		}
	}
	text := fmt.Sprintf("%s of the transactions that were due were not done (%s), and the figures of committed ones leave them out; all due counts them with the time that they had taken or waited",
		strings.Replace(share(lost, due), "< ", "less than ", 1), strings.Join(parts, ", "))
	if len(d.DueAtLeast) > 0 {
		text += ", which for some is a lower bound (≥)"
	}
	return text + "."
}

// rebuiltText says what is not known of a load phase that was rebuilt.
const rebuiltText = "The run ended before it wrote its measurements; these are from the recorded transactions. Errors, conflicts, reconnects, what was never sent, and the cost of the load phase are not known."

// clocks are the rows of the latency table for the committed transactions.
func (t *text) clocks() {
	d := t.r.Drive
	for _, l := range []struct {
		name string
		*Latency
	}{{"since due", d.Latency}, {"since sent", d.Service}} {
		if l.Latency != nil {
			t.out.WriteString(row(l.name, d.committedCells(l.Latency)...))
		}
	}
}
