package lists

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/isolation"
)

// These are the oddities: errors of reads and appends that need no cycle.
const (
	garbage      = iota // an element that no transaction appended
	duplicate           // an element that occurs twice in a list
	takenBack           // the same in rows, if the end state has at most one of them
	disorder            // two appends of one transaction in the wrong order
	incompatible        // two reads of a list, neither of which is a prefix of the other
	twice               // the same element appended twice: the input is not a history of this kind
	aborted             // a read of an aborted append
	dirtyUpdate         // an append after an aborted one
	gap                 // an append after an empty position
	halfway             // a read between two appends of one transaction
	future              // a read of an element that the transaction appended only later
	internal            // a read that misses an append of its own transaction
	vanished            // a later read that misses an append of a transaction seen before
	fractured           // an earlier read that misses it
	lost                // an acknowledged append that is missing in the end state
	ghost               // an aborted append in the end state
	foreign             // an element in the end state that no transaction appended
	oddities
)

// oddityRules returns for each oddity the check that it breaks and the levels that forbid it.
func oddityRules() [oddities]struct {
	check, name string
	forbidden   []isolation.Level
} {
	type rule = struct {
		check, name string
		forbidden   []isolation.Level
	}
	level := func(l ...isolation.Level) []isolation.Level { return l }
	return [oddities]rule{
		garbage:      {Lists, "garbage read", level(isolation.ReadUncommitted)},
		duplicate:    {Lists, "duplicate element", level(isolation.ReadUncommitted)},
		takenBack:    {check.Serializable, "aborted read (G1a)", level(isolation.ReadCommitted)},
		disorder:     {Lists, "appends out of order", level(isolation.ReadUncommitted)},
		incompatible: {Lists, "incompatible order", level(isolation.ReadCommitted)},
		twice:        {Lists, "", nil},
		aborted:      {check.Serializable, "aborted read (G1a)", level(isolation.ReadCommitted)},
		dirtyUpdate:  {check.Serializable, "dirty update", level(isolation.ReadCommitted)},
		gap:          {check.Serializable, "aborted read (G1a)", level(isolation.ReadCommitted)},
		halfway:      {check.Serializable, "intermediate read (G1b)", level(isolation.ReadCommitted)},
		future:       {check.Serializable, "future read", level(isolation.ReadCommitted)},
		internal:     {check.Serializable, "internal inconsistency", level(isolation.ReadAtomic, isolation.RepeatableRead)},
		vanished:     {check.Serializable, "observed transaction vanishes (OTV)", level(isolation.MonotonicAtomicView)},
		fractured:    {check.Serializable, "fractured read", level(isolation.ReadAtomic)},
		lost:         {check.Durable, "", nil},
		ghost:        {check.NoGhost, "", nil},
		foreign:      {check.NoGhost, "", nil},
	}
}

// finding is one instance of an oddity. Only the relevant fields are set.
type finding struct {
	list     uint32
	t, other uint32 // the reader, and the transaction of the append
	op       uint32 // the operation of t; None: a range, or the end state
	append   uint32 // the append, of t or of other
	seen     uint32 // another operation of t
	at       uint32 // the version
	behind   uint32 // an earlier version
	read     []uint64
}

// oddity holds the number of findings of one kind, and the first few.
type oddity struct {
	count  int
	ofLost int  // number of findings that involve a transaction with a lost append
	seen   span // of the transactions that show the findings
	list   []finding
}

func (c *checker) note(kind int, f finding) {
	o := &c.found[kind]
	by := c.shownBy(kind, f)
	for _, t := range by {
		c.saw(&o.seen, t)
	}
	if len(c.lost) > 0 && kind != lost && slices.ContainsFunc(by, c.lost.has) {
		o.ofLost++
	}
	if o.count++; len(o.list) < check.Shown {
		f.read = slices.Clone(f.read)
		o.list = append(o.list, f)
	}
}

// ofTwo reports whether findings of a kind involve two transactions.
func (c *checker) ofTwo(kind int) bool {
	return slices.Contains([]int{twice, aborted, dirtyUpdate, halfway, vanished, fractured, incompatible}, kind)
}

// contradicts records a read that contradicts another one and is not a version.
func (c *checker) contradicts(f finding) {
	f.op, f.other = check.None, check.None
	c.note(incompatible, f)
}

// bad holds for each version of a list its first aborted element and its first element without an append; 0
// means none.
type bad struct{ aborted, garbage []uint32 }

// badLists finds aborted elements and elements without an append. The map contains only lists that have one.
func (c *checker) badLists() map[uint32]*bad {
	found := map[uint32]*bad{}
	for l := range uint32(len(c.lists)) {
		clean := true
		for v := c.first[l]; v < c.first[l+1] && clean; v++ {
			w := c.writer[v]
			clean = w != check.None && w&noEffect == 0 || w == check.None && c.lists[l][v-c.first[l]] == Missing
		}
		if !clean {
			found[l] = c.badVersions(l)
		}
	}
	return found
}

func (c *checker) badVersions(l uint32) *bad {
	b := &bad{make([]uint32, c.length(l)+1), make([]uint32, c.length(l)+1)}
	dirty := false
	for v := uint32(1); v <= c.length(l); v++ {
		w, parent := c.writer[c.first[l]+v-1], c.parent(l, v)
		b.aborted[v], b.garbage[v] = b.aborted[parent], b.garbage[parent]
		switch {
		case w != check.None && w&noEffect == 0:
			if at := b.aborted[v]; at != 0 && !dirty {
				dirty = true
				c.note(dirtyUpdate, finding{list: l, t: w & writerMask, other: c.writer[c.first[l]+at-1] & writerMask, at: v, behind: at})
			}
		case w != check.None && b.aborted[v] == 0:
			b.aborted[v] = v
		case w == check.None && b.garbage[v] == 0 && c.lists[l][v-1] != Missing:
			b.garbage[v] = v
		}
	}
	return b
}

// examine looks for errors in each read.
func (c *checker) examine() {
	wrong := c.badLists()
	for t := range c.count() {
		if c.watch.Ended() {
			return
		}
		if !c.counts(t) {
			continue
		}
		for op := c.row[t]; op < c.row[t+1]; op++ {
			kind, l, length := c.opList[op]&opKinds, c.opList[op]&^opKinds, c.arg.at(op)
			if kind > opRow || length == nowhere {
				continue
			}
			c.examineOwn(t, op, l, length)
			if length == 0 {
				continue
			}
			if last := c.writer[c.first[l]+length-1]; c.kept[l] != Pieces && last != check.None && last&intermediate != 0 && last&noEffect == 0 && last&writerMask != t {
				c.note(halfway, finding{list: l, t: t, other: last & writerMask, op: op})
			}
			if b := wrong[l]; len(wrong) > 0 && b != nil {
				if at := b.aborted[length]; at != 0 && !c.misses(op, at) {
					c.noteAborted(finding{list: l, t: t, op: op, at: at})
				}
				if at := b.garbage[length]; at != 0 && !c.misses(op, at) && !c.twiceAt(l, at) {
					c.note(garbage, finding{list: l, t: t, op: op, at: at})
				}
			}
		}
	}
	for i := range c.ranges {
		c.examineRange(&c.ranges[i])
	}
	if g := &c.found[garbage]; g.count > 0 && !c.Complete {
		f := g.list[0]
		c.undecided(fact.ListNotRecorded{Reader: c.member(f.t), On: c.on(f.list), Element: c.elementAt(f.list, f.at)})
		*g = oddity{}
	}
}

// noteAborted records a read of a version that its writer did not leave: the writer was aborted, or it
// appended the element to another version.
func (c *checker) noteAborted(f finding) {
	f.other = c.writer[c.first[f.list]+f.at-1] & writerMask
	if c.counts(f.other) {
		c.note(incompatible, f)
	} else {
		c.note(aborted, f)
	}
}

// twiceAt reports whether an element also occurs at another position of the list, so that its appender is
// known.
func (c *checker) twiceAt(list, version uint32) bool {
	elements := c.lists[list]
	element := elements[version-1]
	return slices.Contains(elements[:version-1], element) || slices.Contains(elements[version:], element)
}

// examineOwn compares a read with the transaction's own appends to the list.
func (c *checker) examineOwn(t, read, list, length uint32) {
	for op := c.row[t]; op < c.row[t+1]; op++ {
		if c.opList[op] != opAppend|list {
			continue
		}
		place := c.arg.at(op)
		switch {
		case op < read && !c.sees(read, list, length, place) && !c.hasDeleted(t, read, list):
			c.note(internal, finding{list: list, t: t, op: read, append: op})
		case op > read && c.sees(read, list, length, place):
			c.note(future, finding{list: list, t: t, op: read, append: op})
		}
	}
}

// examineRange records a range that misses a list to which its transaction had appended.
func (c *checker) examineRange(r *rangeRead) {
	if !c.counts(r.t) {
		return
	}
	for op := c.row[r.t]; op < r.first; op++ {
		l := c.opList[op] &^ opKinds
		if key := c.keys.key[l]; c.opList[op]&opKinds == opAppend && r.low <= key && key <= r.high && !c.matched(r, l) && !c.hasDeleted(r.t, r.first, l) {
			c.note(internal, finding{list: l, t: r.t, op: check.None, append: op})
		}
	}
}

// examineAtomicity looks for transactions that saw a part of another one. It examines only nodes of a core,
// because each case is on a cycle.
func (c *checker) examineAtomicity(nodes []uint32) {
	for _, t := range nodes {
		if int(t) >= int(c.count()) {
			continue
		}
		for seen := c.row[t]; seen < c.row[t+1]; seen++ {
			l, length := c.opList[seen]&^opKinds, c.arg.at(seen)
			if c.opList[seen]&opKinds > opRow || length == nowhere || length == 0 {
				continue
			}
			if w := c.effect(l, length); w != check.None && w != t {
				c.examineSeen(t, seen, w)
			}
		}
	}
}

// examineSeen looks for reads of t that miss an append of writer, although another operation of t read an
// append of writer to another list. A later read is a worse error than an earlier one.
func (c *checker) examineSeen(t, seen, writer uint32) {
	var worst finding
	kind := oddities
	for op := c.row[writer]; op < c.row[writer+1]; op++ {
		if c.opList[op]&opKinds != opAppend {
			continue
		}
		l, place := c.opList[op]&^opKinds, c.arg.at(op)
		for read := c.row[t]; read < c.row[t+1]; read++ {
			length := c.arg.at(read)
			if c.opList[read]&opKinds > opRow || c.opList[read]&^opKinds != l || length == nowhere || !c.older(l, length, place) || length == 0 && c.mayBeDeleted(l) {
				continue
			}
			if read == seen {
				continue // between two appends of the writer
			}
			if read > seen && kind != vanished || kind == oddities {
				worst, kind = finding{list: l, t: t, other: writer, op: read, append: op, seen: seen}, fractured
				if read > seen {
					kind = vanished
				}
			}
		}
	}
	if kind != oddities {
		c.note(kind, worst)
	}
}

// older reports whether a read found a version older than another one. For two values that overwrote the same
// one, this is not known. A missing row is a phantom, which does not belong to these anomalies because its
// read is by predicate.
func (c *checker) older(list, version, other uint32) bool {
	if c.kept[list] == Pieces {
		return false
	}
	if c.trees[list] != nil {
		return other != nowhere && version != other && c.contains(list, other, version)
	}
	if c.kept[list] == Values && other == nowhere {
		return false
	}
	return version < other
}
