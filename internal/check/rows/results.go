package rows

import (
	"maps"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// The kinds of reads that no order explains.
const (
	dirty = iota
	intermediate
	nobodys
	oddKinds
)

// lostUpdateName is the name of the anomaly.
const lostUpdateName = "lost update (P4)"

func oddFindings() (list [oddKinds]check.Finding) {
	for kind, name := range [oddKinds]string{
		"dirty read (G1a)", "intermediate read (G1b)", "read of a version that nobody made",
	} {
		list[kind] = check.Finding{Check: check.Serializable, Anomaly: name, Forbidden: isolation.ReadCommitted}
	}
	return list
}

// addOdd adds a read that no order explains. what has its fate; nil: the read is intermediate.
func (c *checker) addOdd(kind int, o op, what fact.Fact) {
	reader, object := c.member(o.t), c.Object(o.object)
	if odd, ok := what.(fact.OddRead); ok {
		odd.Reader, odd.Writer, odd.Object, odd.Version = reader, fact.Member{ID: o.writer}, object, o.version
		what = odd
	} else {
		what = fact.RowIntermediate{
			Reader: reader, Writer: fact.Member{ID: o.writer}, Object: object, Version: o.version,
		}
	}
	f := &c.odd[kind]
	c.find(f, o.t, object, what, o.writer)
	if len(f.Cycle) == 0 && kind != nobodys {
		f.Cycle = []check.Edge{{
			From: o.writer, To: c.IDOf(o.t), Kind: check.WriteRead, Object: c.NameInSentence(o.object),
			FromVersion: versionText(o.version), ToVersion: versionText(o.version), Why: what,
		}}
	}
}

func (c *checker) member(t uint32) fact.Member {
	m := fact.Member{ID: c.IDOf(t)}
	if t != check.None && c.Words.Kind != nil {
		m.Kind = c.Words.Kind(c.Txns.List[t].Kind)
	}
	return m
}

func (c *checker) sameVersion(s sameVersion) fact.Fact {
	return fact.LostUpdate{
		First: c.member(s.first), Second: c.member(s.second), Object: c.Object(s.object), Version: s.version,
	}
}

func (c *checker) lostUpdate(l lostUpdate) fact.Fact {
	return fact.RowLostUpdate{
		By: c.member(l.t), Lost: c.member(l.by), Object: c.Object(l.object), Read: l.read, Made: l.made,
	}
}

// results returns the results of all checks.
func (c *checker) results() []check.Result {
	var anomalies, realtime []check.Finding
	computed := check.Finding{Check: NoLostUpdate, Anomaly: lostUpdateName, Forbidden: isolation.SnapshotIsolation}
	if c.Damage == nil {
		c.compareEnd()
		anomalies, realtime = c.anomalies()
		c.addLostUpdates(&computed, slices.DeleteFunc(slices.Clone(c.lost), func(l lostUpdate) bool {
			return !l.computed
		}))
	}
	results := c.orders(anomalies, realtime)
	if c.in.Computes {
		r := check.Result{Name: NoLostUpdate, Required: true}
		holds := fact.RowsUpdated{Writes: c.tracked.Writes}
		results = append(results, r.Judge([]check.Finding{computed}, c.undecided(), holds))
	}
	if c.Input.End != nil {
		for i, name := range []string{check.Durable, check.NoGhost} {
			r := check.Result{Name: name, Required: true}
			results = append(results, r.Judge(c.ends[i:i+1], c.noRows(), fact.RowsEnd{Rows: len(c.rows)}))
		}
	}
	c.Settle(results, c.Damage)
	return results
}

// orders returns the results of serializable and strict.
func (c *checker) orders(anomalies, realtime []check.Finding) []check.Result {
	expect := c.Input.Expect
	required := expect == isolation.Unknown || expect.Includes(isolation.Serializable)
	forbids := func(list []check.Finding) bool {
		return slices.ContainsFunc(list, func(f check.Finding) bool { return f.Count > 0 && expect.Includes(f.Forbidden) })
	}
	applied := 0
	for i := range c.Txns.List {
		if c.Txns.List[i].Applied() {
			applied++
		}
	}
	holds := fact.RowsSerial{Transactions: applied, Tracked: c.tracked}
	if c.graph != nil {
		holds.Dependencies = c.graph.Edges()
	}
	serializable := check.Result{Name: check.Serializable, Required: required || forbids(anomalies)}
	serializable = serializable.Judge(anomalies, c.undecided(), holds)
	strict := check.Result{Name: check.Strict, Required: expect == isolation.StrictSerializable || forbids(realtime)}
	why := c.undecided()
	if clocks := c.CountClocks(); why == nil && clocks > 1 {
		why = fact.ClocksApart{Clocks: clocks}
	}
	if why == nil {
		why = c.Uncertain(c.doubt.Count, "transaction")
	}
	if serializable.Status == check.Invalid {
		realtime = []check.Finding{{Check: check.Strict, Count: 1, Instances: []fact.Fact{fact.NotSerializable{}}}}
	}
	strict = strict.Judge(realtime, why, fact.WithRealTime{})
	if c.tracked.Reads+c.tracked.Writes == 0 {
		return []check.Result{serializable.Without(fact.NoOrder{}), strict.Without(fact.NoOrder{})}
	}
	return []check.Result{serializable, strict}
}

// undecided returns the reason why no order can be called valid, or nil.
func (c *checker) undecided() fact.Fact {
	switch {
	case c.Damage != nil:
		return check.Unreadable(c.Damage)
	case len(c.Input.History) == 0:
		return fact.NoHistory{}
	case !c.Complete():
		return fact.CutOff{}
	case len(c.doubled) > 0:
		return fact.RowTwice{Object: c.Object(slices.Min(slices.Collect(maps.Keys(c.doubled))))}
	case c.restarted != nil:
		return c.restarted
	case c.blind > 0:
		return fact.RowsUnversioned{Transactions: c.blind}
	case c.gap.Count > 0:
		return c.gap
	}
	return nil
}

// noRows returns the reason why the end state shows nothing, or nil.
func (c *checker) noRows() fact.Fact {
	switch {
	case c.Damage != nil:
		return check.Unreadable(c.Damage)
	case len(c.doubled) > 0:
		return fact.RowTwice{Object: c.Object(slices.Min(slices.Collect(maps.Keys(c.doubled))))}
	}
	return nil
}

// cycleKinds maps the kinds of the graph's edges to the kinds in results.
var cycleKinds = [...]check.EdgeKind{
	graph.Ww: check.WriteWrite, graph.Wr: check.WriteRead, graph.Rw: check.ReadWrite, graph.Rt: check.RealTime,
}
