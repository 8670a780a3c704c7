package memory

import (
	"slices"

	"stroppy/internal/db"
)

// dirtyRead shows the writes of an aborted transaction to one reader.
//
// The aborted transaction is tried again under its own ledger key, and a try that
// found all as it was would commit just what the reader has seen: nothing dirty
// would remain. So its tries are refused until a record that the reader saw has
// moved on.
type dirtyRead struct {
	mutation
	leaks []*leak
}

// leak is the writes of one aborted transaction.
type leak struct {
	values  map[string][]byte // of the existing records that it wrote
	base    map[string]uint64 // the commit that they were at
	own     []string          // the keys that it had read as absent and wrote: they tell who it is
	read    bool              // by its one reader, who may be under way
	seen    []string          // the records that the reader saw
	refused int
}

// maxRefused bounds how often a leak refuses the transaction that it came from.
const maxRefused = 1000

func (m *dirtyRead) read(tx *transaction, keys [][]byte, out []db.Entry) error {
	first := !tx.started
	if err := m.store.read(tx, keys, out); err != nil || !first {
		return err
	}
	m.sweep()
	for _, l := range m.leaks {
		if slices.ContainsFunc(l.own, func(own string) bool { return place(keys, own) >= 0 }) {
			return nil
		}
	}
	for _, l := range m.leaks {
		if l.read {
			continue
		}
		l.seen = l.seen[:0]
		for i, key := range keys {
			if value, ok := l.values[string(key)]; ok {
				out[i] = db.Entry{Value: value, Found: true}
				l.seen = append(l.seen, string(key))
			}
		}
		if len(l.seen) > 0 {
			l.read = true
			tx.lie = &lie{stands: func() bool { return l.stands(tx) }, missed: func() { m.offer(l) }}
			return nil
		}
	}
	return nil
}

func (m *dirtyRead) commit(tx *transaction) error {
	m.sweep()
	if tx.lie != nil {
		return m.mutation.commit(tx)
	}
	m.arm(tx)
	if l := m.from(tx); l != nil {
		if l.refused++; l.refused > maxRefused {
			m.drop(l)
		}
		return errConflict
	}
	if m.armed > 0 && len(tx.writes) > 0 {
		if err := m.check(tx); err != nil {
			return err
		}
		if l := m.leak(tx); l != nil {
			m.leaks = append(m.leaks, l)
			m.take()
			return errConflict
		}
	}
	return m.store.commit(tx)
}

// stands lets a reader commit that only reads, or that writes one of the records it
// saw dirty: else its reads could be those of a later, honest try.
func (l *leak) stands(reader *transaction) bool {
	return len(reader.writes) == 0 && reader.readOnly || slices.ContainsFunc(l.seen, reader.has)
}

// offer gives the leak to the next reader, because its own has not committed.
func (m *dirtyRead) offer(l *leak) {
	if slices.Contains(m.leaks, l) {
		l.read = false
	} else {
		m.giveBack()
	}
}

// leak makes one of what the transaction wrote; nil if it changes no record or
// could not be told when it is tried again.
func (m *dirtyRead) leak(tx *transaction) *leak {
	l := &leak{values: make(map[string][]byte), base: make(map[string]uint64)}
	for _, u := range m.updates(tx) {
		w := tx.writes[u.write]
		l.values[w.key], l.base[w.key] = w.value, m.latest(w.key).commit
	}
	l.own = m.created(tx)
	if len(l.values) == 0 || len(l.own) == 0 {
		return nil
	}
	return l
}

// from returns the leak that a transaction is another try of; nil if of none.
func (m *dirtyRead) from(tx *transaction) *leak {
	for _, l := range m.leaks {
		if slices.ContainsFunc(l.own, tx.has) {
			return l
		}
	}
	return nil
}

// sweep drops the leaks that have moved on: a record that the reader saw, or any
// as long as there is no reader.
func (m *dirtyRead) sweep() {
	m.leaks = slices.DeleteFunc(m.leaks, func(l *leak) bool {
		for key, commit := range l.base {
			if (!l.read || slices.Contains(l.seen, key)) && m.latest(key).commit != commit {
				m.unread(l)
				return true
			}
		}
		return false
	})
}

func (m *dirtyRead) drop(l *leak) {
	m.leaks = slices.DeleteFunc(m.leaks, func(other *leak) bool { return other == l })
	m.unread(l)
}

// unread arms again the shot of a leak that goes without a reader. A reader that
// is under way decides for itself.
func (m *dirtyRead) unread(l *leak) {
	if !l.read {
		m.giveBack()
	}
}
