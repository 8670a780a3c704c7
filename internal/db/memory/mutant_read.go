package memory

import (
	"bytes"
	"slices"

	"stroppy/internal/db"
)

// The mutants here lie to read-only transactions; what is stored stays right.

// readSkew shows a reader one half of a transaction.
type readSkew struct{ mutation }

func (m *readSkew) read(tx *transaction, keys [][]byte, out []db.Entry) error {
	if err := m.store.read(tx, keys, out); err != nil {
		return err
	}
	if !tx.readOnly || m.armed == 0 {
		return nil
	}
	x, y, after, before, ok := m.halves(keys)
	if ok {
		out[x], out[y] = after.entry(), before.entry()
		m.fire()
	}
	return nil
}

// halves finds the newest commit that wrote two of the keys, x and y: x as it
// left it and y as it was before.
func (m *readSkew) halves(keys [][]byte) (x, y int, after, before version, ok bool) {
	type place struct {
		key int
		v   version
	}
	first := make(map[uint64]place)
	for i, key := range keys {
		r := m.recordAt(string(key))
		if r == nil {
			continue
		}
		for j := len(r.versions) - 1; j >= 0; j-- {
			v := r.versions[j]
			other, seen := first[v.commit]
			if !seen {
				if v.value != nil {
					first[v.commit] = place{i, v}
				}
				continue
			}
			old, shows := r.before(j)
			if shows && other.key != i && (!ok || v.commit > after.commit) {
				x, y, after, before, ok = other.key, i, other.v, old, true
			}
		}
	}
	return x, y, after, before, ok
}

// staleAge is how many commits ago the change that a stale read hides was made,
// at least: enough for its client to have got the acknowledgement.
const staleAge = 200

// staleRead shows a reader a consistent snapshot that is too old.
type staleRead struct{ mutation }

func (m *staleRead) read(tx *transaction, keys [][]byte, out []db.Entry) error {
	if tx.readOnly && !tx.started && m.armed > 0 {
		if snapshot, ok := m.oldSnapshot(keys); ok {
			tx.snapshot, tx.started = snapshot, true
			m.fire()
		}
	}
	return m.store.read(tx, keys, out)
}

// oldSnapshot returns the one just before the newest change among the keys.
func (m *staleRead) oldSnapshot(keys [][]byte) (uint64, bool) {
	newest, shows := uint64(0), false
	for _, key := range keys {
		if v := m.latest(string(key)); v.commit > newest {
			newest = v.commit
			r := m.recordAt(string(key))
			shows = false
			if r != nil {
				_, shows = r.before(len(r.versions) - 1)
			}
		}
	}
	if !shows || m.commits-newest < staleAge {
		return 0, false
	}
	for _, key := range keys {
		if r := m.records[string(key)]; r != nil {
			if _, kept := r.at(newest - 1); !kept {
				return 0, false
			}
		}
	}
	return newest - 1, true
}

// longFork shows two readers two independent writes in opposite orders.
type longFork struct {
	*journaled
	forks []fork // the first reader has come
}

// fork keeps both versions of both keys as they were when the first reader came.
type fork struct {
	x, y            string
	xBefore, xAfter version
	yBefore, yAfter version
}

// forkWidth is how many of a reader's keys are tried for a fork, and maxForks how
// many forks may wait for their second reader.
const (
	forkWidth = 8
	maxForks  = 256
)

func (m *longFork) read(tx *transaction, keys [][]byte, out []db.Entry) error {
	first := tx.readOnly && !tx.started
	if err := m.store.read(tx, keys, out); err != nil || !first {
		return err
	}
	for i, f := range m.forks {
		x, y := place(keys, f.x), place(keys, f.y)
		if x >= 0 && y >= 0 {
			out[x], out[y] = f.xBefore.entry(), f.yAfter.entry()
			m.forks = slices.Delete(m.forks, i, i+1)
			m.hit()
			return nil
		}
	}
	if m.armed == 0 || len(m.forks) == maxForks {
		return nil
	}
	if f, y, ok := m.fork(keys[:min(len(keys), forkWidth)]); ok {
		out[y] = f.yBefore.entry()
		m.forks = append(m.forks, f)
		m.take()
	}
	return nil
}

// fork finds two keys whose latest changes have nothing to do with each other.
func (m *longFork) fork(keys [][]byte) (f fork, y int, ok bool) {
	latest := func(key []byte) (before, after version, t footprint, ok bool) {
		r := m.recordAt(string(key))
		if r == nil || len(r.versions) == 0 {
			return before, after, t, false
		}
		if before, ok = r.before(len(r.versions) - 1); !ok {
			return before, after, t, false
		}
		after = r.latest()
		t, ok = m.commits[after.commit]
		return before, after, t, ok && after.value != nil
	}
	for i := range keys {
		xBefore, xAfter, tx, ok := latest(keys[i])
		if !ok {
			continue
		}
		for j := range keys {
			yBefore, yAfter, ty, ok := latest(keys[j])
			if ok && !bytes.Equal(keys[i], keys[j]) && !tx.meets(ty) {
				return fork{string(keys[i]), string(keys[j]), xBefore, xAfter, yBefore, yAfter}, j, true
			}
		}
	}
	return f, 0, false
}

// place returns where key is in keys; -1 if nowhere.
func place(keys [][]byte, key string) int {
	return slices.IndexFunc(keys, func(k []byte) bool { return string(k) == key })
}

// journaled is a mutation that remembers which keys the last commits read and wrote.
type journaled struct {
	mutation
	commits map[uint64]footprint
	order   []uint64 // a ring of the numbers kept
	next    int
}

// footprint is the keys that one commit read and wrote.
type footprint struct{ reads, writes []string }

// journalLength bounds a journal; older commits are no opportunity.
const journalLength = 1 << 14

func newJournaled(m mutation) *journaled {
	return &journaled{mutation: m, commits: make(map[uint64]footprint), order: make([]uint64, journalLength)}
}

// commit remembers what is applied, unless it was shown a lie.
func (j *journaled) commit(tx *transaction) error {
	deceived := tx.lie != nil
	err := j.mutation.commit(tx)
	if err != nil || deceived || len(tx.writes) == 0 {
		return err
	}
	var f footprint
	for _, r := range tx.reads {
		f.reads = append(f.reads, r.key)
	}
	for _, w := range tx.writes {
		f.writes = append(f.writes, w.key)
	}
	delete(j.commits, j.order[j.next])
	j.commits[tx.number], j.order[j.next] = f, tx.number
	j.next = (j.next + 1) % len(j.order)
	return nil
}

// meets tells whether two commits touch a common key.
func (f footprint) meets(g footprint) bool {
	touches := func(key string) bool { return slices.Contains(g.reads, key) || slices.Contains(g.writes, key) }
	return slices.ContainsFunc(f.reads, touches) || slices.ContainsFunc(f.writes, touches)
}
