package memory

import (
	"slices"

	"stroppy/internal/db"
)

// The mutants here lie to transactions about what is stored. What is stored stays right,
// but for what a writer makes of a lie.

// shows makes the mutant that lies to writers, or to readers, while a shot is armed.
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

// lostUpdate gives a writer an old version of one key and does not validate it. A
// transaction that does not write this key would be another anomaly than this one.
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

// leak is the writes of one aborted transaction.
type leak struct {
	values  map[string][]byte // of the existing records that it wrote
	base    map[string]uint64 // the commit that they were at
	of      *transaction      // of its session
	own     []string          // the keys that it had read as absent and wrote: its next try writes them too
	trying  bool              // its session has not gone on to another transaction
	seen    []string          // the records that its one reader saw, who may be under way
	refused int
}

// maxRefused bounds how often a leak refuses the transaction that it came from.
const maxRefused = 1000

// isOf reports whether tx, which has these keys, is a further try of the transaction that the
// leak came from. Another client may write the same keys, as one that appends at the same
// place. It notes if the session has gone on to another transaction.
func (l *leak) isOf(tx *transaction, has func(key string) bool) bool {
	if l.of != tx {
		return false
	}
	l.trying = l.trying && slices.ContainsFunc(l.own, has)
	return l.trying
}

// shows reports whether the leak can show a record, which has not moved on.
func (l *leak) shows(m *mutation, key string) bool {
	commit, ok := l.base[key]
	return ok && m.latest(key).commit == commit
}

// over reports whether the leak is none any more: a record that its reader saw has moved on,
// or all records if it has no reader.
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

// show gives a reader of the keys what the leak has of them; false if that is nothing.
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
// The aborted transaction is tried again, and a try that found all as it was would commit
// just what the reader has seen: nothing dirty would remain. So its tries are refused until a
// record that the reader saw has moved on, or all as long as there is no reader. So that not
// all sessions wait for each other to move their records on, a session whose transaction was
// refused commits one before the next one is.
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
				// A writer that writes nothing it saw dirty could be a later, honest try's reader.
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

// readSkew shows a reader one key as a transaction left it, and another as it was before.
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

// writeSkew gives a writer snapshot isolation in place of serializability: the snapshot
// before an earlier writer, and validation of what it writes only. The earlier one read
// what the later must write, and wrote what the later must not write.
func writeSkew(m *mutation, tx *transaction, keys [][]byte, out []db.Entry) error {
	newest, wrote := m.newest(keys)
	earlier := m.commits[newest]
	read := slices.DeleteFunc(slices.Clone(earlier.reads), func(k string) bool {
		return slices.Contains(earlier.writes, k) || place(keys, k) < 0
	})
	if _, _, ok := m.change(wrote, 0); !ok || len(read) == 0 {
		return nil
	}
	delete(m.commits, newest) // its one chance: after a conflict it would fail again
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

// readBefore reads again, at the snapshot before a commit.
func (m *mutation) readBefore(commit uint64, tx *transaction, keys [][]byte, out []db.Entry) error {
	tx.snapshot, tx.reads = commit-1, tx.reads[:0]
	return m.store.read(tx, keys, out)
}

// staleAge is how many commits ago the change that a stale read hides was made,
// at least: enough for its client to have got the acknowledgement.
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

// fork is two keys whose newest changes have nothing to do with each other. Its first
// reader has seen that of x and not that of y.
type fork struct {
	x, y            string
	xBefore, yAfter version
}

// forkWidth is how many of a reader's keys are tried for a fork, and maxForks how
// many forks may wait for their second reader.
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
