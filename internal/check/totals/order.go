package totals

import (
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// order is what the dependency graph says.
type order struct {
	b         *balances
	undecided string                          // why no order can be called valid; empty if it can
	anomalies []check.Anomaly                 // without real time, the weakest level's first
	realtime  []check.Anomaly                 // with real time only
	torn      []history.ID                    // audits that saw no consistent cut
	cycles    [][]graph.Step                  // found so far: each must come before the next, the last before the first
	records   map[uint32]*history.Transaction // of the cycles; nil where it could not be read
}

// order builds the graph, decides each level, and finds instances.
func (b *balances) order() *order {
	o := &order{b: b, undecided: b.whyUndecided()}
	if b.chain.writer == nil {
		return o
	}
	full := graph.New(len(b.Txns.List), b.edges, &b.Watch)
	if !full.Acyclic() {
		o.cycles = full.Cycles(b.reportGroup)
		o.torn = b.tornAudits()
	}
	if len(o.cycles) == 0 {
		o.cycles = graph.Contradictions(&b.Evidence, b.edges, b.reportGroup)
	}
	if !b.Watch.Cancelled() {
		o.explainAll()
	}
	return o
}

// whyUndecided says what is missing for calling any order valid.
func (b *balances) whyUndecided() string {
	foreign, ghosts := b.Foreign(), 0
	for i := range b.Txns.List {
		if t := &b.Txns.List[i]; t.Source == check.FromLedger && b.Txns.Covers(t.ID.Run()) {
			ghosts++
		}
	}
	switch {
	case b.Damage != nil:
		return b.Damage.Error()
	case len(b.Input.History) == 0:
		return "there is no history of what the clients saw; give the run directory of pay"
	case b.Input.End == nil:
		return b.WhyNoEnd()
	case !b.Complete():
		return "the recording was cut off, so what the last transactions saw is not known"
	case foreign != "":
		return foreign
	case ghosts == 1:
		return fmt.Sprintf("the %s has a %s that no client sent, and what it read is not known", b.Words.Book, b.Words.One)
	case ghosts > 0:
		return fmt.Sprintf("the %s has %d %ss that no client sent, and what they read is not known", b.Words.Book, ghosts, b.Words.One)
	}
	return ""
}

// tornAudits returns the audits that saw the effect of a transaction and missed
// what that one depends on, or that no order of all audits explains. Only what
// the audits themselves read counts: where transfers are READ COMMITTED and an
// inquiry saw one transfer without an earlier one, an audit between the two is
// not to blame. So anti-dependencies of other transactions are left out.
//
// At READ UNCOMMITTED their reads are, too: a transaction may read what another
// has written and not committed, and commit before it. An audit between the two
// commits sees the reader without the writer, and that is a consistent cut.
// Writes over writes stay: a dirty write is forbidden at every level.
func (b *balances) tornAudits() []history.ID {
	var e graph.Edges
	audit := func(t uint32) bool { return b.Txns.List[t].Kind.Background() }
	for i, kind := range b.edges.Kind {
		from, to := b.edges.From[i], b.edges.To[i]
		if b.Watch.Ended() {
			return nil
		}
		if kind == graph.Ww || audit(from) || kind == graph.Wr && (audit(to) || b.Input.Expect != isolation.ReadUncommitted) {
			e.Add(from, to, kind)
		}
	}
	var torn []uint32
	for _, component := range graph.New(len(b.Txns.List), e, &b.Watch).Components() {
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

func (o *order) serializable(claim isolation.Level) check.Result {
	r := check.Result{Name: check.Serializable, Required: true, Anomalies: o.anomalies}
	if len(o.anomalies) > 0 {
		r.Required = claim.Includes(isolation.Serializable) || claim == isolation.Unknown
	}
	for _, a := range o.anomalies {
		r.Required = r.Required || claim.Includes(a.Forbidden)
	}
	applied, dependencies := 0, len(o.b.edges.To)
	for i := range o.b.Txns.List {
		if o.b.Txns.List[i].Applied() {
			applied++
		}
	}
	if p := o.b.proof; p != nil {
		applied, dependencies = p.Applied, p.Dependencies
	}
	return sentences(o.anomalies).decide(r, o.undecided, fmt.Sprintf("%s, %s, no cycle.",
		check.Plural(applied, "committed transaction"), check.Plural(dependencies, "dependency")))
}

func (o *order) strict(claim isolation.Level) check.Result {
	r := check.Result{Name: check.Strict, Required: claim == isolation.StrictSerializable, Anomalies: o.realtime}
	found, why := sentences(o.realtime), o.undecided
	if len(o.anomalies) > 0 {
		found = sentences(o.anomalies)
		found.lines = []string{"Not serializable, and so not strictly serializable either: see the check serializable."}
	}
	if clocks := o.b.CountClocks(); why == "" && clocks > 1 {
		why = fmt.Sprintf("within each run the order of all transactions agrees with real time, but the runs are on %d clocks "+
			"that were not compared, so whether a transaction of one run had ended before one of another began is not known", clocks)
	}
	return found.decide(r, why, "The order of all transactions agrees with real time.")
}

// sentences describes the anomalies, one paragraph each.
func sentences(anomalies []check.Anomaly) *verdict {
	found := new(verdict)
	for _, a := range anomalies {
		found.add(check.Capital(a.Name)+": "+a.Detail, a.Witness...)
	}
	found.witness = check.Distinct(found.witness)
	found.witness = found.witness[:min(len(found.witness), mostWitnesses)]
	return found
}
