package totals

import (
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// order holds the results of the dependency graph.
type order struct {
	b          *balances
	undecided  fact.Fact                       // why no order can be called valid; nil: no reason
	anomalies  []check.Finding                 // without real time, sorted from the weakest level
	realtime   []check.Finding                 // only with real time
	torn       []history.ID                    // audits that saw no consistent cut
	tornOfLost int                             // number of these that would be consistent except for lost transactions
	doubt      check.Doubt                     // whether the order agrees with real time
	cycles     [][]graph.Step                  // in each, a transaction must precede the next, and the last the first
	more       map[isolation.Level]bool        // levels that forbid further cycles
	records    map[uint32]*history.Transaction // the transactions of the cycles; nil: could not be read
}

// order builds the graph, decides each level, and finds instances.
func (b *balances) order() *order {
	o := &order{b: b, undecided: b.whyUndecided()}
	if b.chain.writer == nil {
		return o
	}
	b.graph = graph.New(len(b.Txns.List), 0, graph.TimesOf(&b.Evidence), &b.Watch, b.edges.AddTo)
	b.edges = nil
	if b.graph.Unordered(graph.All, true) != nil {
		o.find(b.graph)
	} else {
		o.doubt = b.graph.DoubtOf(&b.Evidence)
	}
	if !b.Watch.Cancelled() {
		o.explainAll()
	}
	return o
}

// find finds the cycles. It uses real time only if there is no other cycle.
func (o *order) find(g *graph.Graph) {
	if g.Unordered(graph.All, false) != nil {
		o.torn = o.b.tornAudits(g)
		if len(o.torn) > 0 {
			kept := func(s graph.Step) bool { return !o.b.lost(s.From) && !o.b.lost(s.To) }
			o.tornOfLost = len(o.torn) - len(o.b.tornAudits(g.Only(kept)))
		}
		if len(o.b.chain.forks) > 0 {
			g = o.b.withoutLostUpdates(g)
		}
		o.cycles = g.Cycles(graph.Plain, o.group(check.Serializable))
	}
	if len(o.cycles) == 0 {
		o.cycles = g.Cycles(graph.Real, o.group(check.Strict))
	}
}

// group returns the function for the components without a reported cycle.
func (o *order) group(name string) func(level isolation.Level, component []uint32) {
	o.more = map[isolation.Level]bool{}
	show := o.b.showGroup(name)
	return func(level isolation.Level, component []uint32) {
		o.more[level] = true
		show(level, component)
	}
}

// withoutLostUpdates returns the graph without the edges between two transactions that overwrote one version.
// Each must precede the other, which is reported as a lost update and explains every longer cycle over such
// an edge. The remaining edges agree with an order in which both were written one after the other.
func (b *balances) withoutLostUpdates(g *graph.Graph) *graph.Graph {
	made := map[uint32][]uint32{} // by transaction: the forked positions that it made
	for _, f := range b.chain.forks {
		for _, t := range []uint32{f.first, f.second} {
			if !slices.Contains(made[t], f.pos) {
				made[t] = append(made[t], f.pos)
			}
		}
	}
	return g.Only(func(s graph.Step) bool {
		return !s.Anti() || !slices.ContainsFunc(made[s.From], func(pos uint32) bool { return slices.Contains(made[s.To], pos) })
	})
}

// whyUndecided returns the reason why no order can be called valid, or nil.
func (b *balances) whyUndecided() fact.Fact {
	unsent := 0
	for i := range b.Txns.List {
		if t := &b.Txns.List[i]; t.Source == check.FromLedger && b.Txns.Covers(t.ID.Run()) {
			unsent++
		}
	}
	switch other := b.OtherRuns(); {
	case b.Damage != nil:
		return check.Unreadable(b.Damage)
	case len(b.Input.History) == 0:
		return fact.NoHistory{}
	case b.Input.End == nil:
		return b.NoEnd()
	case !b.Complete():
		return fact.CutOff{}
	case other != nil:
		return other
	case unsent > 0:
		return fact.UnsentReads{Count: unsent}
	}
	return nil
}

// tornAudits returns the audits that saw the effect of a transaction but missed one of its dependencies, or
// that no common order explains. Only the audits' own reads count: if a READ COMMITTED inquiry missed an
// earlier transfer, an audit between the two is not at fault. So anti-dependencies of other transactions are
// omitted.
//
// At READ UNCOMMITTED, their reads are omitted too: a transaction may read an uncommitted value and commit
// first. An audit between the two commits sees the reader without the writer, and still has a consistent cut.
// Write-write dependencies remain, because every level forbids dirty writes.
func (b *balances) tornAudits(g *graph.Graph) []history.ID {
	audit := func(t uint32) bool { return b.Txns.List[t].Kind.Background() }
	seen := g.Only(func(s graph.Step) bool {
		return s.Kind == graph.Ww || audit(s.From) || s.Kind == graph.Wr && (audit(s.To) || b.Input.Expect != isolation.ReadUncommitted)
	})
	var torn []uint32
	for _, component := range seen.Components(graph.All, false) {
		for _, t := range component {
			if audit(t) {
				torn = append(torn, t)
			}
		}
	}
	slices.Sort(torn)
	var ids []history.ID
	for _, t := range torn {
		ids = append(ids, b.IDOf(t))
	}
	return ids
}

// claimed reports whether the claim includes serializability. An unknown claim does.
func claimed(claim isolation.Level) bool {
	return claim.Includes(isolation.Serializable) || claim == isolation.Unknown
}

// serializable returns the result of that check. The claim requires it; a weaker claim counts only the
// anomalies that it forbids.
func (o *order) serializable(claim isolation.Level) check.Result {
	r := check.Result{Name: check.Serializable, Required: claimed(claim) || forbids(claim, o.anomalies)}
	applied, dependencies := o.size()
	return o.judge(r, o.anomalies, o.undecided, fact.Serial{Transactions: applied, Dependencies: dependencies})
}

// forbids reports whether a claim forbids one of the anomalies.
func forbids(claim isolation.Level, anomalies []check.Finding) bool {
	return slices.ContainsFunc(anomalies, func(f check.Finding) bool { return claim.Includes(f.Forbidden) })
}

// judge returns the result that follows from the anomalies, with a limited number of witnesses.
func (o *order) judge(r check.Result, anomalies []check.Finding, undecided, holds fact.Fact) check.Result {
	r = r.Judge(anomalies, undecided, holds)
	r.Witness = r.Witness[:min(len(r.Witness), mostWitnesses)]
	if applied, _ := o.size(); applied == 0 {
		r = r.Without(fact.NoOrder{})
	}
	return r
}

// size returns the number of applied transactions and of dependencies.
func (o *order) size() (applied, dependencies int) {
	if p := o.b.proof; p != nil {
		return p.Applied, p.Dependencies
	}
	for i := range o.b.Txns.List {
		if o.b.Txns.List[i].Applied() {
			applied++
		}
	}
	if o.b.graph != nil {
		dependencies = o.b.graph.Edges()
	}
	return applied, dependencies
}

func (o *order) strict(claim isolation.Level) check.Result {
	r := check.Result{Name: check.Strict, Required: claim == isolation.StrictSerializable || forbids(claim, o.realtime)}
	found, why := o.realtime, o.undecided
	if len(o.anomalies) > 0 {
		found = notStrict()
	}
	if clocks := o.b.CountClocks(); why == nil && clocks > 1 {
		why = fact.ClocksApart{Clocks: clocks}
	}
	if why == nil {
		why = o.b.Uncertain(o.doubt.Count, "transaction")
	}
	return o.judge(r, found, why, fact.WithRealTime{})
}

// notStrict returns the finding of strict if serializable has found all anomalies.
func notStrict() []check.Finding {
	return []check.Finding{{Check: check.Strict, Count: 1, Instances: []fact.Fact{fact.NotSerializable{}}}}
}
