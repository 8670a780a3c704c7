package kv

import (
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// forget takes back what an earlier try has set.
func forget(tx *history.Transaction) {
	if tx.Kind == history.Scan {
		tx.Ops = tx.Ops[:1]
	}
	workload.Forget(tx)
}

// absent notes that there is no such record.
func absent(op *history.Op) {
	op.Observed, op.State, op.Value, op.Writer = true, history.Absent, 0, 0
}

// observe notes what a record's value says of itself: who wrote it and whether it is
// whole. How many bytes it has stands in Balance.
func (f *formula) observe(op *history.Op, value []byte) {
	writer, whole := f.parse(value, op.Object)
	op.Observed, op.State, op.Value, op.Writer = true, history.Broken, int64(len(value)), writer
	if whole {
		op.State = history.Whole
	}
}

// own says that a record was last written by this transaction.
func own(op *history.Op, id history.ID) bool { return op.State == history.Whole && op.Writer == id }

// scanned takes the records that a scan brings. The first operation is where the scan
// starts: whether there is a record at that very key.
type scanned struct {
	formula *formula
	tx      *history.Transaction
	left    int64 // records that are still asked for
	scratch []byte
}

func (s *scanned) start(tx *history.Transaction) {
	s.tx, s.left = tx, tx.Ops[0].Amount
	absent(&tx.Ops[0])
}

// add notes one record.
func (s *scanned) add(key, value []byte) {
	s.left--
	n, ok := s.formula.number(key, s.scratch)
	switch {
	case !ok:
		s.tx.Ops = append(s.tx.Ops, history.Op{Observed: true, State: history.Foreign, Value: int64(len(value))})
	case len(s.tx.Ops) == 1 && s.tx.Ops[0].State == history.Absent && n == s.tx.Ops[0].Object:
		s.formula.observe(&s.tx.Ops[0], value)
	default:
		op := history.Op{Object: n}
		s.formula.observe(&op, value)
		s.tx.Ops = append(s.tx.Ops, op)
	}
}
