package run

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/report"
)

// measuring is a database that answers what a test says, one sample a question.
type measuring struct {
	db.Database
	samples []db.Sample
	errs    []error
	asked   int
	closed  bool
}

func (m *measuring) Monitor() db.Monitor     { return m }
func (m *measuring) Interval() time.Duration { return time.Second }
func (m *measuring) Close()                  { m.closed = true }
func (*measuring) Metrics() []db.Metric {
	return []db.Metric{{Name: "waiting", Label: "waiting", Chart: "Sessions"}, {Name: "bytes_per_s", Label: "written", Chart: "MB", Counter: true, Scale: db.Megabyte}}
}

func (m *measuring) Sample(context.Context) (db.Sample, error) {
	i := m.asked
	m.asked++
	return m.samples[i], m.errs[i]
}

type stub struct {
	db.Database
	db.Monitored
}

// TestMonitoringKeepsGrowth checks that counters are kept as growth between comparable answers. A missing answer
// gives an empty row.
func TestMonitoringKeepsGrowth(t *testing.T) {
	dir := t.TempDir()
	nan := math.NaN()
	source := &measuring{
		samples: []db.Sample{
			{Server: "a", Fresh: true, Values: []float64{9, 100}}, // before the load phase
			{Server: "a", Values: []float64{1, 300}},
			{},
			{Server: "a", Values: []float64{nan, 1300}, State: []byte(`{"leader":"a"}`)},
			{Server: "a", Values: []float64{2, 1200}},              // counted anew
			{Server: "b", Values: []float64{3, 2000}},              // another server
			{Server: "b", Fresh: true, Values: []float64{4, 3000}}, // another connection
			{},
		},
		errs: []error{nil, nil, errors.New("no answer, says secret"), nil, nil, nil, nil, &db.Error{Class: db.Fatal, Op: "ask", Err: errors.New("may not")}},
	}
	c := newConductor(Options{Dir: &Directory{Path: dir}, Database: stub{Monitored: source}, Scrub: func(s string) string { return strings.ReplaceAll(s, "secret", "xxxxx") }})
	m := newMonitoring(c, source)
	first, at, err := m.ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.last, m.lastAt = first, at
	for i := range 7 { // as if each look were a second after the last
		m.lastAt = m.lastAt.Add(time.Since(m.lastAt) - time.Second)
		if i == 2 { // one had no answer
			m.lastAt = m.lastAt.Add(-time.Second)
		}
		if err := m.look(t.Context(), time.Now().Add(-time.Duration(i+1)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if !m.refused || m.result.Asked != 7 || m.result.Missed != 2 || !m.result.Refused || m.result.Error != "no answer, says xxxxx" {
		t.Errorf("the result is %+v", m.result)
	}
	data, err := os.ReadFile(filepath.Join(dir, ServerFile))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := report.ReadServer(bytes.NewReader(data), m.result.Columns)
	if err != nil || len(rows) != 7 {
		t.Fatalf("%d rows, %v:\n%s", len(rows), err, data)
	}
	for i, want := range []report.ServerRow{
		{Server: "a", Values: []float64{1, 200}}, {Values: []float64{nan, nan}}, {Server: "a", Values: []float64{nan, 500}}, {Server: "a", Values: []float64{2, nan}},
		{Server: "b", Values: []float64{3, nan}}, {Server: "b", Values: []float64{4, nan}}, {Values: []float64{nan, nan}},
	} {
		if rows[i].Second != i || rows[i].Server != want.Server {
			t.Errorf("row %d is %+v", i, rows[i])
		}
		for n, x := range want.Values {
			if got := rows[i].Values[n]; math.IsNaN(x) != math.IsNaN(got) || math.Abs(got-x) > 0.02*x {
				t.Errorf("row %d has %v, want %v", i, rows[i].Values, want.Values)
			}
		}
	}
	states, err := os.ReadFile(filepath.Join(dir, StatusFile))
	if err != nil || strings.Count(string(states), "\n") != 2 || !strings.Contains(string(states), `"status":{"leader":"a"}`) || !strings.Contains(string(states), `"error":"ask: may not"`) {
		t.Errorf("the states are %s, %v", states, err)
	}
}

// TestMonitorIsAskedToTheEnd checks that the monitor is asked during the load phase, and that its end waits for no
// answer. A database that refuses is asked once.
func TestMonitorIsAskedToTheEnd(t *testing.T) { synctest.Test(t, monitorIsAskedToTheEnd) }

func monitorIsAskedToTheEnd(t *testing.T) {
	dir := t.TempDir()
	source := &measuring{samples: make([]db.Sample, 9), errs: []error{0: &db.Error{Class: db.Fatal, Op: "ask", Err: errors.New("may not")}, 8: nil}}
	c := newConductor(Options{Dir: &Directory{Path: dir}, Database: stub{Monitored: source}})
	end := c.monitored().start(t.Context(), time.Now())
	time.Sleep(1200 * time.Millisecond)
	if err := end(); err != nil || !source.closed || source.asked != 1 {
		t.Errorf("asked %d times, closed %v, %v", source.asked, source.closed, err)
	}
	if m := c.result.ServerMetrics; m == nil || !m.Refused || m.Error == "" {
		t.Errorf("the result is %+v", m)
	}
	slow := &neverAnswers{measuring: measuring{samples: make([]db.Sample, 9)}}
	c = newConductor(Options{Dir: &Directory{Path: dir}, Database: stub{Monitored: slow}})
	end = c.monitored().start(t.Context(), time.Now())
	if m := c.result.ServerMetrics; m == nil || len(m.Columns) != 2 {
		t.Errorf("before the end the result has %+v", m)
	}
	begun := time.Now()
	if err := end(); err != nil || time.Since(begun) > 500*time.Millisecond || c.result.ServerMetrics != nil {
		t.Errorf("the end took %v, %v; nothing was asked and there is %+v", time.Since(begun), err, c.result.ServerMetrics)
	}
	if c = newConductor(Options{Dir: &Directory{Path: dir}, Database: struct{ db.Database }{}}); c.monitored().start(t.Context(), time.Now())() != nil || c.result.ServerMetrics != nil {
		t.Error("a database that measures nothing has measurements")
	}
}

// neverAnswers is asked in vain.
type neverAnswers struct{ measuring }

func (s *neverAnswers) Monitor() db.Monitor { return s }
func (s *neverAnswers) Sample(ctx context.Context) (db.Sample, error) {
	<-ctx.Done()
	return db.Sample{}, ctx.Err()
}
