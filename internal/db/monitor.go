package db

import (
	"context"
	"math"
	"strconv"
	"time"
)

// Monitored is satisfied by a database that can measure itself: what its sessions wait for,
// its log, its cache, which server does what.
type Monitored interface {
	// Monitor returns a monitor, which connects when it is first asked.
	Monitor() Monitor
}

// Monitor asks a database what it measures of itself, over connections of its own, so that
// nobody else waits for it. It is used by one goroutine at a time.
type Monitor interface {
	// Interval is the time between two questions: a second, or more where the database
	// measures less often.
	Interval() time.Duration
	// Metrics are what a Sample has a value of. They are always the same.
	Metrics() []Metric
	// Sample asks now, and connects again where that is needed. An error of class Fatal says
	// that there will never be an answer, as where a right is missing.
	Sample(ctx context.Context) (Sample, error)
	Close()
}

// Metric is one measurement that a database makes of itself.
type Metric struct {
	Name  string // with its unit, such as wal_bytes_per_s
	Label string // for people, such as "buffers read"
	// Chart is the title, with the unit, of the chart that it is drawn in, which
	// neighbours share; empty: it is not drawn.
	Chart string
	// Counter says that the database counts it since its start. It is kept as the growth
	// per second.
	Counter bool
	// Scale is what is 1 in the chart; 0: as Name says.
	Scale float64
}

// Megabyte is the Metric.Scale of bytes.
const Megabyte = 1e6

// Sample is one answer.
type Sample struct {
	Server string // that answered, without secrets; empty: it is all of them
	// Fresh says that what is counted cannot be compared with the sample before: another
	// server answered, or over another connection.
	Fresh  bool
	Values []float64 // one a Metric; NaN is not known
	State  []byte    // one JSON value of a few kilobytes: which server does what; nil: there is none
}

// ParseValue reads a number as a server writes it; NaN where it is none.
func ParseValue(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}
