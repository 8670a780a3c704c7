package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"stroppy/internal/db"
)

// keptVersions is the number of versions kept per key. A transaction that needs an older one is aborted.
const keptVersions = 8

// The errors of refused transactions, made once so that a conflict allocates nothing.
var (
	errConflict = &db.Error{Class: db.Aborted, Code: "conflict", Op: "commit",
		Err: errors.New("another transaction has changed a key that this one had read")}
	errTooOld = &db.Error{Class: db.Aborted, Code: "snapshot-too-old", Op: "read",
		Err: fmt.Errorf("a key has changed %d times since the transaction's snapshot, and its earlier value is not kept", keptVersions)}
)

// store is the reference: a map of keys to their last few versions, a counter of commits, and one mutex. It is
// strictly serializable for two reasons. A transaction that writes takes effect at one moment inside its Commit, when
// all its reads are still current. A transaction that only reads takes effect at its first Read. The order of these
// moments is the order of the mutex.
//
// Callers of its methods hold mu.
type store struct {
	mu      sync.Mutex
	records map[string]*record
	order   index
	commits uint64 // number of the last commit that wrote
	spaces  []db.Keyspace
}

// record is one key with its versions, oldest first.
type record struct {
	key      string
	versions []version
	dropped  bool // there were more versions than are kept
}

// version is the state of a key after one commit. The zero value means that no commit ever wrote it.
type version struct {
	value  []byte // never changed; nil if the commit deleted the key
	commit uint64
}

// transaction is an open transaction with its reads and its future writes.
type transaction struct {
	readOnly bool
	started  bool   // it has a snapshot
	snapshot uint64 // number of the last commit that it sees
	reads    []read // empty if it is read-only
	ranges   []span // empty if it is read-only
	writes   []write
	number   uint64 // of its commit, after it is applied
	lie      *lie   // set by a mutant
}

// read records the commit of a version that was seen; 0 if nobody had written the key.
type read struct {
	key  string
	seen uint64
	of   *record // nil if there is none yet
}

// write is a new value, which the store may keep; nil deletes. A write that adds has its value after addUp.
type write struct {
	key   string
	of    *record // nil if it is not known to the transaction
	value []byte
	adds  bool
	delta int64
}

// write returns the write of a key. It needs no copy of the key and no look-up of the record if the key is among
// the first that the transaction has read.
func (tx *transaction) write(key []byte) write {
	for _, r := range tx.reads[:min(len(tx.reads), 8)] {
		if r.key == string(key) {
			return write{key: r.key, of: r.of}
		}
	}
	return write{key: string(key)}
}

func (tx *transaction) begin(readOnly bool) {
	clear(tx.reads)
	clear(tx.writes)
	*tx = transaction{readOnly: readOnly, reads: tx.reads[:0], ranges: tx.ranges[:0], writes: tx.writes[:0]}
}

// read reads the keys at the transaction's snapshot. The first read takes the snapshot, which contains all
// acknowledged commits.
func (s *store) read(tx *transaction, keys [][]byte, out []db.Entry) error {
	if !tx.started {
		tx.snapshot, tx.started = s.commits, true
	}
	for i, key := range keys {
		var v version
		r, known := s.records[string(key)]
		if known {
			var ok bool
			if v, ok = r.at(tx.snapshot); !ok {
				return errTooOld
			}
		}
		out[i] = v.entry()
		switch {
		case tx.readOnly:
		case known:
			tx.reads = append(tx.reads, read{r.key, v.commit, r})
		default:
			tx.reads = append(tx.reads, read{string(key), 0, nil})
		}
	}
	return nil
}

// commit applies all writes at once, or returns an error and applies nothing. Without writes there is nothing to
// check, because all reads came from one snapshot.
func (s *store) commit(tx *transaction) error {
	if len(tx.writes) == 0 {
		return nil
	}
	if err := s.check(tx); err != nil {
		return err
	}
	s.apply(tx)
	return nil
}

// addUp computes the values of writes that add: delta plus the key's present value, or plus the value by an earlier
// write of the transaction.
func (s *store) addUp(tx *transaction) {
	for i := range tx.writes {
		w := &tx.writes[i]
		if !w.adds {
			continue
		}
		before := s.latest(w.key).value
		for _, earlier := range tx.writes[:i] {
			if earlier.key == w.key {
				before = earlier.value
			}
		}
		w.value = make([]byte, 8)
		copy(w.value, before)
		binary.LittleEndian.PutUint64(w.value, binary.LittleEndian.Uint64(w.value)+uint64(w.delta))
	}
}

// forget is called when a transaction has ended without commit.
func (s *store) forget(*transaction) {}

// check refuses a transaction if another one has changed a key that it has read, absent keys included, or if it
// violates a constraint.
func (s *store) check(tx *transaction) error {
	for _, r := range tx.reads {
		if r.of == nil {
			r.of = s.records[r.key]
		}
		if r.of.latest().commit != r.seen {
			return errConflict
		}
	}
	for _, r := range tx.ranges {
		if s.changed(r, tx.snapshot) {
			return errConflict
		}
	}
	return s.constrain(tx)
}

// constrain refuses a transaction that would make a NonNegative column negative.
func (s *store) constrain(tx *transaction) error {
	for _, w := range tx.writes {
		if w.value == nil {
			continue
		}
		for _, c := range columns(s.space(w.key)) {
			if len(w.value) < c.Offset+8 {
				return db.Fatalf("commit", "the value of key %q has %d bytes, too few for column %s at %d", w.key, len(w.value), c.Name, c.Offset)
			}
			if n := number(w.value, c); c.NonNegative && n < 0 {
				return &db.Error{Class: db.Constraint, Constraint: db.CheckFailed, Code: "check", Op: "commit",
					Err: fmt.Errorf("column %s of key %q would be %d, but must not be negative", c.Name, w.key, n)}
			}
		}
	}
	return nil
}

// apply gives the transaction the next number and applies its writes.
func (s *store) apply(tx *transaction) {
	s.commits++
	tx.number = s.commits
	for _, w := range tx.writes {
		s.put(w.key, w.of, version{w.value, s.commits})
	}
}

// put adds a version. If one commit writes a key twice, the later write wins.
func (s *store) put(key string, r *record, v version) {
	if r == nil {
		r = s.records[key]
	}
	if r == nil {
		if v.value == nil {
			return
		}
		r = &record{key: key}
		s.records[key] = r
		s.order.insert(r)
	}
	switch n := len(r.versions); {
	case n > 0 && r.versions[n-1].commit == v.commit:
		r.versions[n-1] = v
	case n == keptVersions:
		copy(r.versions, r.versions[1:])
		r.versions[n-1] = v
		r.dropped = true
	default:
		r.versions = append(r.versions, v)
	}
}

// latest returns the newest version of a key.
func (s *store) latest(key string) version { return s.records[key].latest() }

// space returns the keyspace of a key, or nil.
func (s *store) space(key string) *db.Keyspace {
	for i := range s.spaces {
		if prefix := s.spaces[i].Prefix; len(key) >= len(prefix) && key[:len(prefix)] == string(prefix) {
			return &s.spaces[i]
		}
	}
	return nil
}

// latest returns the newest version of a record, which may be nil.
func (r *record) latest() version {
	if r == nil || len(r.versions) == 0 {
		return version{}
	}
	return r.versions[len(r.versions)-1]
}

// at returns the version that a snapshot sees. It returns false if the version is no longer kept.
func (r *record) at(snapshot uint64) (version, bool) {
	for i := len(r.versions) - 1; i >= 0; i-- {
		if r.versions[i].commit <= snapshot {
			return r.versions[i], true
		}
	}
	return version{}, !r.dropped
}

func (v version) entry() db.Entry { return db.Entry{Value: v.value, Found: v.value != nil} }

// number returns a column of a value that is long enough for it.
func number(value []byte, c db.Column) int64 {
	return int64(order(c).Uint64(value[c.Offset:]))
}

func order(c db.Column) binary.ByteOrder {
	if c.LittleEndian {
		return binary.LittleEndian
	}
	return binary.BigEndian
}
