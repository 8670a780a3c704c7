package lists

import (
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// readEnd reads the end state like one more read of each list. If it cannot be read completely, it is
// ignored.
func (c *checker) readEnd() error {
	if c.End == nil {
		return nil
	}
	var problem error
	for row := range check.Each(&c.watch, "the end state", c.End, &problem) {
		l := c.list(row.Key)
		for int(l) >= len(c.final) {
			c.final = append(c.final, 0)
		}
		if c.final[l] != 0 {
			problem = fmt.Errorf("the end state could not be read: %s occurs twice", c.on(l))
			break
		}
		if c.final[l] = c.observe(l, check.None, row.List); c.final[l] == nowhere || c.kept[l] == Pieces && slices.Contains(row.List, Missing) {
			c.final[l] = nowhere
			if c.strange == nil {
				c.strange = map[uint32][]uint64{}
			}
			c.strange[l] = slices.Clone(row.List)
		}
	}
	for len(c.final) < len(c.lists) {
		c.final = append(c.final, 0)
	}
	if problem != nil && c.watch.Err == nil {
		c.NoEnd = fact.Unreadable{Problem: problem.Error()}
		c.undecided(c.NoEnd)
		c.End, c.final, c.strange = nil, nil, nil
	}
	return c.watch.Err
}

// compareEnd looks for unexpected content of the end state.
func (c *checker) compareEnd() {
	if c.End == nil {
		return
	}
	for l := range uint32(len(c.lists)) {
		if c.watch.Ended() {
			return
		}
		if end, strange := c.strange[l]; !strange {
			c.examineEnd(l)
		} else {
			c.examineStrange(l, end)
		}
	}
	if f := &c.found[foreign]; f.count > 0 && !c.Complete {
		first := f.list[0]
		c.undecided(fact.ListNotRecorded{On: c.on(first.list), Element: c.name(first.list, first.read[len(first.read)-1])})
		*f = oddity{}
	}
}

// examineEnd examines each element of a list in the end state.
func (c *checker) examineEnd(l uint32) {
	for v := c.final[l]; v > 0; v = c.parent(l, v) {
		w := c.writer[c.first[l]+v-1]
		switch {
		case w == check.None && !c.twiceAt(l, v):
			c.note(foreign, finding{list: l, read: c.content(l, v)})
		case w == check.None || w&noEffect == 0 || c.state[w&writerMask] == uint8(history.Aborted):
		default:
			c.note(incompatible, finding{list: l, t: check.None, op: check.None, other: w & writerMask, at: v})
		}
	}
}

// examineStrange looks for elements without an append, in a list whose end state matches no version.
func (c *checker) examineStrange(l uint32, end []uint64) {
	for i, e := range end {
		if _, known := c.appended[listElement{l, e}]; !known && e != Missing {
			c.note(foreign, finding{list: l, read: end[:i+1]})
		}
	}
}

// listElement identifies an element of a list.
type listElement struct {
	list    uint32
	element uint64
}

// noteAppended records the appends to lists whose end state matches no version.
func (c *checker) noteAppended() {
	if len(c.strange) == 0 {
		return
	}
	c.appended = map[listElement]bool{}
	for t := range c.count() {
		for op := c.row[t]; op < c.row[t+1]; op++ {
			l := c.opList[op] &^ opKinds
			if _, strange := c.strange[l]; strange && c.opList[op]&opKinds == opAppend {
				c.appended[listElement{l, c.elementOf(t, op)}] = true
			}
		}
	}
}

// examineLost compares each append with the end state, if there is one.
func (c *checker) examineLost() {
	if c.End == nil {
		return
	}
	c.noteAppended()
	for t := range c.count() {
		if c.watch.Ended() {
			return
		}
		if c.state[t] == uint8(history.Unknown) {
			continue
		}
		for op := c.row[t]; op < c.row[t+1]; op++ {
			l := c.opList[op] &^ opKinds
			if c.opList[op]&opKinds != opAppend || c.mayBeDeleted(l) {
				continue
			}
			there := c.inEnd(l, t, op)
			switch {
			case c.counts(t) && !there && c.overwritten(l, t, op):
			case c.counts(t) && !there:
				c.note(lost, finding{list: l, t: t, op: op})
				c.lost.set(t)
			case !c.counts(t) && there && c.kept[l] == Values && c.arg.at(op) != c.final[l] && !c.forbidsDirtyReads():
				// The transaction that overwrote it had read it.
			case !c.counts(t) && there:
				c.note(ghost, finding{list: l, t: t, op: op})
			}
		}
	}
}

// inEnd reports whether the end state contains the element of an append.
func (c *checker) inEnd(l, t, op uint32) bool {
	switch {
	case c.final[l] == nowhere:
		return slices.Contains(c.strange[l], c.elementOf(t, op))
	case c.contains(l, c.final[l], c.arg.at(op)):
		return true
	case c.trees[l] == nil:
		return false
	}
	return slices.Contains(c.content(l, c.final[l]), c.elementOf(t, op))
}

// overwritten reports whether an append to a list of Values is a lost update. The append is missing in the end state,
// and its value was overwritten. If the value is not known, a claim that allows lost updates leaves the append
// undecided.
func (c *checker) overwritten(list, t, op uint32) bool {
	if c.kept[list] != Values {
		return false
	}
	version := c.arg.at(op)
	if version != nowhere {
		return c.final[list] != nowhere && !c.contains(list, version, c.final[list]) && !c.lostBefore(t, list, version)
	}
	if c.forbidsLostUpdates() {
		return false
	}
	c.undecided(fact.ListPerhapsOverwritten{On: c.on(list), Element: c.appendedBy(op)})
	return true
}

// lostBefore reports whether an append that is missing in the end state was acknowledged before its
// overwriter began. Under a claim that forbids lost updates, such an append was lost.
func (c *checker) lostBefore(t, list, version uint32) bool {
	over := c.final[list]
	for over > 0 && !c.contains(list, version, c.parent(list, over)) {
		over = c.parent(list, over)
	}
	by := c.effect(list, over)
	return c.RealTime && by != check.None && c.ended(t, by) && c.forbidsLostUpdates()
}

func (c *checker) forbidsDirtyReads() bool {
	return c.Expect == isolation.Unknown || c.Expect.Includes(isolation.ReadCommitted)
}

func (c *checker) forbidsLostUpdates() bool {
	return c.Expect == isolation.Unknown || slices.ContainsFunc(graph.GSingle.Forbidden(graph.Plain, true), c.Expect.Includes)
}
