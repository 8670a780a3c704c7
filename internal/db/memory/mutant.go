package memory

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"stroppy/internal/db"
)

// Mutant is one planted bug.
type Mutant struct {
	Name  string // value of the parameter mutant
	Bug   string // the bug, with a documented real one of its kind if there is one
	Check string // the check that should find it
	plant func(*mutation)
}

const crashMutant = "false-ack-on-crash"

// Mutants returns all mutants, those that break isolation first.
func Mutants() []Mutant {
	return []Mutant{
		{"lost-update", "two transactions change the same version, and one change is gone: TiDB 2.1.7 when it retried transactions by itself (Jepsen, 2019)", "serializable", shows(false, lostUpdate)},
		{"dirty-read", "a reader sees what an aborted transaction wrote: VoltDB 6.3 under a partition (Jepsen, 2016)", "serializable", dirtyRead},
		{"read-skew", "a reader sees one half of a transaction: MySQL 8.0.34 at REPEATABLE READ (Jepsen, 2023)", "serializable", shows(true, readSkew)},
		{"write-skew", "two transactions each read what the other then changes: PostgreSQL 12.3 at SERIALIZABLE (Jepsen, 2020)", "serializable", shows(false, writeSkew)},
		{"phantom", "two transactions each insert a row that the other, reading by a predicate, should have found: PostgreSQL 12.3 at SERIALIZABLE (Jepsen, 2020); it needs a workload that reads ranges", "serializable", phantom},
		{"long-fork", "two readers see two independent writes in opposite orders: Amazon RDS for PostgreSQL 17.4, Multi-AZ cluster (Jepsen, 2025)", "serializable", longFork},
		{"stale-read", "a reader gets an old snapshot although newer commits were acknowledged long before: VoltDB 6.3, from a replica cut off (Jepsen, 2016)", "strict", shows(true, staleRead)},
		{"lost-ack", "a commit is acknowledged and never applied: MongoDB 2.4.3, which reported success upon a network error (Jepsen, 2013)", "durable", strikes(lostAck)},
		{"ghost", "a commit is applied and reported as aborted", "no-ghost", ghost},
		{"double-apply", "a commit is applied twice: MongoDB's retryable writes after a rollback (SERVER-55305)", "exactly-once", doubleApply},
		{"torn", "one record of a commit is not written, all others are", "total", strikes(torn)},
		{"phantom-money", "an amount changes with no transaction", "total", strikes(phantomMoney)},
		{"swap", "money moves between two accounts with no transaction: the sum stays right", "ledger", strikes(swap)},
		{"overdraft", "a commit that a constraint forbids is applied: MySQL before 8.0.16, which read CHECK and ignored it", "non-negative", overdraft},
		{crashMutant, "the last acknowledged commits vanish, as from a log that was never synced: PostgreSQL before 11.2, which took a second fsync after a failed one for success", "durable", crash},
		{"unknown-lies", "a commit of unknown outcome is looked up, found absent, and applied after all", "no-ghost", unknownLies},
	}
}

// mutation is a healthy store with one bug around it, guarded by the store's mutex.
type mutation struct {
	*store
	random *rand.Rand
	rate   float64
	n      int // for the mutant false-ack-on-crash

	// A transfer arms a shot with the probability rate, and the next opportunity fires it. A shot whose effect is not
	// certain yet is counted in neither.
	armed, fired int

	// The bug is in one or two of these functions; the others are nil.
	show  func(tx *transaction, keys [][]byte, out []db.Entry) error // called after a transaction's first read
	hide  func(tx *transaction, r span, found []entry) []entry       // called after a writer's read of a range
	check func(*transaction) error                                   // replaces the store's
	apply func(*transaction, []update) error                         // replaces the store's
	tried func(*transaction) bool                                    // reports a retry of a refused transaction

	commits map[uint64]footprint // the last commits, by number
	order   []uint64             // ring of the kept numbers
	next    int
	scratch []update
}

// footprint holds the keys that one commit read and wrote.
type footprint struct{ reads, writes []string }

// journalLength is the number of remembered commits; older ones are no opportunity.
const journalLength = 1 << 14

func (o *options) mutate(s *store, random *rand.Rand) *mutation {
	m := &mutation{store: s, random: random, rate: o.rate, n: o.n, commits: make(map[uint64]footprint), order: make([]uint64, journalLength)}
	m.check = s.check
	m.apply = func(tx *transaction, _ []update) error { s.apply(tx); return nil }
	for _, mutant := range Mutants() {
		if mutant.Name == o.mutant {
			mutant.plant(m)
		}
	}
	return m
}

func (m *mutation) read(tx *transaction, keys [][]byte, out []db.Entry) error {
	first := !tx.started
	if err := m.store.read(tx, keys, out); err != nil || !first || m.show == nil {
		return err
	}
	return m.show(tx, keys, out)
}

func (m *mutation) readRange(tx *transaction, r span) ([]entry, error) {
	found, err := m.store.readRange(tx, r)
	if err != nil || m.hide == nil || tx.readOnly || tx.lie != nil || m.armed == 0 {
		return found, err
	}
	return m.hide(tx, r, found), nil
}

// commit arms a shot for some of the transactions that change existing records. So no load is damaged, and the rate
// refers to transfers.
func (m *mutation) commit(tx *transaction) error {
	updates := m.updates(tx)
	if again := m.tried != nil && m.tried(tx); !again && len(updates) > 0 && m.random.Float64() < m.rate {
		m.armed++
	}
	if tx.lie != nil {
		return m.deceived(tx)
	}
	if len(tx.writes) == 0 {
		return nil
	}
	if err := m.check(tx); err != nil {
		return err
	}
	if err := m.apply(tx, updates); err != nil {
		return err
	}
	var f footprint
	for _, r := range tx.reads {
		f.reads = append(f.reads, r.key)
	}
	for _, w := range tx.writes {
		f.writes = append(f.writes, w.key)
	}
	delete(m.commits, m.order[m.next])
	m.commits[tx.number], m.order[m.next] = f, tx.number
	m.next = (m.next + 1) % len(m.order)
	return nil
}

func (m *mutation) fire() { m.armed--; m.fired++ }

// lie is a false read result of a transaction, for which a shot was taken. It counts if the transaction commits.
type lie struct {
	stands func() bool // the commit shows this mutant's bug and no other
	missed func()      // called if the transaction ends otherwise
}

// deceive takes a shot for a false read result of tx.
func (m *mutation) deceive(tx *transaction, stands func() bool) {
	m.armed--
	tx.lie = &lie{stands, func() { m.armed++ }}
}

// deceived commits a transaction with a lie.
func (m *mutation) deceived(tx *transaction) error {
	l, err := tx.lie, error(errConflict)
	if l.stands() {
		err = m.store.commit(tx)
	}
	if tx.lie = nil; err != nil {
		l.missed()
		return err
	}
	m.fired++
	return nil
}

func (m *mutation) forget(tx *transaction) {
	if l := tx.lie; l != nil {
		tx.lie = nil
		l.missed()
	}
}

// update is a write that changes an existing record.
type update struct {
	write int // index in the transaction's writes
	space *db.Keyspace
	old   []byte
}

// updates returns the writes of tx that change existing records. The result is valid until the next call.
func (m *mutation) updates(tx *transaction) []update {
	m.scratch = m.scratch[:0]
	for i, w := range tx.writes {
		old, space := m.latest(w.key).value, m.space(w.key)
		if w.value != nil && old != nil && m.isRecord(w.key) && fits(space, old) {
			m.scratch = append(m.scratch, update{i, space, old})
		}
	}
	return m.scratch
}

// isRecord reports whether a mutant may damage the key: it must belong to a keyspace, if any are declared.
func (m *mutation) isRecord(key string) bool { return len(m.spaces) == 0 || m.space(key) != nil }

// change returns the versions before and after a commit, or the newest commit for 0, of a record that a mutant may
// damage. ok is false unless both are kept and differ.
func (m *mutation) change(key string, commit uint64) (before, after version, ok bool) {
	r, known := m.records[key]
	if !known || !m.isRecord(key) {
		return before, after, false
	}
	i := len(r.versions) - 1
	for commit > 0 && i > 0 && r.versions[i].commit != commit {
		i--
	}
	if i < 1 {
		return before, after, false
	}
	before, after = r.versions[i-1], r.versions[i]
	return before, after, before.value != nil && after.value != nil && !bytes.Equal(before.value, after.value)
}

// has reports whether any of the writes is to the key.
func (tx *transaction) has(key string) bool {
	return slices.ContainsFunc(tx.writes, func(w write) bool { return w.key == key })
}

// created returns the keys that the transaction read as absent and wrote.
func (m *mutation) created(tx *transaction) []string {
	var out []string
	for _, r := range tx.reads {
		if tx.has(r.key) && m.latest(r.key).value == nil {
			out = append(out, r.key)
		}
	}
	return out
}

// accept makes validation accept the reads of the keys selected by want.
func (m *mutation) accept(tx *transaction, want func(key string) bool) {
	for i := range tx.reads {
		if r := &tx.reads[i]; want(r.key) {
			r.seen = m.latest(r.key).commit
		}
	}
}

// columns returns the columns of a keyspace, or none for nil.
func columns(space *db.Keyspace) []db.Column {
	if space == nil {
		return nil
	}
	return space.Columns
}

// money returns the first column that must not be negative.
func money(space *db.Keyspace) (db.Column, bool) {
	for _, c := range columns(space) {
		if c.NonNegative {
			return c, true
		}
	}
	return db.Column{}, false
}

// fits reports whether a value is long enough for its columns; an older value may not be.
func fits(space *db.Keyspace, value []byte) bool {
	return !slices.ContainsFunc(columns(space), func(c db.Column) bool { return len(value) < c.Offset+8 })
}

func add(value []byte, c db.Column, n int64) {
	order(c).PutUint64(value[c.Offset:], uint64(number(value, c)+n))
}

// place returns the index of key in keys, or -1.
func place(keys [][]byte, key string) int {
	return slices.IndexFunc(keys, func(k []byte) bool { return string(k) == key })
}
