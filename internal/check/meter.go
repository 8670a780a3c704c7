package check

import (
	"context"
	"runtime"

	"stroppy/internal/history"
)

// Meter measures the transactions of the histories while the checks read them, which saves a second reading.
type Meter struct {
	// Worker returns a function that receives the transactions read by one goroutine. It is called once for
	// each goroutine, before reading starts.
	Worker func() func(tx *history.Transaction)

	// Whole reports whether the checks passed on every transaction exactly once.
	Whole bool
}

// Workers returns one function for each of n goroutines. The functions are nil if there is no meter.
func (m *Meter) Workers(n int) []func(tx *history.Transaction) {
	list := make([]func(tx *history.Transaction), n)
	if m != nil {
		for i := range list {
			list[i] = m.Worker()
		}
	}
	return list
}

// End records the error that ended the reading, or nil.
func (m *Meter) End(problem error) {
	if m != nil {
		m.Whole = problem == nil
	}
}

// Read reads all transactions of a source for the measurement only.
func (m *Meter) Read(ctx context.Context, source Source) error {
	workers := runtime.GOMAXPROCS(0)
	measure := m.Workers(workers)
	err := EachTransaction(ctx, source, workers, func(worker int, _ int64, tx *history.Transaction) { measure[worker](tx) })
	m.End(err)
	return err
}
