package script

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/script"
	"stroppy/internal/stats"
	"stroppy/internal/workload"
)

// timing measures one statement of one client.
type timing struct {
	durations   stats.Live
	sum         time.Duration
	count, lost uint64 // executions, and those that failed
}

// timings measures the statements of all clients. A nil timings measures nothing.
type timings struct {
	mu      sync.Mutex
	clients [][][]timing // by client, script and step
}

// client returns the timings of a new client; nil if nothing is measured.
func (t *timings) client(program *script.Program) [][]timing {
	if t == nil {
		return nil
	}
	own := make([][]timing, len(program.Scripts))
	for i, s := range program.Scripts {
		own[i] = make([]timing, len(s.Steps))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients = append(t.clients, own)
	return own
}

func (t *timing) add(took time.Duration, err error) {
	if t.count++; err != nil {
		t.lost++
		return
	}
	t.durations.Add(int64(took))
	t.sum += took
}

// Measured implements workload.Measured: a table of the statements.
func (w *Script) Measured() []check.Table {
	if w.timings == nil || len(w.timings.clients) == 0 {
		return nil
	}
	table := check.Table{
		Title:   "Statements",
		Columns: []string{"script", "line", "statement", "executions", "failed", "mean, ms", "p50, ms", "p99, ms"},
		Notes: []string{
			"From the client's call to the answer, with the warm-up. " +
				"In a pipeline only the statement that ends it waits for answers.",
		},
	}
	for i, s := range w.program.Scripts {
		for k := range s.Steps {
			if step := &s.Steps[k]; step.Op == script.Execute {
				table.Rows = append(table.Rows, w.timings.row(i, k, s.Name, step))
			}
		}
	}
	return []check.Table{table}
}

// row returns the row of step k of script i.
func (t *timings) row(i, k int, name string, step *script.Step) []string {
	var count, lost uint64
	var sum time.Duration
	all := new(stats.Reading)
	for _, client := range t.clients {
		own := &client[i][k]
		count, lost, sum = count+own.count, lost+own.lost, sum+own.sum
		all.Read(&own.durations)
	}
	text := db.Shorten(strings.Join(step.SQL.Parts, "?"))
	row := []string{name, strconv.Itoa(step.Line), text, check.Group(int(count)), check.Group(int(lost))}
	if count == lost {
		return append(row, "–", "–", "–")
	}
	for _, d := range []time.Duration{sum / time.Duration(count-lost), all.Quantile(0.5), all.Quantile(0.99)} {
		row = append(row, fmt.Sprintf("%.3f", d.Seconds()*1e3))
	}
	return row
}

var _ workload.Measured = (*Script)(nil)
