package memory

import (
	"bytes"
	"slices"

	"stroppy/internal/db"
)

// The mutants here let a writing transaction commit on top of what it should not
// have seen.

// lostUpdate gives a writer an old version of one key and does not validate it. A
// transaction that does not write this key would be another anomaly than this one.
type lostUpdate struct{ mutation }

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
			m.deceive(tx, func() bool {
				m.accept(tx, r.key)
				return tx.has(r.key)
			})
			return nil
		}
	}
	return nil
}

// writeSkew gives a writer snapshot isolation in place of serializability: the
// snapshot before an earlier writer, and validation of what it writes only.
type writeSkew struct{ *journaled }

// skew is a pair of transactions in the making. The earlier one read both keys
// and wrote one; the later must write the other one.
type skew struct {
	earlier uint64 // its commit
	wrote   string
	read    []string // and did not write
}

// read gives each earlier writer one chance: after a conflict it would fail again.
func (m *writeSkew) read(tx *transaction, keys [][]byte, out []db.Entry) error {
	if !tx.readOnly && !tx.started && m.armed > 0 {
		if s, ok := m.candidate(keys); ok {
			tx.snapshot, tx.started = s.earlier-1, true
			delete(m.commits, s.earlier)
			m.deceive(tx, func() bool { return m.skews(tx, s) })
		}
	}
	return m.store.read(tx, keys, out)
}

// skews tells whether tx is the later one, and validates what it writes only.
func (m *writeSkew) skews(tx *transaction, s skew) bool {
	for _, r := range tx.reads {
		if !tx.has(r.key) {
			m.accept(tx, r.key)
		}
	}
	return !tx.has(s.wrote) && slices.ContainsFunc(s.read, tx.has)
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
			earlier, known := m.commits[commit]
			if !known {
				continue
			}
			read := slices.DeleteFunc(slices.Clone(earlier.reads), func(k string) bool {
				return slices.Contains(earlier.writes, k) || place(keys, k) < 0
			})
			if len(read) > 0 && r.versions[v-1].value != nil {
				return skew{commit, r.key, read}, true
			}
		}
	}
	return skew{}, false
}
