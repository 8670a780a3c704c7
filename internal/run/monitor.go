package run

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/report"
)

// These files hold the database's own metrics during the load phase. They do not exist if it has none.
const (
	// ServerFile has a row for each time that it was asked.
	ServerFile = "server.csv"
	// StatusFile has a line for each time that it said which server does what.
	StatusFile = "status.jsonl"
)

// statusLine holds the state that the database reported, or why it reported nothing.
type statusLine struct {
	AtSeconds float64         `json:"at_s"` // when it was asked for
	Status    json.RawMessage `json:"status,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// monitoring asks a database for its metrics. Its errors are no errors of the run: a question without an answer
// leaves a row without values.
type monitoring struct {
	c       *conductor
	monitor db.Monitor
	result  *report.ServerMetrics

	last    db.Sample // the last that was answered
	lastAt  time.Time
	second  int  // of the last row; -1: there is none
	states  bool // the database has said who does what
	refused bool // it will never answer
}

func newMonitoring(c *conductor, monitor db.Monitor) *monitoring {
	m := &monitoring{c: c, monitor: monitor, result: &report.ServerMetrics{}, second: -1}
	for _, metric := range monitor.Metrics() {
		m.result.Columns = append(m.result.Columns, report.ServerColumn{Name: metric.Name, Label: metric.Label, Chart: metric.Chart, Scale: metric.Scale})
	}
	return m
}

// monitored returns the monitor of a database that measures itself, or nil. The result has the columns from now on,
// so that a run that is cut off has them too.
func (c *conductor) monitored() *monitoring {
	monitored, ok := c.o.Database.(db.Monitored)
	if !ok {
		return nil
	}
	m := newMonitoring(c, monitored.Monitor())
	if len(m.result.Columns) > 0 {
		c.result.ServerMetrics = &report.ServerMetrics{Columns: m.result.Columns}
	}
	return m
}

// start monitors until the returned function is called, which returns the first error of writing. It does nothing for
// nil.
func (m *monitoring) start(ctx context.Context, start time.Time) func() error {
	if m == nil {
		return func() error { return nil }
	}
	ctx, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- m.run(ctx, start) }()
	return func() error {
		stop()
		err := <-failed
		m.c.result.ServerMetrics = nil
		if m.result.Asked > 0 && len(m.result.Columns) > 0 {
			m.c.result.ServerMetrics = m.result
		}
		return err
	}
}

// run asks at each interval until ctx ends, and once before, so that the growth of the first
// interval is known. Its error is the first of writing.
func (m *monitoring) run(ctx context.Context, start time.Time) (failed error) {
	defer m.monitor.Close()
	ticker := time.NewTicker(m.monitor.Interval())
	defer ticker.Stop()
	sample, at, err := m.ask(ctx)
	switch {
	case err == nil:
		m.last, m.lastAt = sample, at
	case ctx.Err() == nil && db.ClassOf(err) == db.Fatal:
		m.result.Asked++
		m.miss(err)
	}
	for !m.refused {
		select {
		case <-ctx.Done():
			return failed
		case <-ticker.C:
			if err := m.look(ctx, start); failed == nil {
				failed = err
			}
		}
	}
	return failed
}

// ask asks once, for less than an interval.
func (m *monitoring) ask(ctx context.Context) (db.Sample, time.Time, error) {
	at := time.Now()
	ctx, cancel := context.WithTimeout(ctx, m.monitor.Interval()*9/10)
	defer cancel()
	sample, err := m.monitor.Sample(ctx)
	return sample, at, err
}

// look asks the database once and writes its answer. It returns errors of writing only.
func (m *monitoring) look(ctx context.Context, start time.Time) error {
	sample, at, err := m.ask(ctx)
	second := int((at.Sub(start) - m.monitor.Interval()/2) / time.Second)
	if ctx.Err() != nil || second <= m.second { // the load phase has ended, or the tick before was late
		return nil
	}
	row := report.ServerRow{Second: second, Server: sample.Server}
	m.second = second
	m.result.Asked++
	if err != nil {
		text := m.miss(err)
		err = m.write(row)
		if said := m.states || len(m.result.Columns) == 0; said && err == nil {
			err = m.status(statusLine{AtSeconds: at.Sub(start).Seconds(), Error: text})
		}
		return err
	}
	row.Values = m.values(sample, at)
	m.last, m.lastAt = sample, at
	err = m.write(row)
	if m.states = m.states || sample.State != nil; sample.State != nil && err == nil {
		err = m.status(statusLine{AtSeconds: at.Sub(start).Seconds(), Status: sample.State})
	}
	return err
}

// miss notes that there was no answer, and returns why.
func (m *monitoring) miss(err error) string {
	text := m.c.o.Scrub(err.Error())
	if m.result.Missed++; m.result.Error == "" {
		m.result.Error = text
		m.c.log.Warn("the database's measurements of itself could not be read", "error", err)
	}
	m.refused = db.ClassOf(err) == db.Fatal
	m.result.Refused = m.refused
	return text
}

// values returns the values of a sample to be recorded. Counters become growth per second since the last answer,
// which is unknown after a reset.
func (m *monitoring) values(sample db.Sample, at time.Time) []float64 {
	values := make([]float64, len(sample.Values))
	took := at.Sub(m.lastAt).Seconds()
	for i, metric := range m.monitor.Metrics() {
		values[i] = sample.Values[i]
		if !metric.Counter {
			continue
		}
		values[i] = math.NaN()
		if !sample.Fresh && sample.Server == m.last.Server && m.last.Values != nil && sample.Values[i] >= m.last.Values[i] {
			values[i] = (sample.Values[i] - m.last.Values[i]) / took
		}
	}
	return values
}

func (m *monitoring) write(row report.ServerRow) error {
	if len(m.result.Columns) == 0 { // it only says who does what
		return nil
	}
	var text bytes.Buffer
	if m.result.Asked == 1 {
		report.WriteServerHeader(&text, m.result.Columns)
	}
	report.WriteServerRow(&text, len(m.result.Columns), row)
	return m.c.o.Dir.Append(ServerFile, text.Bytes())
}

func (m *monitoring) status(line statusLine) error {
	text, err := json.Marshal(line)
	if err == nil {
		err = m.c.o.Dir.Append(StatusFile, append(text, '\n'))
	}
	return err
}
