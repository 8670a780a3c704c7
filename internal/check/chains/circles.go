package chains

import (
	"cmp"
	"slices"

	"stroppy/internal/check/graph"
	"stroppy/internal/history"
)

// circles are the transactions without an order, by the circles in which they were placed. While
// they are few all are kept. Of more, those are kept that the dependency graph would show: of
// each level the smallest ones, and all in which an audit is.
type circles struct {
	list  []circle
	count int // of their members
}

// circle is one of them, and the weakest test that its cycles make fail.
type circle struct {
	ids   []history.ID
	test  graph.Test
	audit bool
}

// mostCyclic bounds the members that are kept.
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

// prune leaves out circles that would not be shown.
func (c *circles) prune() {
	slices.SortStableFunc(c.list, func(a, b circle) int { return cmp.Compare(len(a.ids), len(b.ids)) })
	kept, shown := c.list[:0], [graph.Tests]int{}
	c.count = 0
	for _, one := range c.list {
		if shown[one.test]++; one.audit || shown[one.test] <= graph.MostPicked {
			kept = append(kept, one)
			c.count += len(one.ids)
		}
	}
	clear(c.list[len(kept):])
	c.list = kept
}

// ids are all members that are kept.
func (c *circles) ids() (list []history.ID) {
	for _, one := range c.list {
		list = append(list, one.ids...)
	}
	return list
}
