package sessions

import "slices"

// committed infers from each transaction that had read something from t2, and then read a
// key that t2 wrote from t1, that t2 comes before t1. Of the reads of that key the next
// one is enough: from those behind it the same follows for who was read from then.
func (r *resolved) committed() *edges {
	c := &readOrder{resolved: r, found: &edges{}, nextRead: make([]mark, r.keys), firstRead: make([]mark, r.transactions()+1)}
	for t := uint32(1); t <= r.transactions() && !r.watch.Ended(); t++ {
		if r.readRow[t+1]-r.readRow[t] > 1 {
			c.visit(t)
		}
	}
	return c.found
}

// readOrder infers from the order of the reads of a transaction.
type readOrder struct {
	*resolved
	found *edges

	// Marks are of the transaction that is visited, if it is theirs.
	nextRead  []mark // of each key: its next read, going backwards
	firstRead []mark // of each transaction: the first read from it
	distinct  []uint32
}

// mark is something that a transaction t noted.
type mark struct{ t, read uint32 }

func (c *readOrder) visit(t uint32) {
	from, to := c.readRow[t], c.readRow[t+1]
	for i := from; i < to; i++ {
		if m := &c.firstRead[c.readFrom[i]]; m.t != t {
			*m = mark{t, i}
		}
	}
	c.distinct = c.distinct[:0] // keys that are read behind i
	for i := to - 1; i+1 > from; i-- {
		w, key := c.readFrom[i], c.readKey[i]
		if c.firstRead[w].read == i && w != initial {
			c.intersect(t, w, c.distinct, c.nextRead, c.found)
		}
		next := &c.nextRead[key]
		switch {
		case next.t != t:
			c.distinct = append(c.distinct, key)
		case c.readFrom[next.read] != w && w != initial:
			c.found.add(w, c.readFrom[next.read], next.read)
		}
		*next = mark{t, i}
	}
}

// intersect infers for the keys that w wrote and that t read, which are distinct, that w
// comes before who they were read from. reads has the read of each key, if it is t's. The
// fewer of the keys are gone through.
func (r *resolved) intersect(t, w uint32, distinct []uint32, reads []mark, found *edges) {
	written := r.writeKey[r.writeRow[w]:r.writeRow[w+1]]
	keys := written
	if len(distinct) < len(written) {
		keys = distinct
	}
	for _, key := range keys {
		read := reads[key]
		if read.t != t || r.readFrom[read.read] == w {
			continue
		}
		if len(keys) == len(written) || r.wrote(w, key) {
			found.add(w, r.readFrom[read.read], read.read)
		}
	}
}

// wrote says whether t wrote a key.
func (r *resolved) wrote(t, key uint32) bool {
	if t == initial {
		return true
	}
	written := r.writeKey[r.writeRow[t]:r.writeRow[t+1]]
	if len(written) < sortedFrom {
		return slices.Contains(written, key)
	}
	_, found := slices.BinarySearch(written, key)
	return found
}

// sortedFrom is from how many keys on those that a transaction wrote are sorted.
const sortedFrom = 32

// sortWritten sorts the keys of those who wrote many.
func (r *resolved) sortWritten() {
	for t := uint32(1); t <= r.transactions(); t++ {
		if written := r.writeKey[r.writeRow[t]:r.writeRow[t+1]]; len(written) >= sortedFrom {
			slices.Sort(written)
		}
	}
}

// atomic infers for each read of a key that who wrote the key and comes directly before
// the reader, in its session or because it was read from, comes before the writer that
// was read from. Of the session the last writer of the key is enough. Without sessions
// their order is left out.
func (r *resolved) atomic(withSessions bool) *edges {
	a := &fractures{resolved: r, found: &edges{}, reads: make([]mark, r.keys), seen: make([]uint32, r.transactions()+1), last: make([]uint32, r.keys)}
	for t := uint32(1); t <= r.transactions() && !r.watch.Ended(); t++ {
		a.visit(t)
		if !withSessions {
			continue
		}
		for _, key := range r.writeKey[r.writeRow[t]:r.writeRow[t+1]] {
			a.last[key] = t
		}
	}
	return a.found
}

// fractures infers from what a transaction saw of others.
type fractures struct {
	*resolved
	found    *edges
	reads    []mark   // of each key: the first read of the transaction that is visited, if it is its
	seen     []uint32 // of each transaction: who read from it last
	last     []uint32 // of each key: its last writer
	distinct []uint32
}

func (a *fractures) visit(t uint32) {
	from, to := a.readRow[t], a.readRow[t+1]
	a.distinct = a.distinct[:0]
	own := a.first[a.session[t]]
	for i := from; i < to; i++ {
		w, key := a.readFrom[i], a.readKey[i]
		first := &a.reads[key]
		if first.t == t {
			if other := a.readFrom[first.read]; other != w { // each was read, and wrote the key
				a.both(other, w, first.read, i)
			}
			continue
		}
		*first = mark{t, i}
		a.distinct = append(a.distinct, key)
		if last := a.last[key]; last >= own && last != w {
			a.found.add(last, w, i)
		}
	}
	for i := from; i < to; i++ {
		if w := a.readFrom[i]; w != initial && a.seen[w] != t {
			a.seen[w] = t
			a.intersect(t, w, a.distinct, a.reads, a.found)
		}
	}
}

// both infers from two reads of one key that neither writer can come last.
func (a *fractures) both(one, other, oneRead, otherRead uint32) {
	if one != initial {
		a.found.add(one, other, otherRead)
	}
	if other != initial {
		a.found.add(other, one, oneRead)
	}
}
