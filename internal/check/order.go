package check

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// order is what the dependency graph says.
type order struct {
	b         *bank
	undecided string             // why no order can be called valid; empty if it can
	anomalies []Anomaly          // without real time, the weakest level's first
	realtime  []Anomaly          // with real time only
	torn      []uint32           // audits that saw no consistent cut
	cycles    [][]step           // found so far, to be told: each must come before the next, the last before the first
	records   map[uint32]*record // what the transactions of the cycles did
}

type record struct {
	history.Transaction
	known bool
}

// The bounds of the search for short instances. Whether there is a cycle at all,
// and of which level, is decided exactly before it, and where no short one is
// found a long one is told.
const (
	mostComponents = 64 // of one level
	mostStarts     = 256
	mostVisits     = 1 << 20 // of nodes, in one search
)

// order builds the graph, decides each level, and finds instances.
func (b *bank) order() *order {
	o := &order{b: b, undecided: b.whyUndecided()}
	if b.chain.writer == nil {
		return o
	}
	full := newGraph(len(b.txns.list), b.edges, &b.watch)
	if !full.acyclic() {
		o.cyclic(full)
		o.torn = b.tornAudits()
	}
	if len(o.cycles) == 0 {
		o.findRealTime()
	}
	if !b.watch.ask() {
		o.tell()
	}
	return o
}

// whyUndecided says what is missing for calling any order valid.
func (b *bank) whyUndecided() string {
	foreign, ghosts := b.foreign(), 0
	for i := range b.txns.list {
		if t := &b.txns.list[i]; t.source == fromLedger && b.txns.covers(t.id.Run()) {
			ghosts++
		}
	}
	switch {
	case b.damage != nil:
		return b.damage.Error()
	case len(b.in.History) == 0:
		return "there is no history of what the clients saw; give the run directory of pay"
	case b.in.End == nil:
		return b.whyEndless()
	case !b.complete():
		return "the recording was cut off, so what the last transactions saw is not known"
	case foreign != "":
		return foreign
	case ghosts == 1:
		return fmt.Sprintf("the %s has a %s that no client sent, and what it read is not known", b.words.book, b.words.one)
	case ghosts > 0:
		return fmt.Sprintf("the %s has %d %ss that no client sent, and what they read is not known", b.words.book, ghosts, b.words.one)
	}
	return ""
}

// foreign says which transactions in the ledger are of runs whose history was not
// given; empty if there are none.
func (b *bank) foreign() string {
	count, runs := 0, map[uint64]bool{}
	for i := range b.txns.list {
		if t := &b.txns.list[i]; t.source == fromLedger && !b.txns.covers(t.id.Run()) {
			count++
			runs[t.id.Run()] = true
		}
	}
	var list []string
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		list = append(list, strconv.FormatUint(run, 10))
	}
	switch len(list) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("the %s has %s of run %s, whose history was not given: give its directory too", b.words.book, plural(count, b.words.one), list[0])
	}
	return fmt.Sprintf("the %s has %s of the runs %s, whose histories were not given: give their directories too",
		b.words.book, plural(count, b.words.one), joined(list[:min(some, len(list))], len(list)))
}

// cyclic decides for every component which level its cycles break, exactly, and
// picks instances: of each level a few, in the smallest components.
func (o *order) cyclic(full *graph) {
	inner := full.components()
	slices.SortFunc(inner, func(a, b []uint32) int { return len(a) - len(b) })
	told := map[isolation.Level]int{}
	for _, component := range inner {
		if o.b.watch.ended() {
			return
		}
		slices.Sort(component)
		level, find := full.restrict(component).broken()
		if told[level]++; told[level] > mostComponents {
			o.b.tellGroup(Serializable, level, component)
			continue
		}
		o.cycles = append(o.cycles, outward(find(), component))
	}
}

// broken returns the weakest level that forbids a cycle of g, which is strongly
// connected, and what finds such a cycle.
func (g *graph) broken() (isolation.Level, func() []step) {
	for kind, level := range []isolation.Level{ww: isolation.ReadUncommitted, wr: isolation.ReadCommitted} {
		narrow := g.only(uint8(kind))
		if parts := narrow.components(); len(parts) > 0 {
			slices.Sort(parts[0])
			return level, func() []step { return outward(narrow.restrict(parts[0]).instance(uint8(kind)), parts[0]) }
		}
	}
	spaced := g.spaced()
	if parts := spaced.components(); len(parts) > 0 {
		return isolation.SnapshotIsolation, func() []step {
			if steps := g.shortest(rw, wr); steps != nil {
				return steps
			}
			slices.Sort(parts[0])
			return halve(spaced.restrict(parts[0]).instance(rw), parts[0])
		}
	}
	return isolation.Serializable, func() []step { return g.instance(rw) }
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
func (b *bank) tornAudits() []uint32 {
	var e edges
	audit := func(t uint32) bool { return b.txns.list[t].kind == history.Audit }
	for i, kind := range b.edges.kind {
		from, to := b.edges.from[i], b.edges.to[i]
		if b.watch.ended() {
			return nil
		}
		if kind == ww || audit(from) || kind == wr && (audit(to) || b.in.Expect != isolation.ReadUncommitted) {
			e.add(from, to, kind)
		}
	}
	var torn []uint32
	for _, component := range newGraph(len(b.txns.list), e, &b.watch).components() {
		for _, t := range component {
			if audit(t) {
				torn = append(torn, t)
			}
		}
	}
	slices.Sort(torn)
	return torn
}

// halve maps a path of a spaced graph's component back to the graph's nodes.
func halve(steps []step, component []uint32) []step {
	for i := range steps {
		steps[i].from, steps[i].to = component[steps[i].from]/2, component[steps[i].to]/2
	}
	return steps
}

// outward maps a path of a restricted graph back to the graph's nodes.
func outward(steps []step, component []uint32) []step {
	for i := range steps {
		steps[i].from, steps[i].to = component[steps[i].from], component[steps[i].to]
	}
	return steps
}

// instance finds a cycle over edges of at most the given kind in a graph that is
// strongly connected by them: a short one where the search stays small, else any.
func (g *graph) instance(kind uint8) []step {
	if steps := g.shortest(kind, kind); steps != nil {
		return steps
	}
	return g.round(kind)
}

// round finds a cycle without any bound. It begins with the edge that leads
// back the farthest in the order of the nodes, which is roughly that of time; g
// is strongly connected, and that edge is of at most the given kind.
func (g *graph) round(kind uint8) []step {
	var first step
	farthest := int64(math.MinInt64)
	for n := range g.nodes() {
		for i := g.row[n]; i < g.row[n+1]; i++ {
			if g.w.ended() {
				return []step{first}
			}
			if back := int64(n) - int64(g.to[i]); g.kind[i] <= kind && back > farthest {
				first, farthest = step{uint32(n), g.to[i], g.kind[i]}, back
			}
		}
	}
	steps, _ := g.path(first.to, first.from, rt, math.MaxInt)
	return append([]step{first}, steps...)
}

// shortest finds a short cycle that begins with an edge of the highest kind that
// is at most first, and goes on over edges of at most rest; nil is none found.
func (g *graph) shortest(first, rest uint8) []step {
	var best []step
	tries, left := 0, mostVisits
	for kind := int(first); kind >= 0; kind-- {
		for n := range g.nodes() {
			for i := g.row[n]; i < g.row[n+1] && tries < mostStarts && left > 0; i++ {
				if int(g.kind[i]) != kind {
					continue
				}
				tries++
				back, visits := g.path(g.to[i], uint32(n), rest, left)
				left -= visits
				if back != nil && (best == nil || len(back)+1 < len(best)) {
					best = append([]step{{uint32(n), g.to[i], g.kind[i]}}, back...)
				}
				if len(best) == 2 {
					return best
				}
			}
		}
		if best != nil {
			return best
		}
		if first == rw && rest == wr {
			return nil // asked for exactly one anti-dependency
		}
	}
	return best
}

// classify names a cycle by its edges, after Adya, and says which is the weakest
// level that forbids it.
func classify(steps []step) (name string, forbidden isolation.Level) {
	anti, reads, real, adjacent := 0, 0, 0, false
	for i, s := range steps {
		switch s.kind {
		case rw:
			anti++
			adjacent = adjacent || len(steps) > 1 && steps[(i+1)%len(steps)].kind == rw
		case wr:
			reads++
		case rt:
			real++
		}
	}
	switch {
	case real > 0 && anti > 0:
		return "stale read", isolation.StrictSerializable
	case real > 0:
		return "real-time inversion", isolation.StrictSerializable
	case anti == 0 && reads == 0:
		return "dirty write (G0)", isolation.ReadUncommitted
	case anti == 0:
		return "circular information flow (G1c)", isolation.ReadCommitted
	case anti == 1:
		return "read skew (G-single)", isolation.SnapshotIsolation
	case !adjacent:
		return "long fork (G-nonadjacent)", isolation.SnapshotIsolation
	}
	return "write skew (G2-item)", isolation.Serializable
}

// serializable is the check of that name.
func (o *order) serializable(claim isolation.Level) Result {
	r := Result{Name: Serializable, Required: true, Anomalies: o.anomalies}
	if len(o.anomalies) == 0 {
		if o.undecided != "" {
			r.Detail = "Not decided: " + o.undecided + "."
			return r
		}
		r.Status = Valid
		r.Detail = fmt.Sprintf("%s, %s, no cycle.", plural(o.b.applied(), "committed transaction"), plural(len(o.b.edges.to), "dependency"))
		return r
	}
	r.Status = Invalid
	r.Required = claim >= isolation.Serializable || claim == isolation.Unknown
	for _, a := range o.anomalies {
		r.Required = r.Required || a.Forbidden <= claim
	}
	r.Detail = sentences(o.anomalies)
	r.Witness = witnesses(o.anomalies)
	return r
}

// strict is the check of that name.
func (o *order) strict(claim isolation.Level) Result {
	r := Result{Name: Strict, Required: claim >= isolation.StrictSerializable, Anomalies: o.realtime}
	switch {
	case len(o.anomalies) > 0:
		r.Status = Invalid
		r.Detail = "Not serializable, and so not strictly serializable either: see the check serializable."
		r.Witness = witnesses(o.anomalies)
	case len(o.realtime) > 0:
		r.Status = Invalid
		r.Detail = sentences(o.realtime)
		r.Witness = witnesses(o.realtime)
	case o.undecided != "":
		r.Detail = "Not decided: " + o.undecided + "."
	case o.b.apart() > 1:
		r.Detail = fmt.Sprintf("Not decided: within each run the order of all transactions agrees with real time, but the runs are on %d clocks "+
			"that nobody has compared, so whether a transaction of one run had ended before one of another began is not known.", o.b.apart())
	default:
		r.Status = Valid
		r.Detail = "The order of all transactions agrees with real time."
	}
	return r
}

// apart is the number of clocks on which the histories are that have a place in
// the order.
func (b *bank) apart() int {
	seen, clocks := make([]bool, len(b.in.History)), map[string]bool{}
	for i := range b.txns.list {
		if t := &b.txns.list[i]; t.source != fromLedger && t.counts() && !seen[t.source] {
			seen[t.source] = true
			clocks[b.clocks[t.source].ID] = true
		}
	}
	return len(clocks)
}

func (b *bank) applied() int {
	n := 0
	for i := range b.txns.list {
		if b.txns.list[i].applied() {
			n++
		}
	}
	return n
}

// sentences tells the anomalies, one paragraph each.
func sentences(anomalies []Anomaly) string {
	var text []string
	for _, a := range anomalies {
		text = append(text, fmt.Sprintf("%s%s: %s", strings.ToUpper(a.Name[:1]), a.Name[1:], a.Detail))
	}
	return strings.Join(text, "\n")
}

func witnesses(anomalies []Anomaly) []history.ID {
	var ids []history.ID
	for _, a := range anomalies {
		for _, id := range a.Witness {
			if !slices.Contains(ids, id) && len(ids) < 4*some {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// plural counts a noun; one ending in y takes -ies.
func plural[N int | uint64 | uint32](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
