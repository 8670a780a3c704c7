package sessions

// causal infers edges from each read of a key: every writer of the key that precedes the reader by so and wr
// also precedes the writer that was read from. The last such writer of each session is enough, because so
// orders the earlier ones before it. Edges that are in so and wr already are omitted.
//
// A clock holds for each session its last transaction before a given one, or 0 for none. so and wr must have
// no cycle, and order must agree with them.
func (r *resolved) causal(order []uint32) *edges {
	found := &edges{}
	for low := 0; low < len(r.Sessions) && !r.watch.Ended(); low += mostColumns {
		c := newClocks(r, low, min(low+mostColumns, len(r.Sessions)))
		for _, t := range order {
			if r.watch.Ended() {
				break
			}
			c.visit(t)
		}
		found.append(&c.found)
	}
	return found
}

// mostColumns is the number of sessions in the clocks of one pass. A pass over all transactions keeps a clock
// of this length for each transaction that will be read.
const mostColumns = 128

// clocks holds the clocks of the sessions from low to high.
type clocks struct {
	*resolved
	low, high uint32
	of        []uint32 // by session: the clock after its last visited transaction

	// row holds the row of each transaction's clock, from 1; 0: none. The clock is kept until all readers of
	// the transaction were visited.
	row     []uint32
	readers []uint32 // by transaction: number of reads of it that were not visited yet
	rows    []uint32
	free    []uint32

	writers writers
	found   edges
	recent  []recentEdge
}

// recentEdge is an edge that was found recently.
type recentEdge struct{ from, to uint32 }

// recentEdges is the number of remembered edges, a power of two.
const recentEdges = 1 << 14

func newClocks(r *resolved, low, high int) *clocks {
	c := &clocks{
		resolved: r, low: uint32(low), high: uint32(high), of: make([]uint32, len(r.Sessions)*(high-low)),
		row: make([]uint32, r.transactions()+1), readers: make([]uint32, r.transactions()+1),
		writers: r.writersOf(uint32(low), uint32(high)), recent: make([]recentEdge, recentEdges),
	}
	for _, w := range r.readFrom {
		c.readers[w]++
	}
	for s := range r.Sessions {
		c.readers[r.Sessions[s].After]++
	}
	return c
}

// width returns the length of a clock.
func (c *clocks) width() uint32 { return c.high - c.low }

// kept returns the clock of a transaction that still has readers.
func (c *clocks) kept(t uint32) []uint32 {
	at := int(c.row[t]-1) * int(c.width())
	return c.rows[at : at+int(c.width())]
}

// visit must be called for each transaction in order.
func (c *clocks) visit(t uint32) {
	s := c.session[t]
	clock := c.of[s*c.width() : (s+1)*c.width()]
	if w := c.after(t); w != initial {
		copy(clock, c.kept(w))
		c.read(w)
	}
	for i := c.readRow[t]; i < c.readRow[t+1]; i++ {
		w := c.readFrom[i]
		at := c.session[w] - c.low
		if w == initial || at < c.width() && clock[at] >= w {
			continue // it is known, with everything before it
		}
		for j, seen := range c.kept(w) {
			clock[j] = max(clock[j], seen)
		}
	}
	for i := c.readRow[t]; i < c.readRow[t+1]; i++ {
		c.infer(i, clock)
	}
	for i := c.readRow[t]; i < c.readRow[t+1]; i++ {
		c.read(c.readFrom[i])
	}
	if s-c.low < c.width() {
		clock[s-c.low] = t
	}
	if c.readers[t] > 0 {
		c.keep(t, clock)
	}
}

// read records that one of the readers of a transaction was visited.
func (c *clocks) read(w uint32) {
	if c.readers[w]--; c.readers[w] == 0 && w != initial {
		c.free = append(c.free, c.row[w])
	}
}

// keep stores the clock of t for its readers.
func (c *clocks) keep(t uint32, clock []uint32) {
	if n := len(c.free); n > 0 {
		c.row[t] = c.free[n-1]
		c.free = c.free[:n-1]
		copy(c.kept(t), clock)
		return
	}
	c.rows = append(c.rows, clock...)
	c.row[t] = uint32(len(c.rows) / int(c.width()))
}

// infer infers edges from one read of a transaction with the given clock.
func (c *clocks) infer(read uint32, clock []uint32) {
	w := c.readFrom[read]
	var seen []uint32
	if w != initial {
		seen = c.kept(w)
	}
	lists := c.writers.of(c.readKey[read])
	for i := range lists {
		l := &lists[i]
		known := clock[l.session-c.low]
		var before uint32 // the last transaction before the writer
		if seen != nil {
			before = seen[l.session-c.low]
		}
		if known <= before || l.first > known {
			continue
		}
		if t := c.writers.last(l, known); t > before {
			c.add(t, w, read)
		}
	}
}

// add records an edge, unless an edge that implies it was found recently.
func (c *clocks) add(from, to, read uint32) {
	s := c.session[from]
	r := &c.recent[(to*31+s)%recentEdges]
	if r.to == to && r.from >= from && c.session[r.from] == s {
		return
	}
	*r = recentEdge{from, to}
	c.found.add(from, to, read)
}

// writers lists the transactions that wrote each key, by session.
type writers struct {
	lists []writerList
	row   []uint32 // the lists of a key are [row[key], row[key+1])
	all   []uint32
}

// writerList lists the transactions of one session that wrote one key, in order.
type writerList struct {
	session  uint32
	first    uint32 // the first transaction
	from, to uint32 // range in all
	at       uint32 // position of the last look-up
}

// writersOf returns the writers in the sessions from low to high.
func (r *resolved) writersOf(low, high uint32) writers {
	from, to := r.writeRow[r.first[low]], r.writeRow[r.first[high]]
	row := make([]uint32, r.keys+1)
	for _, key := range r.writeKey[from:to] {
		row[key+1]++
	}
	for key := range r.keys {
		row[key+1] += row[key]
	}
	w := writers{all: make([]uint32, to-from), row: make([]uint32, r.keys+1)}
	lists := 0
	for s := low; s < high; s++ {
		for t := r.first[s]; t < r.first[s+1]; t++ { // in order, so that the list of each key is sorted
			for _, key := range r.writeKey[r.writeRow[t]:r.writeRow[t+1]] {
				at := row[key]
				if row[key]++; w.row[key] != s+1 { // until the lists are made, the last session that wrote the key
					w.row[key] = s + 1
					lists++
				}
				w.all[at] = t
			}
		}
	}
	w.lists = make([]writerList, 0, lists)
	at := uint32(0)
	for key := range r.keys { // row[key] is now the end of the key's lists
		w.row[key] = uint32(len(w.lists))
		for at < row[key] {
			l := writerList{session: r.session[w.all[at]], first: w.all[at], from: at, at: at}
			for end := r.first[l.session+1]; at < row[key] && w.all[at] < end; at++ {
			}
			l.to = at
			w.lists = append(w.lists, l)
		}
	}
	w.row[r.keys] = uint32(len(w.lists))
	return w
}

func (w *writers) of(key uint32) []writerList { return w.lists[w.row[key]:w.row[key+1]] }

// last returns the last transaction of a list that is at most t. The first one must be at most t. The search
// starts at the result of the last search, which is usually close, with steps that double.
func (w *writers) last(l *writerList, t uint32) uint32 {
	low, high := l.at, l.at+1 // all[low] <= t, and all[high] > t or high is the end
	if w.all[low] <= t {
		for step := uint32(1); high < l.to && w.all[high] <= t; step *= 2 {
			low, high = high, high+step
		}
		high = min(high, l.to)
	} else {
		for step := uint32(1); w.all[low] > t; step *= 2 {
			high = low
			low -= min(step, low-l.from)
		}
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; w.all[middle] <= t {
			low = middle
		} else {
			high = middle
		}
	}
	l.at = low
	return w.all[low]
}
