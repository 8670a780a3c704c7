package memory

import (
	"bytes"
	"slices"

	"stroppy/internal/db"
)

// The mutants here let a writing transaction commit on top of what it should not
// have seen.

// lostUpdate gives a writer an old version of one key and does not validate it.
type lostUpdate struct {
	mutation
	stale map[*transaction]string // the key of which it has an old version
}

func (m *lostUpdate) read(tx *transaction, keys [][]byte, out []db.Entry) error {
	first := !tx.readOnly && !tx.started
	if err := m.store.read(tx, keys, out); err != nil || !first || m.armed == 0 || len(keys) == 0 {
		return err
	}
	start := m.random.IntN(len(keys))
	for i := range keys {
		i = (start + i) % len(keys)
		r := m.recordAt(string(keys[i]))
		if r == nil {
			continue
		}
		if old, ok := r.before(len(r.versions) - 1); ok && out[i].Found {
			out[i], tx.reads[i].seen = old.entry(), old.commit
			m.stale[tx] = r.key
			m.take()
			return nil
		}
	}
	return nil
}

// commit aborts a transaction that does not write the key it saw an old version
// of: that would be another anomaly than this one.
func (m *lostUpdate) commit(tx *transaction) error {
	m.arm(tx)
	key, stale := m.stale[tx]
	if !stale {
		return m.store.commit(tx)
	}
	delete(m.stale, tx)
	if !tx.has(key) {
		m.giveBack()
		return errConflict
	}
	m.accept(tx, key)
	if err := m.store.commit(tx); err != nil {
		m.giveBack()
		return err
	}
	m.hit()
	return nil
}

func (m *lostUpdate) forget(tx *transaction) {
	if _, stale := m.stale[tx]; stale {
		delete(m.stale, tx)
		m.giveBack()
	}
}

// writeSkew gives a writer snapshot isolation in place of serializability: the
// snapshot before an earlier writer, and validation of what it writes only.
type writeSkew struct {
	mutation
	journal *journal
	skewed  map[*transaction]skew
}

// skew is a pair of transactions in the making. The earlier one read both keys
// and wrote one; the later must write the other one.
type skew struct {
	earlier uint64 // its commit
	wrote   string
	read    []string // and did not write
}

func (m *writeSkew) read(tx *transaction, keys [][]byte, out []db.Entry) error {
	if !tx.readOnly && !tx.started && m.armed > 0 {
		if s, ok := m.candidate(keys); ok {
			tx.snapshot, tx.started = s.earlier-1, true
			m.skewed[tx] = s
			m.take()
		}
	}
	return m.store.read(tx, keys, out)
}

// candidate finds a commit that read two of the keys, wrote one of them, and
// since which none of the others has changed.
func (m *writeSkew) candidate(keys [][]byte) (skew, bool) {
	for i, key := range keys {
		r := m.recordAt(string(key))
		if r == nil {
			continue
		}
		others := uint64(0) // the newest change among the others
		for j := range keys {
			if !bytes.Equal(keys[i], keys[j]) {
				others = max(others, m.latest(string(keys[j])).commit)
			}
		}
		for v := len(r.versions) - 1; v >= 1 && r.versions[v].commit > others; v-- {
			commit := r.versions[v].commit
			earlier, known := m.journal.of(commit)
			if !known {
				continue
			}
			read := slices.DeleteFunc(earlier.readOnlyKeys(), func(k string) bool { return place(keys, k) < 0 })
			if len(read) > 0 && r.versions[v-1].value != nil {
				return skew{commit, r.key, read}, true
			}
		}
	}
	return skew{}, false
}

func (m *writeSkew) commit(tx *transaction) error {
	m.arm(tx)
	s, skewed := m.skewed[tx]
	if !skewed {
		err := m.store.commit(tx)
		if err == nil {
			m.journal.add(tx)
		}
		return err
	}
	if tx.has(s.wrote) || !slices.ContainsFunc(s.read, tx.has) {
		m.forget(tx)
		return errConflict
	}
	for _, r := range tx.reads {
		if !tx.has(r.key) {
			m.accept(tx, r.key)
		}
	}
	if err := m.store.commit(tx); err != nil {
		m.forget(tx)
		return err
	}
	delete(m.skewed, tx)
	m.journal.drop(s.earlier)
	m.hit()
	return nil
}

// forget gives up the earlier writer too: another try would fail again.
func (m *writeSkew) forget(tx *transaction) {
	if s, skewed := m.skewed[tx]; skewed {
		delete(m.skewed, tx)
		m.journal.drop(s.earlier)
		m.giveBack()
	}
}
