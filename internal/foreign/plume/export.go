package plume

import (
	"fmt"
	"io"

	"stroppy/internal/check"
	"stroppy/internal/check/sessions"
	"stroppy/internal/foreign"
	"stroppy/internal/history"
)

// export writes a recorded run whose operations record the writer of what they saw. A client is a session.
// The value that a transaction wrote is its number, made of the client and the sequence number; 0 is the
// value before the run.
//
// A transaction of unknown outcome may have taken effect at any later time. If it was read, it becomes its
// own session; otherwise it is omitted. The reads of a rejected transaction are written, because they are the
// reason of the rejection.
func export(run *history.Reader, to io.Writer) (foreign.Written, error) {
	e := exporter{run: run.Header().Run, earlier: map[uint64]history.ID{}, lines: lineWriter{to: to}, sessions: map[uint64]bool{}}
	doubtful, err := e.inDoubt(run)
	if err != nil {
		return e.written, err
	}
	e.doubtful = doubtful
	for record, err := range run.Transactions() {
		if err == nil {
			err = e.transaction(record.Transaction)
		}
		if err != nil {
			return e.written, err
		}
	}
	if e.reads == 0 {
		return e.written, &foreign.InputError{What: "no transaction of this run recorded whose value it had read, and without reads a history says nothing"}
	}
	e.leave(e.unread, "transaction", "whose outcome is unknown, and which nobody read, left out")
	e.leave(e.broken, "read", "of what no transaction had written left out")
	e.written.Sessions = len(e.sessions)
	return e.written, e.lines.flush()
}

// exporter is the state of export.
type exporter struct {
	run      uint64
	doubtful map[history.ID]bool   // the unknown ones that wrote; true: their write was read
	earlier  map[uint64]history.ID // the writer of each object before the run, as far as it was seen
	sessions map[uint64]bool
	lines    lineWriter
	written  foreign.Written

	reads, unread, broken int
}

// inDoubt returns the transactions of unknown outcome that wrote, and whether their writes were read.
func (e *exporter) inDoubt(run *history.Reader) (map[history.ID]bool, error) {
	found := map[history.ID]bool{}
	for record, err := range run.Transactions() {
		if err != nil {
			return nil, err
		}
		if record.Outcome == history.Unknown && !record.Kind.ReadOnly() {
			found[record.ID] = false
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	for record, err := range run.Transactions() {
		if err != nil {
			return nil, err
		}
		for i := range record.Ops {
			if op := &record.Ops[i]; saw(record.Transaction, op) {
				if _, doubtful := found[op.Writer]; doubtful && op.Writer != record.ID {
					found[op.Writer] = true
				}
			}
		}
	}
	return found, nil
}

// saw reports whether the read of an operation counts. Reads of aborted or unknown transactions decided
// nothing.
func saw(tx *history.Transaction, op *history.Op) bool {
	return op.Observed && (tx.Outcome == history.Committed || tx.Outcome == history.Rejected)
}

// transaction writes one transaction.
func (e *exporter) transaction(tx *history.Transaction) error {
	session, number := int64(tx.ID.Client()), e.number(tx.ID)
	switch {
	case tx.Outcome == history.Aborted:
		number = abortedTransaction
	case tx.Outcome == history.Unknown && tx.Kind.ReadOnly():
		return nil
	case tx.Outcome == history.Unknown && !e.doubtful[tx.ID]:
		e.unread++
		return nil
	case tx.Outcome == history.Unknown:
		session = number + 1<<(history.ClientBits+1)
	}
	before := e.written.Operations
	for i := range tx.Ops {
		if err := e.operation(tx, &tx.Ops[i], session, number); err != nil {
			return err
		}
	}
	if e.written.Operations > before && number != abortedTransaction {
		e.written.Transactions++
		e.sessions[uint64(session)] = true
	}
	return e.lines.err
}

// operation writes a transaction's read of an object, and then its write.
func (e *exporter) operation(tx *history.Transaction, op *history.Op, session, number int64) error {
	if saw(tx, op) {
		switch op.State {
		case history.Broken, history.Foreign:
			e.broken++
		default:
			value, err := e.seen(op)
			if err != nil {
				return err
			}
			e.reads++
			e.line(sessions.Op{Key: int64(op.Object), Value: value}, session, number)
		}
	}
	if op.Write && tx.Outcome != history.Rejected {
		e.line(sessions.Op{Key: int64(op.Object), Value: e.number(tx.ID), Write: true}, session, number)
	}
	return nil
}

func (e *exporter) line(op sessions.Op, session, number int64) {
	e.written.Operations++
	e.lines.operation(&op, session, number)
}

// number returns the number of a transaction of this run, which is also the value that it wrote.
func (e *exporter) number(id history.ID) int64 { return int64(id - history.NewID(e.run, 0, 0)) }

// seen returns the value that an operation read. Values of other runs existed before, at most one for each
// object.
func (e *exporter) seen(op *history.Op) (int64, error) {
	if op.Writer == 0 || op.Writer.Run() == e.run {
		if op.Writer == 0 {
			return 0, nil
		}
		return e.number(op.Writer), nil
	}
	if other, known := e.earlier[op.Object]; known && other != op.Writer {
		return 0, &foreign.InputError{What: fmt.Sprintf("object %d was written by run %d during this run, whose history alone is no whole one", op.Object, op.Writer.Run())}
	}
	e.earlier[op.Object] = op.Writer
	return 0, nil
}

// leave records what was omitted.
func (e *exporter) leave(n int, noun, what string) {
	if n > 0 {
		e.written.Left = append(e.written.Left, check.Plural(n, noun)+" "+what)
	}
}
