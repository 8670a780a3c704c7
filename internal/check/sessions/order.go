package sessions

// edges is a set of edges of the commit order, each inferred from a read. After sort, the edges that lead to
// a transaction can be looked up.
type edges struct {
	from, to, read []uint32 // read is an index of the resolved reads
	row            []uint32
	index          []uint32 // end of the edges to each transaction
}

func (e *edges) add(from, to, read uint32) {
	e.from, e.to, e.read = append(e.from, from), append(e.to, to), append(e.read, read)
}

func (e *edges) append(more *edges) {
	e.from, e.to, e.read = append(e.from, more.from...), append(e.to, more.to...), append(e.read, more.read...)
}

// sort sorts the edges by their targets with a counting sort.
func (e *edges) sort(transactions uint32) {
	e.row = make([]uint32, transactions+2)
	for _, to := range e.to {
		e.row[to+1]++
	}
	for t := range transactions + 1 {
		e.row[t+1] += e.row[t]
	}
	e.index = make([]uint32, len(e.to))
	next := append([]uint32(nil), e.row[:transactions+1]...)
	for i, to := range e.to {
		e.index[next[to]] = uint32(i)
		next[to]++
	}
}

// into returns the sources of the edges that lead to t.
func (e *edges) into(t uint32) []uint32 {
	if e == nil || len(e.index) == 0 {
		return nil
	}
	return e.index[e.row[t]:e.row[t+1]]
}

// order returns an order of all transactions that agrees with so, wr and the inferred edges, if any, which
// must be sorted. It returns false if there is no order or if the watch has ended.
//
// It advances the sessions in turn by one transaction. If a transaction must wait for another session, that
// session is advanced first, recursively, on an explicit stack. A session that waits for a waiting one closes
// a cycle. In the resulting order, sessions are interleaved as they ran.
func (r *resolved) order(inferred *edges) ([]uint32, bool) {
	o := &ordering{
		resolved: r, inferred: inferred, list: make([]uint32, 0, r.transactions()),
		next: append([]uint32(nil), r.first...), passed: make([]uint32, len(r.Sessions)), waits: make([]bool, len(r.Sessions)),
	}
	for len(o.list) < int(r.transactions()) {
		for s := range r.Sessions {
			if t := o.next[s]; t < r.first[s+1] && !o.place(t) {
				return nil, false
			}
		}
	}
	return o.list, true
}

// ordering is the state of order.
type ordering struct {
	*resolved
	inferred *edges
	list     []uint32
	next     []uint32 // by session: the next transaction
	passed   []uint32 // by session: number of predecessors of the next one known to be placed
	waits    []bool
	stack    []uint32 // the transactions up to which sessions must be placed
}

// place appends t and its missing predecessors to the list.
func (o *ordering) place(t uint32) bool {
	o.push(t)
	for len(o.stack) > 0 {
		goal := o.stack[len(o.stack)-1]
		s := o.session[goal]
		if o.next[s] > goal {
			o.stack = o.stack[:len(o.stack)-1]
			o.waits[s] = false
			continue
		}
		before, found := o.before(s)
		switch {
		case o.watch.Ended():
			return false
		case !found:
			o.list = append(o.list, o.next[s])
			o.next[s]++
			o.passed[s] = 0
		case o.waits[o.session[before]]:
			return false
		default:
			o.push(before)
		}
	}
	return true
}

func (o *ordering) push(t uint32) {
	o.stack = append(o.stack, t)
	o.waits[o.session[t]] = true
}

// before returns an unplaced transaction that must precede the next transaction of a session.
func (o *ordering) before(s uint32) (uint32, bool) {
	t := o.next[s]
	if w := o.after(t); w != initial && w >= o.next[o.session[w]] {
		return w, true
	}
	reads := o.readFrom[o.readRow[t]:o.readRow[t+1]]
	at := int(o.passed[s])
	for ; at < len(reads); at++ {
		if w := reads[at]; w != initial && w >= o.next[o.session[w]] {
			o.passed[s] = uint32(at)
			return w, true
		}
	}
	for i, e := range o.inferred.into(t)[at-len(reads):] {
		if w := o.inferred.from[e]; w >= o.next[o.session[w]] {
			o.passed[s] = uint32(at + i)
			return w, true
		}
	}
	return 0, false
}
