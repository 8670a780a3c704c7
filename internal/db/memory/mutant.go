package memory

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"stroppy/internal/db"
)

// Mutant is one planted bug.
type Mutant struct {
	Name  string // as the parameter mutant takes it
	Bug   string // the bug, and a real one of its kind where one is documented
	Check string // the check that is meant to find it
	// plant builds it around a store; n is the parameter of crashMutant.
	plant func(m mutation, n int) engine
}

const crashMutant = "false-ack-on-crash"

// Mutants returns all mutants, those that break isolation first.
func Mutants() []Mutant {
	return []Mutant{
		{"lost-update", "two transactions change the same version, and one change is gone: TiDB 2.1.7 when it retried transactions by itself (Jepsen, 2019)", "serializable",
			func(m mutation, _ int) engine { return &lostUpdate{m} }},
		{"dirty-read", "a reader sees what an aborted transaction wrote: VoltDB 6.3 under a partition (Jepsen, 2016)", "serializable",
			func(m mutation, _ int) engine { return &dirtyRead{mutation: m} }},
		{"read-skew", "a reader sees one half of a transaction: MySQL 8.0.34 at REPEATABLE READ (Jepsen, 2023)", "serializable",
			func(m mutation, _ int) engine { return &readSkew{m} }},
		{"write-skew", "two transactions each read what the other then changes: PostgreSQL 12.3 at SERIALIZABLE (Jepsen, 2020)", "serializable",
			func(m mutation, _ int) engine { return &writeSkew{newJournaled(m)} }},
		{"long-fork", "two readers see two independent writes in opposite orders: Amazon RDS for PostgreSQL 17.4, Multi-AZ cluster (Jepsen, 2025)", "serializable",
			func(m mutation, _ int) engine { return &longFork{journaled: newJournaled(m)} }},
		{"stale-read", "a reader gets an old snapshot although newer commits were acknowledged long before: VoltDB 6.3, from a replica cut off (Jepsen, 2016)", "strict",
			func(m mutation, _ int) engine { return &staleRead{m} }},
		{"lost-ack", "a commit is acknowledged and never applied: MongoDB 2.4.3, which reported success upon a network error (Jepsen, 2013)", "durable", strikes(lostAck)},
		{"ghost", "a commit is applied and reported as aborted", "no-ghost", strikes(ghost)},
		{"double-apply", "a commit is applied twice: MongoDB's retryable writes after a rollback (SERVER-55305)", "exactly-once", strikes(doubleApply)},
		{"torn", "one record of a commit is not written, all others are", "total", strikes(torn)},
		{"phantom-money", "an amount changes with no transaction", "total", strikes(phantomMoney)},
		{"swap", "money moves between two accounts with no transaction: the sum stays right", "ledger", strikes(swap)},
		{"overdraft", "a commit that a constraint forbids is applied: MySQL before 8.0.16, which read CHECK and ignored it", "non-negative",
			func(m mutation, _ int) engine { return &overdraft{m} }},
		{crashMutant, "the last acknowledged commits vanish, as from a log that was never synced: PostgreSQL before 11.2, which took a second fsync after a failed one for success", "durable",
			func(m mutation, n int) engine { return &commitMutant{m, (&crash{mutation: m, n: n}).apply} }},
		{"unknown-lies", "a commit of unknown outcome is looked up, found absent, and applied after all", "no-ghost",
			func(m mutation, _ int) engine {
				return &commitMutant{m, (&unknownLies{mutation: m, kept: make(map[string]*unanswered)}).apply}
			}},
	}
}

// shots counts what a mutant may do and has done. A shot is armed by a transfer,
// with the probability rate, and fired at the next opportunity. It is guarded by
// the store's mutex.
type shots struct {
	random *rand.Rand
	rate   float64
	armed  int
	fired  int
}

// fire has the effect at once.
func (s *shots) fire() { s.armed--; s.fired++ }

// take begins what is only known later to have an effect; hit or giveBack ends it.
func (s *shots) take()     { s.armed-- }
func (s *shots) hit()      { s.fired++ }
func (s *shots) giveBack() { s.armed++ }

// mutation is the common part of all mutants: a healthy store and the shots.
type mutation struct {
	*store
	*shots
}

// lie is what a mutant has shown to a transaction with a shot that it took: a hit if
// the transaction commits.
type lie struct {
	stands func() bool // the commit shows the mutant's bug and no other
	missed func()      // the transaction ended otherwise
}

// deceive takes a shot for what tx was shown.
func (m mutation) deceive(tx *transaction, stands func() bool) {
	m.take()
	tx.lie = &lie{stands, m.giveBack}
}

// arm is called for each tried commit. Only those that change existing records
// arm a shot, so that no load is spoilt and the rate is one of transfers.
func (m mutation) arm(tx *transaction) {
	if len(tx.writes) > 0 && m.random.Float64() < m.rate && m.isUpdate(tx) {
		m.armed++
	}
}

// commit is the healthy commit, or that of a transaction that was shown a lie.
func (m mutation) commit(tx *transaction) error {
	m.arm(tx)
	l := tx.lie
	if l == nil {
		return m.store.commit(tx)
	}
	err := error(errConflict)
	if l.stands() {
		err = m.store.commit(tx)
	}
	if tx.lie = nil; err != nil {
		l.missed()
		return err
	}
	m.hit()
	return nil
}

func (m mutation) forget(tx *transaction) {
	if l := tx.lie; l != nil {
		tx.lie = nil
		l.missed()
	}
}

// update is a write that changes an existing record.
type update struct {
	write int // its place in the transaction's writes
	space *db.Keyspace
	old   []byte
}

// updates returns the writes of tx that change existing records.
func (m mutation) updates(tx *transaction) []update {
	var out []update
	for i, w := range tx.writes {
		old, space := m.latest(w.key).value, m.space(w.key)
		if w.value != nil && old != nil && m.isRecord(w.key) && fits(space, old) {
			out = append(out, update{i, space, old})
		}
	}
	return out
}

func (m mutation) isUpdate(tx *transaction) bool {
	return slices.ContainsFunc(tx.writes, func(w write) bool {
		return w.value != nil && m.isRecord(w.key) && m.latest(w.key).value != nil
	})
}

// isRecord tells whether a mutant may spoil the key: all those that a keyspace
// describes, or all keys where none was declared.
func (m mutation) isRecord(key string) bool { return len(m.spaces) == 0 || m.space(key) != nil }

// recordAt returns the record at a key that a mutant may spoil; nil if there is
// none.
func (m mutation) recordAt(key string) *record {
	if r, known := m.records[key]; known && m.isRecord(key) {
		return r
	}
	return nil
}

// before returns the version before the one at i, if it is kept and shows.
func (r *record) before(i int) (version, bool) {
	if i < 1 || r.versions[i-1].value == nil || bytes.Equal(r.versions[i-1].value, r.versions[i].value) {
		return version{}, false
	}
	return r.versions[i-1], true
}

// has tells whether any of the writes is to the key.
func (tx *transaction) has(key string) bool {
	return slices.ContainsFunc(tx.writes, func(w write) bool { return w.key == key })
}

// created returns the keys that the transaction read as absent and wrote.
func (m mutation) created(tx *transaction) []string {
	var out []string
	for _, r := range tx.reads {
		if tx.has(r.key) && m.latest(r.key).value == nil {
			out = append(out, r.key)
		}
	}
	return out
}

// accept makes validation take the read of a key as it would be now.
func (m mutation) accept(tx *transaction, key string) {
	for i := range tx.reads {
		if tx.reads[i].key == key {
			tx.reads[i].seen = m.latest(key).commit
		}
	}
}

// columns returns the columns of a keyspace that want picks, none of no keyspace.
func columns(space *db.Keyspace, want func(db.Column) bool) []db.Column {
	if space == nil {
		return nil
	}
	var out []db.Column
	for _, c := range space.Columns {
		if want(c) {
			out = append(out, c)
		}
	}
	return out
}

// fits tells whether a value is long enough for its columns: one that was there
// before they were declared may not be.
func fits(space *db.Keyspace, value []byte) bool {
	return space == nil || !slices.ContainsFunc(space.Columns, func(c db.Column) bool { return len(value) < c.Offset+8 })
}

func additive(c db.Column) bool    { return c.Additive }
func nonNegative(c db.Column) bool { return c.NonNegative }

func setNumber(value []byte, c db.Column, n int64) {
	binary.BigEndian.PutUint64(value[c.Offset:], uint64(n))
}
