package rows

import (
	"maps"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// readEnd reads the rows of the end state.
func (c *checker) readEnd() (problem error) {
	c.rows, c.doubled = map[uint64]history.Object{}, map[uint64]bool{}
	if c.Input.End == nil {
		return nil
	}
	for row := range check.Each(&c.Watch, "the end state's rows", c.Input.End.Objects(), &problem) {
		if row.N < First || row.N > last {
			continue
		}
		if _, twice := c.rows[row.N]; twice {
			c.doubled[row.N] = true
		}
		c.rows[row.N] = row
	}
	return problem
}

// The findings about the end state.
const (
	endLost = iota
	endGhost
)

// compareEnd compares the end state with the versions that were made.
func (c *checker) compareEnd() {
	c.ends = [2]check.Finding{{Check: check.Durable}, {Check: check.NoGhost}}
	if c.Input.End == nil || len(c.doubled) > 0 {
		return
	}
	c.lostWriters = map[uint32]bool{}
	c.eachRow(func(ops []op) {
		end := c.rows[ops[0].object]
		if vanishes := c.in.Vanishes != nil && c.in.Vanishes(ops[0].object); end.N == 0 && vanishes {
			return
		}
		for _, o := range ops {
			if !o.write || o.version <= end.Version || c.Txns.List[o.t].Outcome != history.Committed || c.lostWriters[o.t] {
				continue
			}
			c.lostWriters[o.t] = true
			c.find(&c.ends[endLost], o.t, c.Object(o.object), fact.RowLost{
				By: c.IDOf(o.t), Object: c.Object(o.object), Made: o.version, Ends: end.Version,
			})
		}
	})
	for _, n := range slices.Sorted(maps.Keys(c.rows)) {
		c.judgeWriter(c.rows[n])
	}
}

// judgeWriter looks at the last writer of a row.
func (c *checker) judgeWriter(row history.Object) {
	ghost := fact.RowGhost{By: row.Writer, Object: c.Object(row.N), Version: row.Version}
	t, ok := c.Txns.Find(row.Writer)
	switch {
	case row.Writer == 0:
	case !ok && c.Recorded(row.Writer):
		ghost.Unsent = true
		c.find(&c.ends[endGhost], check.None, ghost.Object, ghost)
	case ok:
		ghost.Outcome = c.Txns.List[t].Outcome
		if ghost.Outcome == history.Aborted || ghost.Outcome == history.Rejected {
			c.find(&c.ends[endGhost], t, ghost.Object, ghost)
		}
	}
}

// find adds a violation that transaction t shows to a finding.
func (c *checker) find(f *check.Finding, t uint32, on fact.Object, what fact.Fact, others ...history.ID) {
	id := c.IDOf(t)
	c.Show(f.Check, f.Anomaly, id, on, what)
	if t != check.None && len(c.Input.History) == 1 {
		f.At(c.Txns.List[t].End)
	}
	f.Add(what, on, append([]history.ID{id}, others...)...)
}
