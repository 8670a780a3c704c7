package memory

// span is the keys with from ≤ key < to.
type span struct{ from, to string }

// entry is a transaction's view of a key in a range.
type entry struct {
	key   string
	value []byte // never changed
}

// readRange reads a range at the transaction's snapshot, as read reads keys. It skips later entries.
func (s *store) readRange(tx *transaction, r span) (found []entry, err error) {
	if !tx.started {
		tx.snapshot, tx.started = s.commits, true
	}
	for record := range s.order.within(r) {
		v, kept := record.at(tx.snapshot)
		if !kept {
			return nil, errTooOld
		}
		if v.value != nil {
			found = append(found, entry{record.key, v.value})
		}
	}
	if !tx.readOnly {
		tx.ranges = append(tx.ranges, r)
	}
	return found, nil
}

// changed reports whether a commit after the snapshot wrote, made or deleted a key of the range.
func (s *store) changed(r span, snapshot uint64) bool {
	for record := range s.order.within(r) {
		if record.latest().commit > snapshot {
			return true
		}
	}
	return false
}
