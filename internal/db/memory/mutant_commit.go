package memory

import (
	"slices"

	"stroppy/internal/db"
)

// commitMutant spoils commits that the store would do: instead applies them or
// not, and says what to answer.
type commitMutant struct {
	mutation
	instead func(tx *transaction) error
}

func (m *commitMutant) commit(tx *transaction) error {
	m.arm(tx)
	if len(tx.writes) == 0 {
		return nil
	}
	if err := m.check(tx); err != nil {
		return err
	}
	return m.instead(tx)
}

// strike changes the writes of a transaction before they are applied, and says what
// to answer. Without an opportunity it changes nothing and says false.
type strike func(m mutation, tx *transaction, updates []update) (ok bool, answer error)

// strikes makes the mutant that strikes with each shot.
func strikes(s strike) func(mutation, int) engine {
	return func(m mutation, _ int) engine {
		return &commitMutant{m, func(tx *transaction) (answer error) {
			if updates := m.updates(tx); m.armed > 0 && len(updates) > 0 {
				var ok bool
				if ok, answer = s(m, tx, updates); ok {
					m.fire()
				}
			}
			m.apply(tx)
			return answer
		}}
	}
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
