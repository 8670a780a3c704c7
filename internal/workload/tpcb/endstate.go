package tpcb

import (
	"fmt"

	"stroppy/internal/history"
	"stroppy/internal/workload/dataset"
)

// books are the sums of an end state, of which the first three are the same as long
// as nobody changes the tables while they are read.
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

// row keeps one row of the three tables.
func (e *endRows) row(k kind, id, balance, version, last int64) error {
	e.report.Row()
	n, ok := e.size.number(k, id)
	if !ok {
		return e.end.Unexpected(fmt.Sprintf("a row %s %d, which the load did not make", kindNames[k], id))
	}
	e.books.moved[k] += balance
	return e.end.Object(history.Object{N: n, Value: balance, Version: uint64(version), Writer: history.ID(last)})
}

// opening keeps what row n held when the data were first driven, beyond what the
// history tells.
func (e *endRows) opening(n uint64, balance int64) error {
	k, _ := e.size.place(n)
	if k == noKind {
		return e.end.Unexpected(fmt.Sprintf("an opening of row %d, which the load did not make", n))
	}
	e.books.moved[k] -= balance
	return e.end.Row(history.Row{Mark: history.Opening, Object: n, Amount: balance})
}

// bareRun keeps that a run kept no history.
func (e *endRows) bareRun(run uint64) error {
	e.books.bare++
	return e.end.Row(history.Row{Transaction: history.NewID(run, 0, 0), Mark: history.Unkept})
}

// void keeps the tombstone of a transaction.
func (e *endRows) void(id history.ID) error {
	e.report.Row()
	return e.end.Row(history.Row{Transaction: id, Mark: history.Tombstone})
}

// posting is one row of the history.
type posting struct {
	id                         history.ID // 0: somebody else's
	account, teller, branch    int64      // ids
	delta                      int64
	accountV, tellerV, branchV int64 // the versions that it made
}

// posting keeps one row of the history as three legs.
func (e *endRows) posting(p posting) error {
	e.report.Row()
	e.books.history += p.delta
	for i, leg := range [...]struct {
		kind    kind
		id      int64
		version int64
	}{{account, p.account, p.accountV}, {teller, p.teller, p.tellerV}, {branch, p.branch, p.branchV}} {
		n, ok := e.size.number(leg.kind, leg.id)
		if !ok {
			if err := e.end.Unexpected(fmt.Sprintf("a row of the history of transaction %v on %s %d, which the load did not make", p.id, kindNames[leg.kind], leg.id)); err != nil {
				return err
			}
			continue
		}
		err := e.end.Row(history.Row{Transaction: p.id, Number: uint32(i), Object: n, Amount: p.delta, Version: uint64(leg.version)})
		if err != nil {
			return err
		}
	}
	return nil
}
