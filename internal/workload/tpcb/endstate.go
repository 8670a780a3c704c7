package tpcb

import (
	"fmt"

	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// books holds the sums of an end state. The first three are equal as long as nobody changes the tables during the
// reads.
type books struct {
	moved   [noKind]int64 // of all rows of a kind: balances less openings
	history int64         // of the deltas of all rows of the history
	bare    int           // runs that kept no history
}

func (b *books) agree() bool {
	return b.moved[branch] == b.moved[teller] && b.moved[teller] == b.moved[account] &&
		(b.bare > 0 || b.history == b.moved[account])
}

// endRows turns what a database holds into the end state, whose legs are those that
// totals.GroupsInput describes.
type endRows struct {
	size   size
	end    *history.EndWriter
	report dataset.Progress
	books  books
}

func (e *endRows) row(k kind, id int64, s workload.State) error {
	e.report.Row()
	n, ok := e.size.number(k, id)
	if !ok {
		return e.end.Unexpected(fmt.Sprintf("a row %s %d, which the load did not make", kindNames[k], id))
	}
	e.books.moved[k] += s.Balance
	return e.end.Object(s.Object(n))
}

// opening keeps what row n held when the data were first driven, beyond what the
// history says.
func (e *endRows) opening(n uint64, balance int64) error {
	k, _ := e.size.place(n)
	if k == noKind {
		return e.end.Unexpected(fmt.Sprintf("an opening of row %d, which the load did not make", n))
	}
	e.books.moved[k] -= balance
	return e.end.Row(history.Row{Mark: history.Opening, Object: n, Amount: balance})
}

func (e *endRows) bareRun(run uint64) error {
	e.books.bare++
	return e.end.Row(history.Row{Transaction: history.NewID(run, 0, 0), Mark: history.Unkept})
}

func (e *endRows) tombstone(id history.ID) error {
	e.report.Row()
	return e.end.Row(history.Row{Transaction: id, Mark: history.Tombstone})
}

// posting is one row of the history.
type posting struct {
	id             history.ID // 0: somebody else's
	rows, versions [operations]int64
	delta          int64
}

// posting keeps one row of the history as three legs.
func (e *endRows) posting(p posting) error {
	e.report.Row()
	e.books.history += p.delta
	for i, id := range p.rows {
		k := kindOf(i)
		n, ok := e.size.number(k, id)
		var err error
		if ok {
			err = e.end.Row(history.Row{Transaction: p.id, Number: uint32(i), Object: n, Amount: p.delta, Version: uint64(p.versions[i])})
		} else {
			err = e.end.Unexpected(fmt.Sprintf("a row of the history of transaction %v on %s %d, which the load did not make", p.id, kindNames[k], id))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
