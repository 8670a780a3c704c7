package lists

import (
	"math"
	"slices"
	"sort"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// versions is the order of the appends to every list: version p consists of the first p elements.
type versions struct {
	first  []uint32 // by list: the index of its versions in writer
	writer []uint32 // the writer of each version; None: not known
	later  []uint32 // by list: the transaction with unread appends, or the hub of several; None: none
	hubs   []hub    // the nodes after the transactions
	delete []uint32 // by list: the transaction that deleted it; None: none; nil: there are no deletions

	// perhaps holds, by list, the first-begun transaction of unknown outcome that may have deleted it.
	perhaps map[uint32]uint32
}

// hub is a node that leads to all transactions with unread appends to a list.
type hub struct {
	list uint32
	to   []uint32
}

// These are the highest bits of a writer.
const (
	intermediate uint32 = 1 << 31 // the same transaction appended to the list again
	noEffect     uint32 = 1 << 30 // it was aborted, or appended the element to another version
	writerMask          = noEffect - 1
)

// order determines the version of each append, and which transactions of unknown outcome took effect: those
// with a write that was read.
func (c *checker) order() {
	for {
		c.join()
		if !c.resolve() && !c.resolveDeleted() {
			break
		}
	}
	c.findLater()
	c.forgetElements()
}

// forgetElements drops the elements of all lists whose elements are all known from their transactions.
func (c *checker) forgetElements() {
	for l, list := range c.lists {
		known := c.trees[uint32(l)] == nil && c.kept[l] != Pieces && !slices.Contains(c.writer[c.first[l]:c.first[l+1]], check.None)
		if known {
			c.lists[l] = nil
		} else {
			c.lists[l] = slices.Clone(list)
		}
	}
	c.store = elementStore{}
}

// elementIn returns the element that made a version of a list.
func (c *checker) elementIn(list, version uint32) uint64 {
	if c.lists[list] != nil {
		return c.lists[list][version-1]
	}
	t := c.writer[c.first[list]+version-1] & writerMask
	for op := c.row[t]; op < c.row[t+1]; op++ {
		if c.opList[op] == opAppend|list && c.arg.at(op) == version {
			return c.elementOf(t, op)
		}
	}
	return Missing
}

// elementOf returns the element of an append.
func (c *checker) elementOf(t, op uint32) uint64 {
	number := uint32(0)
	for before := c.row[t]; before < op; before++ {
		if c.opList[before]&opKinds == opAppend {
			number++
		}
	}
	return c.numbered(t, number)
}

// numbered returns the element of a transaction's append by its number, counted from 0.
func (c *checker) numbered(t, number uint32) uint64 {
	if c.Appended != nil {
		return c.Appended(c.idOf(t), number)
	}
	return c.element[c.firstElement[t]+number]
}

// ownerOf returns the transaction of an operation.
func (c *checker) ownerOf(op uint32) uint32 {
	return uint32(sort.Search(int(c.count()), func(t int) bool { return c.row[t+1] > op }))
}

// ofList holds the appends, grouped by list.
type ofList struct {
	row    []uint32 // by list
	op     []uint32 // the operations
	t      []uint32 // and their transactions
	number []uint8  // and how many appends of the transaction come before; uncounted: at least so many
}

// uncounted is the least number of an append in its transaction that ofList does not hold.
const uncounted = math.MaxUint8

// elementOf returns the element of the i-th append.
func (a *ofList) elementOf(c *checker, i uint32) uint64 {
	if number := a.number[i]; number < uncounted {
		return c.numbered(a.t[i], uint32(number))
	}
	return c.elementOf(a.t[i], a.op[i])
}

func (c *checker) appends() ofList {
	a := ofList{row: make([]uint32, len(c.lists)+2)}
	for _, l := range c.opList {
		if l&opKinds == opAppend {
			a.row[l&^opKinds+2]++
		}
	}
	for n := 2; n < len(a.row); n++ {
		a.row[n] += a.row[n-1]
	}
	all := a.row[len(a.row)-1]
	a.op, a.t, a.number = make([]uint32, all), make([]uint32, all), make([]uint8, all)
	for t := range c.count() {
		number := uint8(0)
		for op := c.row[t]; op < c.row[t+1]; op++ {
			if l := c.opList[op]; l&opKinds == opAppend {
				at := &a.row[l&^opKinds+1]
				a.op[*at], a.t[*at], a.number[*at] = op, uint32(t), number
				*at++
				if number < uncounted {
					number++
				}
			}
		}
	}
	return a
}

// join determines the version of each append.
func (c *checker) join() {
	a := c.appends()
	c.first = make([]uint32, len(c.lists)+1)
	for n, l := range c.lists {
		c.first[n+1] = c.first[n] + uint32(len(l))
	}
	c.writer = make([]uint32, c.first[len(c.lists)])
	for i := range c.writer {
		c.writer[i] = check.None
	}
	for _, kind := range []int{duplicate, takenBack, twice, disorder} {
		c.found[kind] = oddity{}
	}
	var table elementTable
	for n := range c.lists {
		if c.watch.Ended() {
			return
		}
		c.joinList(uint32(n), &a, &table)
	}
}

func (c *checker) joinList(n uint32, a *ofList, table *elementTable) {
	if c.trees[n] != nil {
		c.joinTree(n, a)
		return
	}
	list, writer := c.lists[n], c.writer[c.first[n]:c.first[n+1]]
	for _, again := range table.fill(list) {
		c.noteAgain(n, again, table)
	}
	previous, version := check.None, uint32(0) // the previous append's transaction and version
	for i := a.row[n]; i < a.row[n+1]; i++ {
		op, t := a.op[i], a.t[i]
		made := nowhere
		if place, read := table.find(a.elementOf(c, i)); read {
			made = place + 1
		}
		c.arg.set(op, made)
		if t == previous {
			c.examineOrder(n, t, op, version)
		}
		previous, version = t, made
		if made == nowhere {
			continue
		}
		if w := &writer[made-1]; *w != check.None {
			c.note(twice, finding{list: n, t: t, other: *w & writerMask, at: made})
		} else {
			*w = c.writerOf(a, n, i)
		}
	}
}

// noteAgain records a repeated element of a list. If two rows have one element, the row in the end state was kept.
func (c *checker) noteAgain(n, again uint32, table *elementTable) {
	list := c.lists[n]
	element := list[again]
	if c.kept[n] != Pieces {
		c.note(duplicate, finding{list: n, at: again + 1})
		return
	}
	if element == Missing {
		return
	}
	in := c.endsAt(n, element)
	if len(in) > 1 {
		c.note(duplicate, finding{list: n, at: again + 1})
		return
	}
	c.note(takenBack, finding{list: n, at: again + 1})
	if len(in) == 1 && in[0] == again {
		table.move(element, again)
	}
}

// writerOf returns the writer of a version, which is the i-th append of a list, with its flags.
func (c *checker) writerOf(a *ofList, n, i uint32) uint32 {
	w := a.t[i]
	if c.state[w] == uint8(history.Aborted) {
		w |= noEffect
	}
	if i+1 < a.row[n+1] && a.t[i+1] == a.t[i] {
		w |= intermediate
	}
	return w
}

// joinTree determines the versions of the appends to a tree. An append made the version after the one that
// its transaction had read. If that is not known, it made the first version with its element.
func (c *checker) joinTree(n uint32, a *ofList) {
	of, writer := c.trees[n], c.writer[c.first[n]:c.first[n+1]]
	by := map[uint64]uint32{} // by element: the number of its append in a
	previous, version := check.None, uint32(0)
	for i := a.row[n]; i < a.row[n+1]; i++ {
		op, t := a.op[i], a.t[i]
		element := a.elementOf(c, i)
		from := version
		if t != previous {
			from = c.baseVersion(t, n)
		}
		made := nowhere
		if from != nowhere {
			made = of.child(from, element)
		}
		if from == nowhere || made == 0 {
			if made = of.first[element]; made == 0 {
				made = nowhere
			}
		}
		c.arg.set(op, made)
		if t == previous {
			c.examineOrder(n, t, op, version)
		}
		previous, version = t, made
		if first, again := by[element]; again && made != nowhere {
			c.note(twice, finding{list: n, t: t, other: a.t[first], at: made})
			continue
		}
		by[element] = i
	}
	for v, e := range c.lists[n] {
		i, known := by[e]
		if !known {
			continue
		}
		if writer[v] = c.writerOf(a, n, i); c.arg.at(a.op[i]) != uint32(v+1) {
			writer[v] |= noEffect
		}
		for p := of.parent[v]; p > 0; p = of.parent[p-1] {
			if c.lists[n][p-1] == e {
				c.note(duplicate, finding{list: n, at: uint32(v + 1)})
				break
			}
		}
	}
}

// baseVersion returns the version of a list that a transaction read before it appended to it; nowhere means
// not known.
func (c *checker) baseVersion(t, list uint32) uint32 {
	from := nowhere
	for op := c.row[t]; op < c.row[t+1]; op++ {
		switch c.opList[op] {
		case opAppend | list:
			return from
		case opRead | list:
			if read := c.arg.at(op); from == nowhere {
				from = read
			} else if read != nowhere && read != from {
				return nowhere
			}
		}
	}
	return nowhere
}

// examineOrder records an append that does not follow the previous append of the same transaction to the
// list.
func (c *checker) examineOrder(n, t, op, before uint32) {
	if c.state[t] != uint8(history.Aborted) && c.disordered(n, before, c.arg.at(op)) {
		c.note(disorder, finding{list: n, t: t, op: op})
	}
}

// endsAt returns the positions of an element in the end state of a list, from 0.
func (c *checker) endsAt(list uint32, element uint64) (places []uint32) {
	if c.End == nil {
		return nil
	}
	end, known := c.strange[list]
	if !known {
		end = c.lists[list][:c.final[list]]
	}
	for i, e := range end {
		if e == element {
			places = append(places, uint32(i))
		}
	}
	return places
}

// disordered reports whether an append's version lacks what its transaction had appended to the list before.
func (c *checker) disordered(list, before, version uint32) bool {
	if before == nowhere && version != nowhere && c.kept[list] == Pieces && slices.Contains(c.lists[list][:version], Missing) {
		return false // it may be there
	}
	return before > version || version != nowhere && before != 0 && !c.contains(list, version, before)
}

// resolve determines which transactions of unknown outcome took effect, and records their reads. It returns
// true if new versions were found.
func (c *checker) resolve() (more bool) {
	for _, w := range c.writer {
		if w != check.None && c.state[w&writerMask] == uint8(history.Unknown) {
			c.state[w&writerMask] = observed
		}
	}
	rest := c.unread[:0]
	for _, u := range c.unread {
		if c.state[u.t] != observed {
			rest = append(rest, u)
			continue
		}
		had := len(c.lists[u.list])
		if u.op == check.None {
			c.observe(u.list, u.t, u.read)
		} else {
			c.arg.set(u.op, c.take(u.op, u.list, u.t, u.read))
		}
		more = more || len(c.lists[u.list]) > had || c.kept[u.list] == Pieces // it may have filled a position
	}
	c.unread = rest
	return more
}

// resolveDeleted determines who made a deleted list if only a transaction of unknown outcome can have made
// it. An absent list cannot be deleted.
func (c *checker) resolveDeleted() (more bool) {
	if !c.deletes {
		return false
	}
	makers, deleted := make([]uint32, len(c.lists)), map[uint32]bool{} // an effective maker takes precedence
	for l := range makers {
		makers[l] = check.None
	}
	const several = check.None - 1
	for t := range c.count() {
		for op := c.row[t]; op < c.row[t+1]; op++ {
			l := c.opList[op] &^ opKinds
			switch m := &makers[l]; {
			case c.opList[op]&opKinds == opDelete && c.counts(t):
				deleted[l] = true
			case c.opList[op]&opKinds != opAppend || c.state[t] == uint8(history.Aborted):
			case *m == check.None || c.counts(t):
				*m = t
			case *m != t && (*m == several || !c.counts(*m)):
				*m = several
			}
		}
	}
	for l := range deleted {
		switch t := makers[l]; {
		case t == several:
			c.undecided(fact.ListMakers{On: c.on(l), Unknown: true})
		case t == check.None:
			c.undecided(fact.ListMakers{On: c.on(l)})
		case !c.counts(t):
			c.state[t], more = observed, true
		}
	}
	return more
}

// findLater finds the unread appends to each list, and the transactions that deleted lists.
func (c *checker) findLater() {
	pending := map[uint32][]uint32{}
	for t := range c.count() {
		if c.state[t] == uint8(history.Aborted) || !c.counts(t) && !c.deletes {
			continue
		}
		for op := c.row[t]; op < c.row[t+1]; op++ {
			l := c.opList[op] &^ opKinds
			switch kind := c.opList[op] & opKinds; {
			case kind == opDelete:
				c.noteDelete(l, t)
			case kind == opAppend && c.counts(t):
				if c.arg.at(op) != nowhere {
					continue
				}
				if c.kept[l] == Values {
					c.unplaced = c.unplaced || c.End == nil
					continue
				}
				if list := pending[l]; len(list) == 0 || list[len(list)-1] != t {
					pending[l] = append(list, t)
				}
			}
		}
	}
	c.findGaps(pending)
	if len(pending) == 0 || c.End != nil {
		return // with an end state, an append in no list is lost
	}
	c.later = make([]uint32, len(c.lists))
	for l := range c.later {
		switch by := pending[uint32(l)]; len(by) {
		case 0:
			c.later[l] = check.None
		case 1:
			c.later[l] = by[0]
		default:
			c.later[l] = uint32(int(c.count()) + len(c.hubs))
			c.hubs = append(c.hubs, hub{uint32(l), by})
		}
	}
}

// findGaps finds the positions in lists of rows before a seen element that no transaction read. The writer of
// the next row has read a row that is missing in the end. Without an end state, an unread append may have
// filled the position.
func (c *checker) findGaps(pending map[uint32][]uint32) {
	for l, list := range c.lists {
		if c.kept[l] != Pieces || !slices.Contains(list, Missing) {
			continue
		}
		delete(pending, uint32(l))
		place := uint32(slices.Index(list, Missing)) + 1
		if c.End == nil {
			c.undecided(fact.ListUnreadRow{On: c.on(uint32(l)), Place: int(place)})
			continue
		}
		for v := place + 1; v <= uint32(len(list)); v++ {
			if t := c.effect(uint32(l), v); t != check.None && list[v-2] == Missing {
				c.note(gap, finding{list: uint32(l), t: t, at: v})
			}
		}
	}
}

func (c *checker) noteDelete(list, t uint32) {
	if !c.counts(t) {
		if first, ok := c.perhaps[list]; !ok || c.begin[t] < c.begin[first] {
			if c.perhaps == nil {
				c.perhaps = map[uint32]uint32{}
			}
			c.perhaps[list] = t
		}
		return
	}
	if c.delete == nil {
		c.delete = make([]uint32, len(c.lists))
		for i := range c.delete {
			c.delete[i] = check.None
		}
	}
	if first := c.delete[list]; first != check.None && first != t {
		c.undecided(fact.ListDeletedTwice{ListPair: c.pair(first, t), On: c.on(list)})
		return
	}
	c.delete[list] = t
}

// deleter returns the transaction that deleted a list.
func (c *checker) deleter(list uint32) uint32 {
	if c.delete == nil {
		return check.None
	}
	return c.delete[list]
}

// mayBeDeleted reports whether a list that was read as absent may have been deleted.
func (c *checker) mayBeDeleted(list uint32) bool {
	_, perhaps := c.perhaps[list]
	return perhaps || c.deleter(list) != check.None
}
