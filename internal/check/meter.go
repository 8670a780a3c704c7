package check

import (
	"context"
	"runtime"

	"stroppy/internal/history"
)

// Meter measures the transactions of the histories while the checks read them, so that
// nobody reads them once more for that.
type Meter struct {
	// Worker makes what one goroutine hands the transactions to that it reads. It is called
	// for each goroutine before any of them reads.
	Worker func() func(tx *history.Transaction)

	// Whole says that the checks handed over all transactions, each of them once.
	Whole bool
}

// Workers makes what so many goroutines hand transactions to; without a meter they are nil.
func (m *Meter) Workers(n int) []func(tx *history.Transaction) {
	list := make([]func(tx *history.Transaction), n)
	if m != nil {
		for i := range list {
			list[i] = m.Worker()
		}
	}
	return list
}

// End says how the reading ended.
func (m *Meter) End(problem error) {
	if m != nil {
		m.Whole = problem == nil
	}
}

// Read hands over all transactions of a source for the measurement alone.
func (m *Meter) Read(ctx context.Context, source Source) error {
	workers := runtime.GOMAXPROCS(0)
	measure := m.Workers(workers)
	err := EachTransaction(ctx, source, workers, func(worker int, _ int64, tx *history.Transaction) { measure[worker](tx) })
	m.End(err)
	return err
}
