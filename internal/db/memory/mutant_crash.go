package memory

import "slices"

// crash loses the last n acknowledged commits, as a log that was never synced.
type crash struct {
	mutation
	n   int
	log []logged // the last n commits, newest last
}

// logged is what one commit changed.
type logged struct {
	commit uint64
	update bool // it changed existing records: it is no part of a load
	before []change
}

// change is a key and what it was before.
type change struct {
	key    string
	before version
}

func (m *crash) apply(tx *transaction) error {
	entry := logged{update: m.isUpdate(tx)}
	for _, w := range tx.writes {
		entry.before = append(entry.before, change{w.key, m.latest(w.key)})
	}
	m.store.apply(tx)
	entry.commit = tx.number
	if len(m.log) == m.n {
		m.log = slices.Delete(m.log, 0, 1)
	}
	m.log = append(m.log, entry)
	if m.armed > 0 && len(m.log) == m.n && !slices.ContainsFunc(m.log, func(l logged) bool { return !l.update }) {
		m.undo()
		m.fire()
	}
	return nil
}

// undo takes the commits in the log back, newest first.
func (m *crash) undo() {
	for _, l := range slices.Backward(m.log) {
		for _, c := range l.before {
			r, known := m.records[c.key]
			if !known || r.latest().commit != l.commit {
				continue
			}
			r.versions = slices.Delete(r.versions, len(r.versions)-1, len(r.versions))
			if len(r.versions) == 0 && c.before.commit > 0 {
				r.versions = append(r.versions, c.before)
			}
		}
	}
	m.log = m.log[:0]
}

// unknownLies answers a commit with unknown and applies it only after a look-up
// has found it absent and closed its id.
type unknownLies struct {
	mutation
	kept map[string]*unanswered // by the keys that tell which transaction it is
}

// unanswered is a transaction that waits for its look-up.
type unanswered struct {
	own    []string // the keys that it had read as absent and wrote
	writes []write
	before [][]byte // the value under each write at that time; nil if there was none
}

// maxKept bounds how many transactions wait for a look-up.
const maxKept = 256

func (m *unknownLies) apply(tx *transaction) error {
	if u := m.lookedUp(tx); u != nil {
		lookUp := !m.isUpdate(tx)
		m.store.apply(tx)
		for _, key := range u.own {
			delete(m.kept, key)
		}
		if lookUp && m.applyLate(u) {
			m.hit()
		} else {
			m.giveBack()
		}
		return nil
	}
	if own := m.created(tx); m.armed > 0 && m.isUpdate(tx) && len(own) > 0 && len(m.kept) < maxKept {
		u := &unanswered{own: own, writes: slices.Clone(tx.writes)}
		for _, w := range tx.writes {
			u.before = append(u.before, m.latest(w.key).value)
		}
		for _, key := range own {
			m.kept[key] = u
		}
		m.take()
		return errUnknown
	}
	m.store.apply(tx)
	return nil
}

// lookedUp returns the waiting transaction of which tx writes a key of its own.
func (m *unknownLies) lookedUp(tx *transaction) *unanswered {
	for _, w := range tx.writes {
		if u := m.kept[w.key]; u != nil {
			return u
		}
	}
	return nil
}

// applyLate applies a transaction whose look-up has said that it never will be.
// Additive columns move by what it had wanted; false if that is forbidden now.
func (m *unknownLies) applyLate(u *unanswered) bool {
	late := transaction{writes: u.writes}
	for i, w := range late.writes {
		now := m.latest(w.key).value
		space := m.space(w.key)
		if u.before[i] == nil || now == nil || w.value == nil || !fits(space, u.before[i]) || !fits(space, now) {
			continue
		}
		rebased := slices.Clone(w.value)
		for _, c := range columns(space, additive) {
			setNumber(rebased, c, number(now, c)+number(w.value, c)-number(u.before[i], c))
		}
		late.writes[i].value = rebased
	}
	if m.constrain(&late) != nil {
		return false
	}
	m.store.apply(&late)
	return true
}
