package memory

import (
	"slices"

	"stroppy/internal/db"
)

// strikes returns a mutant whose strike changes the writes of a transaction before they are applied. Without an
// opportunity strike changes nothing and returns false.
func strikes(strike func(m *mutation, tx *transaction, updates []update) bool) func(*mutation) {
	return func(m *mutation) {
		m.apply = func(tx *transaction, updates []update) error {
			if m.armed > 0 && len(updates) > 0 && strike(m, tx, updates) {
				m.fire()
			}
			m.store.apply(tx)
			return nil
		}
	}
}

func lostAck(_ *mutation, tx *transaction, _ []update) bool {
	tx.writes = tx.writes[:0]
	return true
}

// torn drops one record; if columns of money are declared, one whose money changes.
func torn(m *mutation, tx *transaction, updates []update) bool {
	updates = slices.DeleteFunc(updates, func(u update) bool {
		c, ok := money(u.space)
		return ok && number(u.old, c) == number(tx.writes[u.write].value, c)
	})
	if len(tx.writes) < 2 || len(updates) == 0 {
		return false
	}
	i := updates[m.random.IntN(len(updates))].write
	tx.writes = slices.Delete(tx.writes, i, i+1)
	return true
}

// phantomMoney adds some cents to a written record; no shot cancels another in the total.
func phantomMoney(m *mutation, tx *transaction, updates []update) bool {
	u := updates[m.random.IntN(len(updates))]
	c, ok := money(u.space)
	if ok {
		add(tx.writes[u.write].value, c, 1+m.random.Int64N(100))
	}
	return ok
}

// swap moves some cents from one written record to another.
func swap(m *mutation, tx *transaction, updates []update) bool {
	i := m.random.IntN(len(updates))
	from, to := updates[i], updates[(i+1)%len(updates)]
	source, pays := money(from.space)
	sink, takes := money(to.space)
	down, up := tx.writes[from.write], tx.writes[to.write]
	if !pays || !takes || down.key == up.key || number(down.value, source) < 1 {
		return false
	}
	cents := min(1+m.random.Int64N(100), number(down.value, source))
	add(down.value, source, -cents)
	add(up.value, sink, cents)
	return true
}

func ghost(m *mutation) {
	m.apply = func(tx *transaction, updates []update) error {
		m.store.apply(tx)
		if m.armed > 0 && len(updates) > 0 {
			m.fire()
			return errConflict
		}
		return nil
	}
}

// overdraft applies commits that make a NonNegative column negative.
func overdraft(m *mutation) {
	m.check = func(tx *transaction) error {
		err := m.store.check(tx)
		if m.armed > 0 && db.ConstraintOf(err) == db.CheckFailed && len(m.updates(tx)) > 0 {
			m.fire()
			return nil
		}
		return err
	}
}

// doubleApply changes Additive columns by twice the amount, if that breaks no constraint.
func doubleApply(m *mutation) {
	m.apply = func(tx *transaction, updates []update) error {
		late := m.keep(tx)
		m.store.apply(tx)
		if m.armed > 0 && len(updates) > 0 && m.applyLate(late, true) {
			m.fire()
		}
		return nil
	}
}

// crash loses the last n acknowledged commits, but none of a load.
func crash(m *mutation) {
	var log []kept // the last n commits, newest last
	m.apply = func(tx *transaction, updates []update) error {
		if len(log) == m.n {
			log = slices.Delete(log, 0, 1)
		}
		if log = append(log, m.keep(tx)); len(updates) == 0 {
			log = log[:0]
		}
		m.store.apply(tx)
		if m.armed == 0 || len(log) < m.n {
			return nil
		}
		var undo transaction
		for _, k := range slices.Backward(log) {
			for i, w := range k.writes {
				undo.writes = append(undo.writes, write{key: w.key, value: k.before[i]})
			}
		}
		m.store.apply(&undo)
		log = log[:0]
		m.fire()
		return nil
	}
}

// unknownLies answers a commit with unknown, and applies it only after a look-up has found it absent and closed its
// id.
func unknownLies(m *mutation) {
	waiting := make(map[string]*kept) // by the keys that identify the transaction
	m.apply = func(tx *transaction, updates []update) error {
		own := m.created(tx)
		if i := slices.IndexFunc(tx.writes, func(w write) bool { return waiting[w.key] != nil }); i >= 0 {
			late := waiting[tx.writes[i].key]
			m.store.apply(tx)
			for _, key := range late.own {
				delete(waiting, key)
			}
			if len(updates) == 0 && m.applyLate(*late, false) {
				m.fired++
			} else {
				m.armed++
			}
			return nil
		}
		if m.armed == 0 || len(updates) == 0 || len(own) == 0 || len(waiting) >= maxWaiting {
			m.store.apply(tx)
			return nil
		}
		late := m.keep(tx)
		late.own = own
		for _, key := range own {
			waiting[key] = &late
		}
		m.armed--
		return errUnknown
	}
}

// maxWaiting bounds the number of transactions that wait for a look-up.
const maxWaiting = 256

// kept holds the writes of a transaction and the values before them; nil for none.
type kept struct {
	own    []string // keys that it had read as absent and wrote
	writes []write
	before [][]byte
}

func (m *mutation) keep(tx *transaction) kept {
	k := kept{writes: slices.Clone(tx.writes)}
	for _, w := range tx.writes {
		k.before = append(k.before, m.latest(w.key).value)
	}
	return k
}

// applyLate applies writes now. Additive columns change by the original amount. It returns false and applies nothing
// if a constraint forbids it or, with moving set, if a record would not change.
func (m *mutation) applyLate(k kept, moving bool) bool {
	late := transaction{writes: k.writes}
	for i, w := range late.writes {
		now, space := m.latest(w.key).value, m.space(w.key)
		if k.before[i] == nil || now == nil || w.value == nil || !fits(space, k.before[i]) || !fits(space, now) {
			continue
		}
		late.writes[i].value = slices.Clone(w.value)
		for _, c := range columns(space) {
			if c.Additive {
				add(late.writes[i].value, c, number(now, c)-number(k.before[i], c))
			}
		}
		if moving && m.isRecord(w.key) && slices.Equal(late.writes[i].value, now) {
			return false
		}
	}
	if m.constrain(&late) != nil {
		return false
	}
	m.store.apply(&late)
	return true
}
