package elle

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	"stroppy/internal/check"
	"stroppy/internal/check/lists"
	"stroppy/internal/foreign"
	"stroppy/internal/history"
)

// mostOfRange limits the lists of a range, which are written one by one.
const mostOfRange = 1 << 12

// event is the beginning or the end of a transaction.
type event struct {
	at  int64
	of  uint32
	end bool
}

// written is a transaction that waits to be written.
type written struct {
	process     uint64
	outcome     history.Outcome
	asked, done []byte // its :value when it began and when it ended
	ops         int
}

// writer writes a history in the order of time.
type writer struct {
	to      *bufio.Writer
	all     []written
	events  []event
	text    []byte
	index   int
	ranges  int
	process map[uint64]uint64 // of a client
	clients uint64            // processes so far
	busy    map[uint64]bool
	waiting map[uint64]event // by process, what begins at the instant at which its last one ends
}

// Write writes transactions as a history in EDN. After a transaction of unknown outcome, a client continues
// as another process, as in Jepsen, because nothing is known to follow that transaction.
func Write(to io.Writer, transactions iter.Seq2[*lists.Transaction, error]) (foreign.Written, error) {
	w := &writer{to: bufio.NewWriterSize(to, 1<<16), process: map[uint64]uint64{}, busy: map[uint64]bool{}, waiting: map[uint64]event{}}
	done := foreign.Written{}
	for t, err := range transactions {
		if err != nil {
			return done, fmt.Errorf("read the run: %w", err)
		}
		if err := w.take(t); err != nil {
			return done, err
		}
	}
	// An end at the time of another's beginning is simultaneous with it.
	slices.SortStableFunc(w.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), boolean(a.end)-boolean(b.end))
	})
	for _, e := range w.events {
		w.write(e)
	}
	done.Sessions, done.Transactions = int(w.clients), len(w.all)
	for i := range w.all {
		done.Operations += w.all[i].ops
	}
	if w.ranges > 0 {
		done.Left = append(done.Left, check.Plural(w.ranges, "read")+" of ranges are written as reads of each list in them: the form has no words for predicates")
	}
	return done, w.to.Flush()
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *writer) take(t *lists.Transaction) error {
	process, known := w.process[t.Client]
	if !known {
		process = w.clients
		w.process[t.Client] = process
		w.clients++
	}
	if t.Outcome == history.Unknown {
		delete(w.process, t.Client)
	}
	x := written{process: process, outcome: t.Outcome}
	for _, done := range []bool{false, true} {
		first := len(w.text)
		w.text = append(w.text, '[')
		count := 0
		for i := range t.Ops {
			n, err := w.step(&t.Ops[i], done && t.Outcome == history.Committed, count > 0)
			if err != nil {
				return err
			}
			count += n
		}
		w.text = append(w.text, ']')
		if x.ops = count; done {
			x.done = w.text[first:len(w.text):len(w.text)]
		} else {
			x.asked = w.text[first:len(w.text):len(w.text)]
		}
	}
	if cap(w.text)-len(w.text) < 1<<12 { // what was written stays where it is
		w.text = make([]byte, 0, 1<<20)
	}
	n := uint32(len(w.all))
	w.all = append(w.all, x)
	w.events = append(w.events, event{t.Begin, n, false}, event{max(t.Begin, t.End), n, true})
	return nil
}

// step writes an operation, and returns the number of operations in this format.
func (w *writer) step(op *lists.Op, done, behind bool) (int, error) {
	if behind {
		w.text = append(w.text, ' ')
	}
	switch op.Kind {
	case lists.Append:
		w.text = append(w.text, "[:append "...)
		w.text = strconv.AppendUint(w.text, op.Key, 10)
		w.text = append(w.text, ' ')
		w.text = append(strconv.AppendUint(w.text, op.Element, 10), ']')
		return 1, nil
	case lists.Read:
		w.read(op.Key, op.List, done && op.Known)
		return 1, nil
	case lists.Range:
		if op.High < op.Key || op.High-op.Key >= mostOfRange {
			return 0, &foreign.InputError{What: fmt.Sprintf("it has a read of all lists from %d to %d, and of a range of more than %d the form has no words", op.Key, op.High, mostOfRange)}
		}
		if !done {
			w.ranges++
		}
		for key := op.Key; ; key++ {
			var list []uint64
			if at := slices.IndexFunc(op.Rows, func(r lists.Row) bool { return r.Key == key }); at >= 0 {
				list = op.Rows[at].List
			}
			if w.read(key, list, done && op.Known); key == op.High {
				return int(op.High - op.Key + 1), nil
			}
			w.text = append(w.text, ' ')
		}
	}
	return 0, &foreign.InputError{What: "it deletes lists, for which the form has no words"}
}

func (w *writer) read(key uint64, list []uint64, known bool) {
	w.text = append(w.text, "[:r "...)
	w.text = append(strconv.AppendUint(w.text, key, 10), ' ')
	if !known {
		w.text = append(w.text, "nil]"...)
		return
	}
	w.text = append(w.text, '[')
	for i, e := range list {
		if i > 0 {
			w.text = append(w.text, ' ')
		}
		w.text = strconv.AppendUint(w.text, e, 10)
	}
	w.text = append(w.text, "]]"...)
}

// write writes an event. A process begins after its last transaction has ended.
func (w *writer) write(e event) {
	x := &w.all[e.of]
	if !e.end && w.busy[x.process] {
		w.waiting[x.process] = e
		return
	}
	w.busy[x.process] = !e.end
	kind, value := "invoke", x.asked
	if e.end {
		value = x.done
		kind = map[history.Outcome]string{history.Committed: "ok", history.Unknown: "info"}[x.outcome]
		if kind == "" {
			kind = "fail"
		}
	}
	fmt.Fprintf(w.to, "{:type :%s, :f :txn, :process %d, :time %d, :index %d, :value %s}\n", kind, x.process, e.at, w.index, value)
	w.index++
	if next, ok := w.waiting[x.process]; ok && e.end {
		delete(w.waiting, x.process)
		w.write(next)
	}
}
