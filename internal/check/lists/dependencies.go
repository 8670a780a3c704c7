package lists

import (
	"cmp"
	"slices"
	"sort"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
)

// mostDirect limits the edges from one unread append to other unread appends of the list. Further ones are
// reached through a hub.
const mostDirect = 64

// depend builds the graph of all dependencies and of the order of each client.
func (c *checker) depend() error {
	d := &dependencies{checker: c}
	if len(c.ranges) > 0 {
		d.sortLists()
	}
	c.graph = graph.New(int(c.count()), len(c.hubs), c.times(), &c.watch, func(b *graph.Builder) {
		d.Builder = b
		d.writes()
		d.reads()
		for i := range c.ranges {
			d.absent(&c.ranges[i])
		}
	})
	return c.watch.Err
}

// torn reports whether every order of the values that overwrote the same ones tears some transaction. (Biswas and Enea,
// On the Complexity of Checking Transactional Consistency, OOPSLA 2019.) Suppose that a transaction saw a value of A,
// and a value of B in another list that A wrote. Then A wrote that list before B.
func (c *checker) torn() bool {
	d := &dependencies{checker: c}
	g := graph.New(int(c.count()), len(c.hubs), c.times(), &c.watch, func(b *graph.Builder) {
		d.Builder = b
		d.writes()
		d.reads()
		for t := range d.count() {
			d.whole(t)
		}
	})
	return g.Unordered(graph.Reads, false) != nil
}

// whole adds the edges that follow if t saw other transactions completely.
func (d *dependencies) whole(t uint32) {
	value := func(op uint32) (list, by uint32) {
		list = d.opList[op] &^ opKinds
		if d.counts(t) && d.opList[op]&opKinds <= opRow {
			return list, d.effect(list, d.arg.at(op))
		}
		return list, check.None
	}
	for seen := d.row[t]; seen < d.row[t+1]; seen++ {
		_, w := value(seen)
		if w == check.None || w == t {
			continue
		}
		for read := d.row[t]; read < d.row[t+1]; read++ {
			if l, by := value(read); by != check.None && by != w && by != t && d.appendsTo(w, l) {
				d.Add(w, by, graph.Ww)
			}
		}
	}
}

type dependencies struct {
	*checker
	*graph.Builder
	sorted []uint32 // the lists, sorted by key
}

func (d *dependencies) sortLists() {
	d.sorted = make([]uint32, len(d.lists))
	for i := range d.sorted {
		d.sorted[i] = uint32(i)
	}
	slices.SortFunc(d.sorted, func(a, b uint32) int { return cmp.Compare(d.keys.key[a], d.keys.key[b]) })
}

// writes adds the edges that follow from the order of each list's versions.
func (d *dependencies) writes() {
	for l := range uint32(len(d.lists)) {
		if d.watch.Ended() {
			return
		}
		if d.trees[l] != nil {
			d.writesOver(l)
			continue
		}
		last, kind := check.None, uint8(graph.Ww)
		if d.kept[l] != Objects {
			kind = graph.Wr // an appender has read what is before
		}
		for v := d.first[l]; v < d.first[l+1]; v++ {
			w := d.writer[v]
			if w == check.None || w&noEffect != 0 {
				continue
			}
			w &= writerMask
			d.Add(last, w, kind)
			last = w
		}
		if d.later != nil && d.later[l] != check.None {
			d.toLater(last, l, kind)
		}
		if by := d.deleter(l); by != check.None {
			d.Add(last, by, graph.Ww)
			d.fromLater(l, by)
		}
	}
	if d.values && d.End != nil {
		d.writesLost()
	}
	for i, h := range d.hubs {
		for _, t := range h.to {
			d.Add(uint32(int(d.count())+i), t, graph.Pass)
		}
	}
}

// writesOver adds the edges of a list of Values. The writer of a value had read the previous one, and the
// value in the end state was written last. Two values that overwrote the same one have no known order.
func (d *dependencies) writesOver(l uint32) {
	final, end := nowhere, check.None
	if d.End != nil {
		final = d.final[l]
		end = d.effect(l, final)
	}
	for v := uint32(1); v <= d.length(l); v++ {
		w := d.effect(l, v)
		if w == check.None {
			continue
		}
		d.Add(d.effect(l, d.parent(l, v)), w, graph.Wr)
		if end != check.None && !d.contains(l, final, v) && !d.contains(l, v, final) {
			d.Add(w, end, graph.Ww)
		}
	}
}

// writesLost adds edges to the writer of the end state from the writers of unread values of unknown origin.
func (d *dependencies) writesLost() {
	for t := range d.count() {
		for op := d.row[t]; op < d.row[t+1] && d.counts(t); op++ {
			l := d.opList[op] &^ opKinds
			if d.opList[op]&opKinds == opAppend && d.kept[l] == Values && d.arg.at(op) == nowhere {
				d.Add(t, d.effect(l, d.final[l]), graph.Ww)
			}
		}
	}
}

// toLater adds edges to all transactions with unread appends to a list.
func (d *dependencies) toLater(from, list uint32, kind uint8) {
	later := d.later[list]
	if later == check.None || int(later) < int(d.count()) {
		d.Add(from, later, kind)
		return
	}
	to := d.hubs[int(later)-int(d.count())].to
	own := slices.Index(to, from)
	if own < 0 || from == check.None {
		d.Add(from, later, kind)
		return
	}
	for i := 1; i < min(len(to), mostDirect); i++ {
		d.Add(from, to[(own+i)%len(to)], kind)
	}
}

// fromLater adds edges from all transactions with unread appends to the transaction that deleted the list.
func (d *dependencies) fromLater(list, by uint32) {
	if d.later == nil || d.later[list] == check.None {
		return
	}
	if later := d.later[list]; int(later) < int(d.count()) {
		d.Add(later, by, graph.Ww)
		return
	}
	for _, t := range d.hubs[int(d.later[list])-int(d.count())].to {
		d.Add(t, by, graph.Ww)
	}
}

// reads adds the edges of each read of a list, and the order of the clients.
func (d *dependencies) reads() {
	sessions, rows, ops := d.newSessionOrder(), d.row, d.opList
	for t := range d.count() {
		if d.watch.Ended() {
			return
		}
		before := sessions.before(t)
		if !d.counts(t) {
			continue
		}
		d.Add(before, t, graph.Process)
		for op, end := rows[t], rows[t+1]; op < end; op++ {
			kind, l, length := ops[op]&opKinds, ops[op]&^opKinds, d.arg.at(op)
			if kind > opRow || length == nowhere || d.isBase(t, op, l, length) {
				continue
			}
			if length == 0 && kind == opRead && d.mayBeDeleted(l) {
				d.missing(t, op, l, graph.Rw)
				continue
			}
			writer, _ := d.made(l, length)
			d.Add(writer, t, graph.Wr)
			if d.kept[l] != Pieces {
				d.overwritten(t, l, length, graph.Rw)
				continue
			}
			d.overwritten(t, l, length, graph.PredicateRw)
			for i, e := range d.partial[op] {
				if e == Missing {
					d.Add(t, d.effect(l, uint32(i+1)), graph.PredicateRw)
				}
			}
		}
	}
}

// isBase reports whether the next operation of t overwrites the value that op read. Then the order of the
// versions implies the same edge as the read.
func (c *checker) isBase(t, op, list, version uint32) bool {
	next := op + 1
	return c.kept[list] == Values && next < c.row[t+1] && c.opList[next] == opAppend|list && c.arg.at(next) == version+1 && c.trees[list] == nil &&
		c.effect(list, version+1) == t
}

// overwritten adds the edge from the reader of a version to the writer of the next.
func (d *dependencies) overwritten(t, list, version uint32, kind uint8) {
	if d.trees[list] != nil {
		d.overwrittenValue(t, list, version, kind)
		return
	}
	next := d.next(list, version)
	if next != check.None && int(next) >= int(d.count()) || d.later != nil && next == d.later[list] {
		d.toLater(t, list, kind)
	} else {
		d.Add(t, next, kind)
	}
	if next == check.None {
		d.Add(t, d.deleter(list), kind)
	}
}

// overwrittenValue adds edges from the reader of a value to all transactions that overwrote it. Transactions
// that overwrote the same value are a lost update and get no edges among each other.
func (d *dependencies) overwrittenValue(t, list, version uint32, kind uint8) {
	over := d.children(list, version)
	if slices.ContainsFunc(over, func(v uint32) bool { return d.effect(list, v) == t }) {
		return
	}
	for _, v := range over {
		d.Add(t, d.effect(list, v), kind)
	}
}

// missing adds the edges of a read that found no list, although the list was made and deleted: the read came
// before the creation or after the deletion. It certainly came after if the reader itself deleted the list,
// and certainly before if the client had the reply before the deletion began. Otherwise the times show which
// is likely.
func (d *dependencies) missing(t, op, list uint32, kind uint8) {
	by := d.deleter(list)
	perhaps, open := d.perhaps[list]
	switch {
	case by == check.None && open && !d.ended(t, perhaps):
		d.overwritten(t, list, 0, graph.GuessRw)
	case by == check.None:
		d.overwritten(t, list, 0, kind)
	case d.hasDeleted(t, op, list):
	case by == t || d.ended(t, by):
		d.overwritten(t, list, 0, kind)
	case d.apart(t, by) > 0:
		d.overwritten(t, list, 0, graph.GuessRw)
	case d.begin[t] >= d.begin[by]:
		d.Add(by, t, graph.GuessWr)
	default:
		d.overwritten(t, list, 0, graph.GuessRw)
	}
}

// hasDeleted reports whether a transaction deleted a list before one of its operations.
func (c *checker) hasDeleted(t, op, list uint32) bool {
	return c.deleter(list) == t && slices.Contains(c.opList[c.row[t]:op], opDelete|list)
}

// absent adds the edges for the lists that a range did not return.
func (d *dependencies) absent(r *rangeRead) {
	if !d.counts(r.t) {
		return
	}
	at := sort.Search(len(d.sorted), func(i int) bool { return d.keys.key[d.sorted[i]] >= r.low })
	for ; at < len(d.sorted) && d.keys.key[d.sorted[at]] <= r.high && !d.watch.Ended(); at++ {
		l := d.sorted[at]
		switch {
		case d.matched(r, l):
		case d.mayBeDeleted(l):
			d.missing(r.t, r.first, l, graph.PredicateRw)
		default:
			d.overwritten(r.t, l, 0, graph.PredicateRw)
		}
	}
}

// matched reports whether a range returned a list.
func (c *checker) matched(r *rangeRead, list uint32) bool {
	for op := r.first; op < r.last; op++ {
		if c.opList[op]&^opKinds == list {
			return true
		}
	}
	return false
}
