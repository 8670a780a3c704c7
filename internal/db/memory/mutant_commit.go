package memory

import (
	"slices"

	"stroppy/internal/db"
)

// commitMutant spoils single commits: what is applied, or what is answered.
type commitMutant struct {
	mutation
	strike strike
}

// strike changes the writes of a transaction that the store would commit, and
// says what to answer. Without an opportunity it changes nothing and says false.
type strike func(m mutation, tx *transaction, updates []update) (ok bool, answer error)

func strikes() map[string]strike {
	return map[string]strike{
		"lost-ack":      lostAck,
		"ghost":         ghost,
		"double-apply":  doubleApply,
		"torn":          torn,
		"phantom-money": phantomMoney,
		"swap":          swap,
	}
}

func (m *commitMutant) commit(tx *transaction) error {
	m.arm(tx)
	if m.armed == 0 || len(tx.writes) == 0 {
		return m.store.commit(tx)
	}
	if err := m.check(tx); err != nil {
		return err
	}
	var answer error
	if updates := m.updates(tx); len(updates) > 0 {
		var ok bool
		if ok, answer = m.strike(m.mutation, tx, updates); ok {
			m.fire()
		}
	}
	m.apply(tx)
	return answer
}

func lostAck(_ mutation, tx *transaction, _ []update) (bool, error) {
	tx.writes = tx.writes[:0]
	return true, nil
}

func ghost(mutation, *transaction, []update) (bool, error) { return true, errConflict }

// doubleApply moves every Additive column by twice its change, if no NonNegative
// one becomes negative by it.
func doubleApply(_ mutation, tx *transaction, updates []update) (bool, error) {
	doubled := make([][]byte, len(updates))
	for i, u := range updates {
		value := tx.writes[u.write].value
		twice := slices.Clone(value)
		for _, c := range columns(u.space, additive) {
			n := 2*number(value, c) - number(u.old, c)
			if c.NonNegative && n < 0 {
				return false, nil
			}
			setNumber(twice, c, n)
		}
		if slices.Equal(twice, value) {
			return false, nil
		}
		doubled[i] = twice
	}
	for i, u := range updates {
		tx.writes[u.write].value = doubled[i]
	}
	return true, nil
}

// torn leaves out one record, one whose money changes where money is declared.
func torn(m mutation, tx *transaction, updates []update) (bool, error) {
	if len(tx.writes) < 2 {
		return false, nil
	}
	updates = slices.DeleteFunc(updates, func(u update) bool {
		money := columns(u.space, nonNegative)
		return len(money) > 0 && !slices.ContainsFunc(money, func(c db.Column) bool {
			return number(u.old, c) != number(tx.writes[u.write].value, c)
		})
	})
	if len(updates) == 0 {
		return false, nil
	}
	i := updates[m.random.IntN(len(updates))].write
	tx.writes = slices.Delete(tx.writes, i, i+1)
	return true, nil
}

// phantomMoney adds some cents to a written record. It only ever adds, so that no
// two shots cancel each other in the total.
func phantomMoney(m mutation, tx *transaction, updates []update) (bool, error) {
	u := updates[m.random.IntN(len(updates))]
	money := columns(u.space, nonNegative)
	if len(money) == 0 {
		return false, nil
	}
	value := tx.writes[u.write].value
	setNumber(value, money[0], number(value, money[0])+1+m.random.Int64N(100))
	return true, nil
}

// swap moves some cents from one written record to another.
func swap(m mutation, tx *transaction, updates []update) (bool, error) {
	if len(updates) < 2 {
		return false, nil
	}
	i := m.random.IntN(len(updates))
	from, to := updates[i], updates[(i+1)%len(updates)]
	source, sink := columns(from.space, nonNegative), columns(to.space, nonNegative)
	down, up := tx.writes[from.write], tx.writes[to.write]
	if len(source) == 0 || len(sink) == 0 || down.key == up.key {
		return false, nil
	}
	cents := min(1+m.random.Int64N(100), number(down.value, source[0]))
	if cents < 1 {
		return false, nil
	}
	setNumber(down.value, source[0], number(down.value, source[0])-cents)
	setNumber(up.value, sink[0], number(up.value, sink[0])+cents)
	return true, nil
}

// overdraft applies commits that make a NonNegative column negative.
type overdraft struct{ mutation }

func (m *overdraft) commit(tx *transaction) error {
	m.arm(tx)
	err := m.store.commit(tx)
	if m.armed > 0 && db.ConstraintOf(err) == db.CheckFailed && m.isUpdate(tx) {
		m.fire()
		m.apply(tx)
		return nil
	}
	return err
}
