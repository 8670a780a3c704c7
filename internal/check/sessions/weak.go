package sessions

import "slices"

// committed infers edges from transactions that read from t2 and then read a key, which t2 wrote, from t1: t2
// precedes t1. The next read of that key is enough, because later reads imply the same for their writers.
func (r *resolved) committed() *edges {
	c := &readOrder{resolved: r, found: &edges{}, nextRead: make([]mark, r.keys), firstRead: make([]mark, r.transactions()+1)}
	for t := uint32(1); t <= r.transactions() && !r.watch.Ended(); t++ {
		if r.readRow[t+1]-r.readRow[t] > 1 {
			c.visit(t)
		}
	}
	return c.found
}

// readOrder infers edges from the order of a transaction's reads.
type readOrder struct {
	*resolved
	found *edges

	// nextRead holds for each key its next read, visited backwards. A mark is valid only for the transaction
	// being visited.
	nextRead  []mark
	firstRead []mark // by transaction: the first read from it
	distinct  []uint32
}

// mark is a read that belongs to transaction t.
type mark struct{ t, read uint32 }

func (c *readOrder) visit(t uint32) {
	from, to := c.readRow[t], c.readRow[t+1]
	for i := from; i < to; i++ {
		if m := &c.firstRead[c.readFrom[i]]; m.t != t {
			*m = mark{t, i}
		}
	}
	c.distinct = c.distinct[:0] // keys that are read after i
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

// intersect infers an edge for each key that w wrote and t read: w precedes the writer that t read from.
// distinct lists the keys that t read, and reads holds the read of each key. intersect iterates over the
// smaller set.
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

// wrote reports whether t wrote a key.
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

// sortedFrom is the number of written keys from which a transaction's keys are sorted.
const sortedFrom = 32

// sortWritten sorts the keys of transactions with many writes.
func (r *resolved) sortWritten() {
	for t := uint32(1); t <= r.transactions(); t++ {
		if written := r.writeKey[r.writeRow[t]:r.writeRow[t+1]]; len(written) >= sortedFrom {
			slices.Sort(written)
		}
	}
}

// atomic infers edges from each read of a key. A writer of the key that directly precedes the reader, by its
// session or by a read, precedes the writer that was read from. In a session, the last writer of the key is
// enough. withSessions selects whether the order of sessions counts.
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

// fractures infers edges from the parts of other transactions that a transaction saw.
type fractures struct {
	*resolved
	found    *edges
	reads    []mark   // by key: the first read of the transaction being visited
	seen     []uint32 // by transaction: the last one that read from it
	last     []uint32 // by key: its last writer
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
			if other := a.readFrom[first.read]; other != w { // both were read, and other wrote the key
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

// both records two reads of one key by a transaction, from which no writer can be the last.
func (a *fractures) both(one, other, oneRead, otherRead uint32) {
	if one != initial {
		a.found.add(one, other, otherRead)
	}
	if other != initial {
		a.found.add(other, one, oneRead)
	}
}
