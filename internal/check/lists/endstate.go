package lists

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
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
		if c.final[l] = c.observe(l, check.None, row.List); c.final[l] == nowhere {
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
			there := c.place[number] <= c.final[l]
			if c.final[l] == nowhere {
				there = slices.Contains(c.strange[l], c.element[number])
			}
			switch {
			case c.counts(t) && !there:
				c.note(lost, finding{list: l, t: t, at: number})
			case !c.counts(t) && there:
				c.note(ghost, finding{list: l, t: t, at: number})
			}
		}
	}
}
