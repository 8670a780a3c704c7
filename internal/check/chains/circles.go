package chains

import (
	"cmp"
	"slices"

	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// circles holds the transactions without an order, grouped by the circles in which they were placed. If there
// are too many, it keeps those that the dependency graph would show: the smallest of each level, one more that
// tells it that there are more, and all that contain an audit.
type circles struct {
	list  []circle
	count int // number of kept members
}

// circle is a set of transactions without an order, with the weakest test that its cycles fail.
type circle struct {
	ids   []history.ID
	test  graph.Test
	audit bool
}

// mostCyclic limits the number of kept members.
const mostCyclic = 1 << 18

func (c *circles) add(members []*transaction, test graph.Test) {
	one := circle{test: test}
	for _, t := range members {
		if !t.has(anonymous) {
			one.ids = append(one.ids, t.id)
		}
		one.audit = one.audit || t.has(background)
	}
	c.list = append(c.list, one)
	if c.count += len(members); c.count > mostCyclic {
		c.prune()
	}
}

// prune drops circles that would not be shown.
func (c *circles) prune() {
	slices.SortStableFunc(c.list, func(a, b circle) int { return cmp.Compare(len(a.ids), len(b.ids)) })
	kept, shown := c.list[:0], [graph.Tests]int{}
	c.count = 0
	for _, one := range c.list {
		if shown[one.test]++; one.audit || shown[one.test] <= graph.MostPicked+1 {
			kept = append(kept, one)
			c.count += len(one.ids)
		}
	}
	clear(c.list[len(kept):])
	c.list = kept
}

// ids returns all kept members.
func (c *circles) ids() (list []history.ID) {
	for _, one := range c.list {
		list = append(list, one.ids...)
	}
	return list
}
