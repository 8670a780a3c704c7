package lists

import (
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// readEnd takes the end state: one more read of each list.
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
		c.undecided(problem.Error())
	}
	return c.watch.Err
}

// compareEnd looks for what is lost and for what should not be there.
func (c *checker) compareEnd() {
	if c.End == nil {
		return
	}
	for t := range uint32(len(c.id)) {
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
			number := c.opArg[op]
			there := c.contains(l, c.final[l], c.place[number])
			if c.final[l] == nowhere {
				there = slices.Contains(c.strange[l], c.element[number])
			}
			switch {
			case c.counts(t) && !there && c.overwritten(l, t, number):
			case c.counts(t) && !there:
				c.note(lost, finding{list: l, t: t, at: number})
			case !c.counts(t) && there && c.kept[l] == Values && c.place[number] != c.final[l] && !c.forbidsDirtyReads():
				// Whoever wrote over it had read it.
			case !c.counts(t) && there:
				c.note(ghost, finding{list: l, t: t, at: number})
			}
		}
	}
}

// overwritten says that an append to a list of Values that is not there in the end is a lost
// update: somebody wrote over the value that it was appended to. Where it is not known which
// one that was, a claim that allows lost updates leaves it undecided.
func (c *checker) overwritten(list, t, number uint32) bool {
	if c.kept[list] != Values {
		return false
	}
	version := c.place[number]
	if version != nowhere {
		return c.final[list] != nowhere && !c.contains(list, version, c.final[list]) && !c.lostBefore(t, list, version)
	}
	if c.forbidsLostUpdates() {
		return false
	}
	c.undecided(fmt.Sprintf("%s is not in %s in the end, and whether it was overwritten or lost is not known", c.Element(c.element[number]), c.listName(list)))
	return true
}

// lostBefore says that an append which is not there in the end was acknowledged before whoever wrote
// over it began. A claim that forbids lost updates forbids that too: the append was lost.
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
