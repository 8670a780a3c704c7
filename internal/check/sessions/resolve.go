package sessions

import (
	"fmt"
	"slices"

	"stroppy/internal/check"
)

// initial is the transaction that wrote 0 to all keys before all others.
const initial = 0

// resolved is a history in which the writer of each read is known. Transactions are numbered from 1 in the history's
// order, so that the transactions of a session are consecutive.
type resolved struct {
	*History
	watch check.Watch

	distinct int      // number of different keys
	keys     int      // upper bound of the keys' numbers
	ids      []uint32 // by operation: the number of its key
	first    []uint32 // by session: its first transaction, with the end of the last session appended
	session  []uint32 // by transaction

	// The reads of transaction t from other transactions, in order, are [readRow[t], readRow[t+1]). The keys
	// that it wrote, each once, are [writeRow[t], writeRow[t+1]).
	readRow, writeRow []uint32
	readKey, readFrom []uint32 // key and writer
	readOp            []uint32 // the operation
	writeKey          []uint32

	wrong []wrongRead
}

// wrongRead is a read that no level allows.
type wrongRead struct {
	kind   readKind
	t      uint32
	op     uint32 // the read
	writer uint32 // the writer of the value; for notOwn, t
	own    int64  // for notOwn: the value that the reader had written
}

// readKind is the error of a read.
type readKind uint8

const (
	thinAir      readKind = iota // the value was never written
	aborted                      // the writer was aborted (G1a)
	intermediate                 // the writer overwrote the value (G1b)
	future                       // the reader wrote the value only later
	notOwn                       // the reader had written another value
)

func (r *resolved) transactions() uint32 { return uint32(len(r.Transactions)) }

// opsOf returns the range of transaction t's operations.
func (r *resolved) opsOf(t uint32) (from, to int) {
	if t > 1 {
		from = r.Transactions[t-2].End
	}
	return from, r.Transactions[t-1].End
}

// resolve finds the writer of each read.
func resolve(h *History, watch check.Watch) (*resolved, error) {
	if err := h.measure(); err != nil {
		return nil, err
	}
	r := &resolved{History: h, watch: watch, first: make([]uint32, 0, len(h.Sessions)+1)}
	n := len(h.Transactions)
	r.session = make([]uint32, n+1)
	t := uint32(1)
	for s := range h.Sessions {
		r.first = append(r.first, t)
		for ; int(t) <= h.Sessions[s].End; t++ {
			r.session[t] = uint32(s)
		}
	}
	r.first = append(r.first, t)
	abortedIDs := r.number()
	table, err := r.writes(abortedIDs)
	if err != nil {
		return nil, err
	}
	r.reads(table)
	return r, nil
}

// measure returns an error if the history exceeds the range of the numbers used here.
func (h *History) measure() error {
	switch {
	case len(h.Sessions) > MostSessions:
		return &InputError{What: fmt.Sprintf("it has %d sessions, and at most %d can be checked", len(h.Sessions), MostSessions)}
	case len(h.Ops)+len(h.Aborted) > Most:
		return &InputError{What: fmt.Sprintf("it has %d operations, and at most %d can be checked", len(h.Ops)+len(h.Aborted), Most)}
	case len(h.Ops)+len(h.Aborted) == 0:
		return &InputError{What: "it has no operation"}
	}
	return nil
}

// number numbers the keys, and returns the numbers of the aborted writes' keys.
func (r *resolved) number() []uint32 {
	all := len(r.Ops) + len(r.Aborted)
	r.ids = make([]uint32, len(r.Ops))
	abortedIDs := make([]uint32, len(r.Aborted))
	low, high := int64(0), int64(0)
	for i := range r.Ops {
		low, high = min(low, r.Ops[i].Key), max(high, r.Ops[i].Key)
	}
	for i := range r.Aborted {
		low, high = min(low, r.Aborted[i].Key), max(high, r.Aborted[i].Key)
	}
	if low == 0 && high < int64(4*all+1024) { // the keys are small numbers already
		used := make([]bool, high+1)
		for i := range r.Ops {
			r.ids[i] = uint32(r.Ops[i].Key)
			used[r.ids[i]] = true
		}
		for i := range r.Aborted {
			abortedIDs[i] = uint32(r.Aborted[i].Key)
			used[abortedIDs[i]] = true
		}
		for _, u := range used {
			if u {
				r.distinct++
			}
		}
		r.keys = len(used)
		return abortedIDs
	}
	known := newKeyTable(all)
	for i := range r.Ops {
		r.ids[i] = known.number(r.Ops[i].Key)
	}
	for i := range r.Aborted {
		abortedIDs[i] = known.number(r.Aborted[i].Key)
	}
	r.distinct, r.keys = int(known.count), int(known.count)
	return abortedIDs
}

// writes records the writer of each value of each key, and the keys that each transaction wrote.
func (r *resolved) writes(abortedIDs []uint32) (*writeTable, error) {
	count := len(r.Aborted)
	for i := range r.Ops {
		if r.Ops[i].Write {
			count++
		}
	}
	table := newWriteTable(count)
	r.writeRow = make([]uint32, len(r.Transactions)+2)
	r.writeKey = make([]uint32, 0, count)
	last := make([]ownWrite, r.keys)
	at := 0
	for t := uint32(1); t <= r.transactions(); t++ {
		r.writeRow[t] = uint32(len(r.writeKey))
		for end := r.Transactions[t-1].End; at < end; at++ {
			op := &r.Ops[at]
			if !op.Write {
				continue
			}
			key := r.ids[at]
			slot, err := table.add(op, key, t)
			if err != nil {
				return nil, err
			}
			if l := &last[key]; l.t == t {
				table.slots[l.slot].writer |= overwritten
			} else {
				r.writeKey = append(r.writeKey, key)
			}
			last[key] = ownWrite{t, slot}
		}
	}
	r.writeRow[r.transactions()+1] = uint32(len(r.writeKey))
	for i := range r.Aborted {
		if _, err := table.add(&r.Aborted[i], abortedIDs[i], abortedWriter); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// ownWrite is a transaction's last write of a key, with its slot in the table.
type ownWrite struct{ t, slot uint32 }

// reads finds the writers of the reads.
func (r *resolved) reads(table *writeTable) {
	count := len(r.Ops) + len(r.Aborted) - table.count
	r.readRow = make([]uint32, len(r.Transactions)+2)
	r.readKey, r.readFrom, r.readOp = make([]uint32, 0, count), make([]uint32, 0, count), make([]uint32, 0, count)
	own := make([]ownValue, r.keys)
	at := 0
	for t := uint32(1); t <= r.transactions(); t++ {
		r.readRow[t] = uint32(len(r.readKey))
		for end := r.Transactions[t-1].End; at < end; at++ {
			op, key := &r.Ops[at], r.ids[at]
			switch o := &own[key]; {
			case op.Write:
				*o = ownValue{op.Value, t}
			case o.t != t:
				r.read(table, op, t, uint32(at))
			case o.value != op.Value:
				r.wrong = append(r.wrong, wrongRead{kind: notOwn, t: t, op: uint32(at), writer: t, own: o.value})
				if !r.wroteEarlier(t, uint32(at)) {
					r.read(table, op, t, uint32(at))
				}
			}
		}
	}
	r.readRow[r.transactions()+1] = uint32(len(r.readKey))
}

// ownValue is the value that a transaction last wrote to a key.
type ownValue struct {
	value int64
	t     uint32
}

// wroteEarlier reports whether a transaction wrote the value that an operation read before that operation.
func (r *resolved) wroteEarlier(t, at uint32) bool {
	from, _ := r.opsOf(t)
	return slices.ContainsFunc(r.Ops[from:at], func(op Op) bool {
		return op.Write && op.Key == r.Ops[at].Key && op.Value == r.Ops[at].Value
	})
}

// read records a read of a key that the transaction has not written before.
func (r *resolved) read(table *writeTable, op *Op, t, at uint32) {
	key, writer := r.ids[at], uint32(initial)
	if op.Value != 0 {
		found := table.find(key, op.Value)
		switch {
		case found == nil:
			r.wrong = append(r.wrong, wrongRead{kind: thinAir, t: t, op: at})
			return
		case found.writer == abortedWriter:
			r.wrong = append(r.wrong, wrongRead{kind: aborted, t: t, op: at})
			return
		}
		writer = found.writer &^ overwritten
		switch {
		case writer == t:
			r.wrong = append(r.wrong, wrongRead{kind: future, t: t, op: at, writer: t})
			return
		case found.writer != writer:
			r.wrong = append(r.wrong, wrongRead{kind: intermediate, t: t, op: at, writer: writer})
		}
	}
	r.readKey = append(r.readKey, key)
	r.readFrom = append(r.readFrom, writer)
	r.readOp = append(r.readOp, at)
}
