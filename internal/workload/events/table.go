package events

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// took gathers how long commits took.
type took struct {
	commits, lookedUp uint64
	sum, least, most  int64 // ns
	bytes             uint64
	from, to          int64 // ns: the first was sent, the last was answered
}

func (t *took) add(tx *history.Transaction) {
	d := tx.End - tx.Sent
	t.commits++
	if tx.LookedUp {
		t.lookedUp++
	}
	t.sum, t.least, t.most = t.sum+d, min(t.least, d), max(t.most, d)
	t.from, t.to = min(t.from, tx.Sent), max(t.to, tx.End)
	for i := range tx.Ops {
		t.bytes += uint64(tx.Ops[i].Amount)
	}
}

// join adds what another gathered.
func (t *took) join(other *took) {
	t.commits, t.lookedUp = t.commits+other.commits, t.lookedUp+other.lookedUp
	t.sum, t.least, t.most = t.sum+other.sum, min(t.least, other.least), max(t.most, other.most)
	t.bytes += other.bytes
	t.from, t.to = min(t.from, other.from), max(t.to, other.to)
}

// measurement holds the time that the committed appends of a recorded run took, without its warm-up.
type measurement struct {
	check.Meter
	batch int
	parts []*took
}

func measure(h history.Header) (*measurement, error) {
	run, err := configOf(h)
	if err != nil {
		return nil, err
	}
	m := &measurement{batch: run.Batch}
	m.Worker = func() func(tx *history.Transaction) {
		part := nothingTook()
		m.parts = append(m.parts, part)
		return func(tx *history.Transaction) {
			if tx.Outcome == history.Committed && !tx.Warmup {
				part.add(tx)
			}
		}
	}
	return m, nil
}

func nothingTook() *took { return &took{least: math.MaxInt64, from: math.MaxInt64} }

// tables returns what a recorded run took.
func tables(ctx context.Context, recorded *history.Reader) ([]workload.Table, error) {
	m, err := measure(recorded.Header())
	if err == nil {
		err = m.Read(ctx, recorded)
	}
	if err != nil {
		return nil, err
	}
	return m.tables(), nil
}

func (m *measurement) tables() []workload.Table {
	all := nothingTook()
	for _, part := range m.parts {
		all.join(part)
	}
	if all.commits == 0 {
		return nil
	}
	return all.tables(m.batch)
}

// tables returns the measurements of one commit, the same divided by the batch, and the measurements of all clients
// together.
func (t *took) tables(batch int) []workload.Table {
	events := t.commits * uint64(batch)
	row := func(name string, count uint64, divisor float64) []string {
		ms := func(ns float64) string { return strconv.FormatFloat(ns/1e6/divisor, 'f', 6, 64) }
		return []string{name, fmt.Sprint(count), ms(float64(t.sum) / float64(t.commits)), ms(float64(t.most)), ms(float64(t.least))}
	}
	times := workload.Table{
		Title:   "Events: time of one event and of one commit",
		Columns: []string{"", "count", "avg [ms]", "max [ms]", "min [ms]"},
		Rows:    [][]string{row("event", events, float64(batch)), row("commit", t.commits, 1)},
		Notes: []string{
			"A commit's time is from when its first try was sent until its answer, all tries included.",
			fmt.Sprintf("The average of a commit is the sum of the times of all %d commits divided by %d. All three values of an event are the values of a commit divided by %d, the events of one commit.", t.commits, t.commits, batch),
			"Counted are the commits of all clients that were acknowledged after the warm-up. Times of different clients overlap, so they do not add up to the time of the run.",
		},
	}
	if t.lookedUp > 0 {
		times.Notes = append(times.Notes, fmt.Sprintf("Answers that were lost and found by a look-up: %d. The look-up counts as part of the commit's time.", t.lookedUp))
	}
	seconds := float64(max(t.to-t.from, 1)) / 1e9
	rate := func(name string, n uint64) []string {
		return []string{name, fmt.Sprint(n), strconv.FormatFloat(float64(n)/seconds, 'f', 1, 64)}
	}
	return []workload.Table{times, {
		Title:   "Events: all clients together",
		Columns: []string{"", "count", "per second"},
		Rows:    [][]string{rate("events", events), rate("commits", t.commits), rate("bytes of values", t.bytes)},
		Notes:   []string{fmt.Sprintf("Each is divided by %.6f s: from when the first of these commits was sent until the last was answered. Each value counts with its whole length, its head of %d bytes included.", seconds, headLength)},
	}}
}
