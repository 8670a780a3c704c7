package rows

import (
	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// order builds the graph of the dependencies and finds its cycles.
func (c *checker) order() {
	c.prove()
	c.eachRow(c.relate)
	if c.Watch.Ended() {
		return
	}
	c.graph = graph.New(len(c.Txns.List), 0, graph.TimesOf(&c.Evidence), &c.Watch, c.edges.AddTo)
	c.edges = nil
	c.more = map[isolation.Level]bool{}
	if c.graph.Unordered(graph.All, true) == nil {
		c.doubt = c.graph.DoubtOf(&c.Evidence)
	} else if c.cycles = c.graph.Cycles(graph.Plain, c.group(check.Serializable)); len(c.cycles) == 0 {
		c.cycles = c.graph.Cycles(graph.Real, c.group(check.Strict))
	}
}

// group returns the function for the components without a reported cycle.
func (c *checker) group(name string) func(level isolation.Level, component []uint32) {
	return func(level isolation.Level, component []uint32) {
		c.more[level] = true
		anomaly := "cycle that is " + isolation.ForbiddenBy(level)
		for _, t := range component {
			c.Show(name, anomaly, c.IDOf(t), "", fact.Component{By: c.IDOf(t), All: len(component)})
		}
	}
}

// made is a version with the transaction that made it.
type made struct {
	version  uint64
	by       uint32
	computed bool
}

// relate adds the dependencies over one row, whose operations are sorted by version.
func (c *checker) relate(ops []op) {
	chain, forked := c.chain(ops)
	if forked {
		return
	}
	for i := 1; i < len(chain); i++ {
		before, after := chain[i-1], chain[i]
		c.edges.Add(before.by, after.by, graph.Ww)
		if missing := int(after.version - before.version - 1); missing > 0 {
			c.noteGap(ops[0].object, before.version+1, missing)
		}
	}
	first := map[uint32]made{} // by transaction: the first version that it made
	for _, m := range chain {
		if _, ok := first[m.by]; !ok {
			first[m.by] = m
		}
	}
	latest := map[uint32]uint64{} // by transaction that wrote: the latest version that it had read before
	for _, o := range ops {
		if own, writes := first[o.t]; writes && !o.write && o.version < own.version {
			latest[o.t] = o.version
		}
	}
	at := 0 // the first version of the chain after the one that was read
	for _, o := range ops {
		for at < len(chain) && chain[at].version <= o.version {
			at++
		}
		if !o.write && c.Txns.List[o.t].Applied() && o.writer != c.IDOf(o.t) {
			c.relateRead(o, chain, at, first, latest)
		}
	}
}

// chain returns the versions of a row that applied transactions made, in order. It reports whether two transactions
// made the same one.
func (c *checker) chain(ops []op) (chain []made, forked bool) {
	for _, o := range ops {
		if !o.write || !c.Txns.List[o.t].Applied() {
			continue
		}
		if n := len(chain); n > 0 && chain[n-1].version == o.version {
			if chain[n-1].by != o.t {
				forked = true
				c.twice = append(c.twice, sameVersion{o.object, o.version, chain[n-1].by, o.t})
			}
			continue
		}
		chain = append(chain, made{o.version, o.t, o.computed})
	}
	if end, ok := c.rows[ops[0].object]; ok && len(chain) > 0 {
		last := chain[len(chain)-1]
		t, known := c.Txns.Find(end.Writer)
		if known && t != last.by && end.Version == last.version && c.Txns.List[t].Applied() {
			forked = true
			c.twice = append(c.twice, sameVersion{end.N, end.Version, last.by, t})
		}
	}
	return chain, forked
}

func (c *checker) noteGap(object, version uint64, count int) {
	if c.gap.Count == 0 {
		c.gap = fact.RowGap{Object: c.Object(object), Version: version}
	}
	c.gap.Count += count
}

// relateRead adds the dependencies of a read of a version that another transaction made. at is the position of the next
// version in the chain.
func (c *checker) relateRead(o op, chain []made, at int, first map[uint32]made, latest map[uint32]uint64) {
	next := made{by: check.None}
	if at < len(chain) {
		next = chain[at]
	}
	w, known := c.Txns.Find(o.writer)
	switch n := c.writer(w, known); {
	case o.writer == 0:
	case n == nil && c.Recorded(o.writer):
		c.addOdd(nobodys, o, fact.OddRead{Fate: fact.NeverRecorded})
		return
	case n == nil: // of a run without a recording
	case !n.Applied():
		if n.Outcome == history.Aborted || n.Outcome == history.Rejected {
			c.addOdd(dirty, o, fact.OddRead{Fate: fact.NotApplied, Outcome: n.Outcome})
		}
		return
	case first[w].version != 0 && c.blind == 0 && (at == 0 || chain[at-1].version != o.version || chain[at-1].by != w):
		c.addOdd(dirty, o, fact.OddRead{Fate: fact.AppliedAs, As: first[w].version})
		return
	case next.by == w:
		c.addOdd(intermediate, o, nil)
		return
	default:
		c.edges.Add(w, o.t, graph.Wr)
	}
	own := first[o.t]
	if read, ok := latest[o.t]; ok && read == o.version && next.by != check.None && next.version < own.version {
		c.addLost(lostUpdate{o.object, o.version, own.version, o.t, next.by, own.computed})
		return
	}
	c.edges.Add(o.t, next.by, graph.Rw)
}

// writer returns the transaction that a read names as the writer, and nil if the recording does not have it.
func (c *checker) writer(w uint32, known bool) *check.Transaction {
	if !known {
		return nil
	}
	return &c.Txns.List[w]
}

// addLost adds a lost update, unless an equal read has shown it already.
func (c *checker) addLost(l lostUpdate) {
	if n := len(c.lost); n > 0 && c.lost[n-1] == l {
		return
	}
	c.lost = append(c.lost, l)
}
