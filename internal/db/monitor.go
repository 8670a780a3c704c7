package db

import (
	"context"
	"math"
	"strconv"
	"time"
)

// Monitored is implemented by a database that measures itself: the waits of its sessions, its
// log, its cache, the roles of its servers.
type Monitored interface {
	// Monitor returns a monitor, which connects when it is first asked.
	Monitor() Monitor
}

// Monitor asks a database for its own measurements, over connections of its own, so that nobody else waits for it. It
// is used by one goroutine at a time.
type Monitor interface {
	// Interval returns the time between two questions: a second, or more if the database measures less often.
	Interval() time.Duration
	// Metrics returns the metrics of a Sample, the same each time.
	Metrics() []Metric
	// Sample asks now, and connects again if necessary. An error of class Fatal means that there will never be an
	// answer, for example because a right is missing.
	Sample(ctx context.Context) (Sample, error)
	Close()
}

// Metric is one measurement that a database makes of itself.
type Metric struct {
	Name  string // with its unit, such as wal_bytes_per_s
	Label string // for people, such as "buffers read"
	// Chart is the title of its chart, with the unit. Neighbors with one title share a chart;
	// empty: it is not drawn.
	Chart string
	// Counter is set if the value counts since the start of the database. It is kept as the growth per second.
	Counter bool
	// Scale is the value of one unit of the chart; 0: the unit is in Name.
	Scale float64
}

// Measurements are metrics with their names at the server.
type Measurements []struct {
	Name string
	Metric
}

// Metrics returns the metrics.
func (list Measurements) Metrics() (all []Metric) {
	for _, one := range list {
		all = append(all, one.Metric)
	}
	return all
}

// Values returns the values of the metrics among the numbers that the server has under these names.
func (list Measurements) Values(found map[string]string) (all []float64) {
	for _, one := range list {
		all = append(all, ParseValue(found[one.Name]))
	}
	return all
}

// Megabyte is the Metric.Scale of bytes.
const Megabyte = 1e6

// Sample is one answer.
type Sample struct {
	Server string // the server that answered, without secrets; empty: all servers
	// Fresh is set if counters cannot be compared with the sample before, because another
	// server or another connection answered.
	Fresh  bool
	Values []float64 // one a Metric; NaN is not known
	State  []byte    // one JSON value of a few kilobytes: which server does what; nil: there is none
}

// ParseValue parses a number of a server. It returns NaN if the text is no number.
func ParseValue(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}
