package memory

import "slices"

// hides returns a mutant that hides entries of a range from writers.
func hides(hide func(m *mutation, tx *transaction, r span, found []entry) []entry) func(*mutation) {
	return func(m *mutation) {
		m.hide = func(tx *transaction, r span, found []entry) []entry { return hide(m, tx, r, found) }
	}
}

// phantom hides from a writer the youngest record of a range that a transaction, not a load, has inserted, and does
// not validate it. The writer must insert into the same range, so that each of the two misses the other's record.
func phantom(m *mutation, tx *transaction, r span, found []entry) []entry {
	youngest, at := uint64(0), -1
	for i, e := range found {
		v := m.records[e.key].versions[0]
		if inserted := len(m.commits[v.commit].reads) > 0; inserted && v.commit > youngest && m.isRecord(e.key) {
			youngest, at = v.commit, i
		}
	}
	if at < 0 {
		return found
	}
	m.deceive(tx, func() bool {
		return slices.ContainsFunc(tx.writes, func(w write) bool {
			return w.value != nil && w.key >= r.from && w.key < r.to && m.latest(w.key).value == nil
		})
	})
	return slices.Delete(found, at, at+1)
}
