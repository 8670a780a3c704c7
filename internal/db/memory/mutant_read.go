package memory

import (
	"slices"

	"stroppy/internal/db"
)

// The mutants here return false read results. The stored data stay right, except for the writes that follow from
// them.

// shows returns a mutant that gives false results to writers or to readers while a shot is armed.
func shows(readOnly bool, show func(m *mutation, tx *transaction, keys [][]byte, out []db.Entry) error) func(*mutation) {
	return func(m *mutation) {
		m.show = func(tx *transaction, keys [][]byte, out []db.Entry) error {
			if tx.readOnly != readOnly || m.armed == 0 {
				return nil
			}
			return show(m, tx, keys, out)
		}
	}
}

// lostUpdate gives a writer an old version of one key and does not validate it. If the transaction did not write this
// key, the anomaly would be another one.
func lostUpdate(m *mutation, tx *transaction, keys [][]byte, out []db.Entry) error {
	for _, i := range m.random.Perm(len(keys)) {
		key := string(keys[i])
		if old, _, ok := m.change(key, 0); ok {
			out[i], tx.reads[i].seen = old.entry(), old.commit
			m.deceive(tx, func() bool {
				m.accept(tx, func(k string) bool { return k == key })
				return tx.has(key)
			})
			break
		}
	}
	return nil
}

// leak holds the writes of one aborted transaction.
type leak struct {
	values  map[string][]byte // of the existing records that it wrote
	base    map[string]uint64 // the commit of each before
	of      *transaction      // of its session
	own     []string          // keys that it had read as absent and wrote; its retry writes them too
	trying  bool              // its session has not continued with another transaction
	seen    []string          // records that its only reader saw, which may be in progress
	refused int
}

// maxRefused bounds how often a leak refuses its transaction.
const maxRefused = 1000

// isOf reports whether tx, which has these keys, is a retry of the leak's transaction. Another client may write the
// same keys, for example by an append at the same place. isOf records whether the session has continued with another
// transaction.
func (l *leak) isOf(tx *transaction, has func(key string) bool) bool {
	if l.of != tx {
		return false
	}
	l.trying = l.trying && slices.ContainsFunc(l.own, has)
	return l.trying
}

// shows reports whether the leak can show a record, which must not have changed since.
func (l *leak) shows(m *mutation, key string) bool {
	commit, ok := l.base[key]
	return ok && m.latest(key).commit == commit
}

// over reports whether the leak has ended: a record that its reader saw has changed, or all records if it has no
// reader.
func (l *leak) over(m *mutation) bool {
	moved := func(key string) bool { return !l.shows(m, key) }
	if l.seen != nil {
		return l.refused > maxRefused || slices.ContainsFunc(l.seen, moved)
	}
	for key := range l.base {
		if !moved(key) {
			return l.refused > maxRefused
		}
	}
	return true
}

// show gives a reader the leak's values of the keys. It returns false if there are none.
func (l *leak) show(m *mutation, keys [][]byte, out []db.Entry) bool {
	for i, key := range keys {
		if key := string(key); l.shows(m, key) {
			out[i] = db.Entry{Value: l.values[key], Found: true}
			l.seen = append(l.seen, key)
		}
	}
	return l.seen != nil
}

// dirtyRead shows the writes of an aborted transaction to one reader.
//
// The aborted transaction is retried. If a retry found everything unchanged, it would commit exactly what the reader
// has seen, and nothing dirty would remain. So its retries are refused until a record that the reader saw has
// changed. While there is no reader, all records must have changed. Sessions could then wait for each other. So a
// session whose transaction was refused commits one transaction before the next one is refused.
func dirtyRead(m *mutation) {
	var leaks []*leak
	spared := map[*transaction]bool{}
	sweep := func() {
		leaks = slices.DeleteFunc(leaks, func(l *leak) bool {
			over := l.over(m)
			if over && l.seen == nil {
				m.armed++
			}
			return over
		})
	}
	again := func(tx *transaction, has func(key string) bool) (found bool) {
		for _, l := range leaks {
			if l.isOf(tx, has) {
				l.refused++
				found = true
			}
		}
		return found
	}
	m.tried = func(tx *transaction) bool {
		return slices.ContainsFunc(leaks, func(l *leak) bool { return l.isOf(tx, tx.has) })
	}
	m.show = func(tx *transaction, keys [][]byte, out []db.Entry) error {
		sweep()
		if again(tx, func(own string) bool { return place(keys, own) >= 0 }) {
			return nil
		}
		for _, l := range leaks {
			if l.seen == nil && l.show(m, keys, out) {
				// A writer that writes no dirty value could be the reader of a later, honest retry.
				stands := func() bool { return tx.readOnly || slices.ContainsFunc(l.seen, tx.has) }
				tx.lie = &lie{stands, func() {
					m.armed++
					leaks = slices.DeleteFunc(leaks, func(other *leak) bool { return other == l })
				}}
				return nil
			}
		}
		return nil
	}
	m.apply = func(tx *transaction, updates []update) error {
		sweep()
		if again(tx, tx.has) {
			return errConflict
		}
		if own := m.created(tx); m.armed > 0 && len(updates) > 0 && len(own) > 0 && !spared[tx] {
			l := &leak{values: make(map[string][]byte), base: make(map[string]uint64), of: tx, own: own, trying: true}
			for _, u := range updates {
				w := tx.writes[u.write]
				l.values[w.key], l.base[w.key] = w.value, m.latest(w.key).commit
			}
			leaks = append(leaks, l)
			m.armed--
			spared[tx] = true
			return errConflict
		}
		m.store.apply(tx)
		delete(spared, tx)
		return nil
	}
}

// readSkew shows a reader one key after a transaction and another key before it.
func readSkew(m *mutation, _ *transaction, keys [][]byte, out []db.Entry) error {
	places := make(map[string]int, len(keys))
	for i, key := range keys {
		places[string(key)] = i
	}
	for i, key := range keys {
		_, half, ok := m.change(string(key), 0)
		if !ok {
			continue
		}
		for _, other := range m.commits[half.commit].writes {
			j, asked := places[other]
			if old, _, ok := m.change(other, half.commit); ok && asked && j != i {
				out[j] = old.entry()
				m.fire()
				return nil
			}
		}
	}
	return nil
}

// writeSkew gives a writer snapshot isolation instead of serializability: the snapshot before an earlier writer, and
// validation only of its writes. The earlier one read what the later must write, and wrote what the later must not
// write.
func writeSkew(m *mutation, tx *transaction, keys [][]byte, out []db.Entry) error {
	newest, wrote := m.newest(keys)
	earlier := m.commits[newest]
	read := slices.DeleteFunc(slices.Clone(earlier.reads), func(k string) bool {
		return slices.Contains(earlier.writes, k) || place(keys, k) < 0
	})
	if _, _, ok := m.change(wrote, 0); !ok || len(read) == 0 {
		return nil
	}
	delete(m.commits, newest) // its only chance: after a conflict it would fail again
	m.deceive(tx, func() bool {
		m.accept(tx, func(key string) bool { return !tx.has(key) })
		return !slices.ContainsFunc(earlier.writes, tx.has) && slices.ContainsFunc(read, tx.has)
	})
	return m.readBefore(newest, tx, keys, out)
}

// newest returns the newest commit that wrote one of the keys, and the key.
func (m *mutation) newest(keys [][]byte) (commit uint64, wrote string) {
	for _, key := range keys {
		if v := m.latest(string(key)); v.commit > commit {
			commit, wrote = v.commit, string(key)
		}
	}
	return commit, wrote
}

// readBefore repeats the reads at the snapshot before a commit.
func (m *mutation) readBefore(commit uint64, tx *transaction, keys [][]byte, out []db.Entry) error {
	tx.snapshot, tx.reads = commit-1, tx.reads[:0]
	return m.store.read(tx, keys, out)
}

// staleAge is the smallest age, in commits, of the change that a stale read hides: enough for its client to have
// received the acknowledgement.
const staleAge = 200

// staleRead shows a reader the snapshot just before the newest change among the keys.
func staleRead(m *mutation, tx *transaction, keys [][]byte, out []db.Entry) error {
	newest, key := m.newest(keys)
	if _, _, ok := m.change(key, 0); !ok || m.store.commits-newest < staleAge {
		return nil
	}
	m.fire()
	return m.readBefore(newest, tx, keys, out)
}

// fork holds two keys with independent newest changes. Its first reader has seen the change of x and not the change
// of y.
type fork struct {
	x, y            string
	xBefore, yAfter version
}

// forkWidth is the number of a reader's keys that are tried for a fork. maxForks is the number of forks that may wait
// for their second reader.
const (
	forkWidth = 8
	maxForks  = 256
)

// longFork shows two readers two independent writes in opposite orders.
func longFork(m *mutation) {
	var forks []fork
	m.show = func(tx *transaction, keys [][]byte, out []db.Entry) error {
		if !tx.readOnly {
			return nil
		}
		for i, f := range forks {
			x, y := place(keys, f.x), place(keys, f.y)
			if x >= 0 && y >= 0 {
				out[x], out[y] = f.xBefore.entry(), f.yAfter.entry()
				forks = slices.Delete(forks, i, i+1)
				m.fired++
				return nil
			}
		}
		if m.armed == 0 || len(forks) == maxForks {
			return nil
		}
		for _, x := range keys[:min(len(keys), forkWidth)] {
			for j, y := range keys[:min(len(keys), forkWidth)] {
				xBefore, xAfter, xShows := m.change(string(x), 0)
				yBefore, yAfter, yShows := m.change(string(y), 0)
				if xShows && yShows && !m.meet(xAfter.commit, yAfter.commit) {
					out[j] = yBefore.entry()
					forks = append(forks, fork{string(x), string(y), xBefore, yAfter})
					m.armed--
					return nil
				}
			}
		}
		return nil
	}
}

// meet reports whether two commits touch a common key, or one is not remembered.
func (m *mutation) meet(a, b uint64) bool {
	f, g := m.commits[a], m.commits[b]
	touches := func(key string) bool { return slices.Contains(g.reads, key) || slices.Contains(g.writes, key) }
	return f.writes == nil || g.writes == nil || slices.ContainsFunc(f.reads, touches) || slices.ContainsFunc(f.writes, touches)
}

// phantom hides from a writer the youngest record of a range that a transaction, not a load, has inserted, and does
// not validate it. The writer must insert into the same range, so that each of the two misses the other's record.
func phantom(m *mutation) {
	m.hide = func(tx *transaction, r span, found []entry) []entry {
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
}
