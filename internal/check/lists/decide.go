package lists

import (
	"maps"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// cycle is an instance of a phenomenon, in nodes of the whole graph.
type cycle struct {
	steps     []graph.Step
	name      string
	order     graph.Order
	forbidden []isolation.Level
	count     int
	ofLost    int  // number of cycles that involve a transaction with a lost append
	ofUpdate  int  // number of cycles that involve a transaction with a lost append or a lost update
	exact     bool // no shorter cycle exists
	seen      span // of the transactions of all counted cycles
}

// span holds the first and the last end of transactions, ns on the clock of the input. 0 is unknown.
type span struct{ first, last int64 }

func (s *span) add(end int64) {
	if s.first == 0 || end < s.first {
		s.first = end
	}
	s.last = max(s.last, end)
}

// saw adds the end of a transaction to a span. Times of several clocks are not compared.
func (c *checker) saw(s *span, t uint32) {
	if c.RealTime && c.Lasted == nil && len(c.Errors) <= 1 && c.end[t] > 0 && c.end[t] != graph.Never {
		s.add(c.end[t])
	}
}

// lostUpdate is the anomaly of two transactions that read the same version of a list and both appended to it.
const lostUpdate = "lost update (P4)"

// decide determines which levels have a cycle, and finds the shortest cycle of each kind.
func (c *checker) decide() error {
	if c.watch.Err != nil {
		return c.watch.Err
	}
	if c.RealTime && c.clock != nil && c.decision.Cores[graph.Real] == nil {
		c.doubt = c.graph.Doubt(graph.Uncertain{Begin: c.begin, End: c.end, Group: c.clock, Error: c.Errors})
	}
	c.settleUnread()
	if c.forked {
		c.examineAtomicity(c.all())
		c.open = c.torn()
	}
	for o := graph.Plain; o < graph.Orders; o++ {
		if c.decision.Cores[o] == nil || o == graph.Real && !c.RealTime {
			continue
		}
		if o == graph.Plain && !c.forked {
			c.examineAtomicity(c.decision.Nodes[o])
		}
		c.search(o)
	}
	return c.watch.Err
}

// unreadUpdates finds the lost updates among unread appends. If two transactions read the same version and
// appended to it, one lost its update, in either order. For rows this differs: the second appender saw the
// row of the first, although its read had missed it.
func (c *checker) unreadUpdates() {
	lostUpdates := cycle{name: lostUpdate, exact: true, forbidden: graph.GSingle.Forbidden(graph.Plain, true)}
	skews := cycle{name: graph.GSingle.Name(graph.Plain, false), exact: true, forbidden: graph.GSingle.Forbidden(graph.Plain, false)}
	for _, h := range c.hubs {
		var racers []uint32
		for _, t := range h.to {
			if c.readBefore(t, h.list) {
				racers = append(racers, t)
			}
		}
		if c.kept[h.list] == Pieces {
			c.race(&skews, racers, graph.PredicateRw)
		} else {
			c.race(&lostUpdates, racers, graph.Rw)
		}
	}
	for _, k := range []cycle{lostUpdates, skews} {
		if k.count > 0 {
			c.cycles = append(c.cycles, k)
		}
	}
}

// settleUnread decides snapshot isolation if several transactions appended unread elements to one list. If
// all transactions have an order, the appends follow it. Otherwise one of two appenders must have the other
// in its snapshot, and graph.Settle looks for an order.
func (c *checker) settleUnread() {
	var groups [][]graph.Run
	for _, h := range c.hubs {
		var group []graph.Run
		for _, t := range h.to {
			group = append(group, graph.Run{First: t, Last: t})
		}
		groups = append(groups, group)
	}
	for o := graph.Plain; o < graph.Orders && len(groups) > 0; o++ {
		states := &c.decision.States[o]
		open := states[graph.TestSnapshot] == graph.Holds && states[graph.TestSerializable] != graph.Holds
		if !open || o == graph.Real && !c.RealTime {
			continue
		}
		if o > graph.Plain && c.decision.States[o-1][graph.TestSnapshot] == graph.Fails {
			states[graph.TestSnapshot] = graph.Fails
			continue
		}
		found := c.graph.Settle(groups, true, o, nil)
		switch {
		case found.State == graph.Holds:
		case found.State == graph.Open || len(found.First) == 0:
			c.unsettled[o] = true
		default:
			states[graph.TestSnapshot] = graph.Fails
			c.addCycle(found.First, 1, false)
			// The cycle exists in only one of the two orders, so it breaks no other level.
			c.cycles[len(c.cycles)-1].forbidden = []isolation.Level{graph.TestSnapshot.Level(o)}
		}
	}
}

// race counts an anomaly in which each of several transactions must precede all others.
func (c *checker) race(k *cycle, racers []uint32, kind uint8) {
	if len(racers) < 2 {
		return
	}
	lost := 0
	for _, t := range racers {
		c.saw(&k.seen, t)
		if c.lost.has(t) {
			lost++
		}
		if k.name == lostUpdate {
			c.updates.set(t)
		}
	}
	k.ofLost += min(lost, len(racers)-1)
	if k.count += len(racers) - 1; k.steps == nil {
		a, b := racers[0], racers[1]
		k.steps = []graph.Step{{From: a, To: b, Kind: kind}, {From: b, To: a, Kind: kind}}
	}
}

// forkedUpdates finds the values that were overwritten by several transactions that had read them. All but
// the last one lost their updates.
func (c *checker) forkedUpdates() {
	k := cycle{name: lostUpdate, exact: true, forbidden: graph.GSingle.Forbidden(graph.Plain, true)}
	for _, l := range slices.Sorted(maps.Keys(c.trees)) {
		for v := range c.length(l) {
			var racers []uint32
			for _, over := range c.children(l, v) {
				racers = append(racers, c.effect(l, over))
			}
			c.race(&k, racers, graph.Rw)
		}
	}
	if k.count > 0 {
		c.forked = true
		c.cycles = append(c.cycles, k)
	}
}

func (c *checker) all() []uint32 {
	list := make([]uint32, 0, int(c.count()))
	for t := range c.count() {
		if c.counts(t) {
			list = append(list, t)
		}
	}
	return list
}

// readBefore reports whether a transaction read the whole known list before it appended to it.
func (c *checker) readBefore(t, list uint32) bool {
	for op := c.row[t]; op < c.row[t+1]; op++ {
		switch {
		case c.opList[op] == opAppend|list:
			return false
		case c.opList[op]&opKinds <= opRow && c.opList[op]&^opKinds == list && c.arg.at(op) == c.length(list):
			return true
		}
	}
	return false
}

// search finds the shortest cycle of each phenomenon in an order, and at least one for each broken level.
func (c *checker) search(o graph.Order) {
	core, nodes, states := c.decision.Cores[o], c.decision.Nodes[o], c.decision.States[o]
	clients := make([]uint32, len(nodes))
	for i, n := range nodes {
		if n < c.count() {
			clients[i] = c.sessionOf(n)
		}
	}
	s := graph.NewSearch(core, o, clients)
	var tally consequences
	known := func(steps []graph.Step) bool {
		steps = graph.Outward(slices.Clone(steps), nodes)
		if c.known(steps) {
			return true
		}
		tally.take(c, steps)
		return false
	}
	for p := range graph.Phenomena {
		if c.watch.Cancelled() {
			return
		}
		if states[p.Test()] != graph.Fails || p == graph.G2 && len(c.ranges) == 0 && !c.pieces {
			continue
		}
		tally = consequences{}
		f := s.Shortest(p, known)
		if f.Cycle != nil {
			c.addCycle(graph.Outward(f.Cycle, nodes), f.Count, f.Exact)
			k := &c.cycles[len(c.cycles)-1]
			k.ofLost, k.ofUpdate = tally.count(len(f.Cycle))
			k.seen = tally.seen[len(f.Cycle)]
		}
	}
	for t := range graph.Tests {
		if states[t] != graph.Fails || c.shown(t.Level(o)) || o != graph.Plain && t == graph.TestRepeatableRead {
			continue
		}
		if steps := core.Any(t, o); steps != nil {
			c.addCycle(graph.Outward(steps, nodes), 1, false)
		}
	}
}

// consequences holds what is known of the cycles that a search counted.
type consequences struct {
	lost, update map[uint64]int // the length of each cycle with a lost append or update, by its transactions
	seen         map[int]span   // of all cycles of a length
}

func (n *consequences) take(c *checker, steps []graph.Step) {
	lost, update, set := false, false, uint64(0)
	seen := n.seen[len(steps)]
	for _, s := range steps {
		c.saw(&seen, s.From)
		lost = lost || c.lost.has(s.From)
		update = update || c.updates.has(s.From)
		set += check.Mix(uint64(s.From) + 1)
	}
	if n.seen == nil {
		n.seen = map[int]span{}
	}
	n.seen[len(steps)] = seen
	if n.lost == nil && (lost || update) {
		n.lost, n.update = map[uint64]int{}, map[uint64]int{}
	}
	if lost {
		n.lost[set] = len(steps)
	}
	if update {
		n.update[set] = len(steps)
	}
}

// count returns the number of such cycles of a length.
func (n *consequences) count(length int) (lost, update int) {
	for _, l := range n.lost {
		if l == length {
			lost++
		}
	}
	for _, l := range n.update {
		if l == length {
			update++
		}
	}
	return lost, update
}

// known reports whether a cycle follows from a known cycle that uses a subset of its transactions.
func (c *checker) known(steps []graph.Step) bool {
	if len(steps) == 2 && c.forked && c.meetFork(steps[0].From, steps[1].From).ok {
		return true // both overwrote the same value
	}
	return slices.ContainsFunc(c.cycles, func(k cycle) bool {
		return len(k.steps) <= len(steps) && !slices.ContainsFunc(k.steps, func(s graph.Step) bool {
			return !slices.ContainsFunc(steps, func(t graph.Step) bool { return t.From == s.From })
		})
	})
}

// shown reports whether a cycle was found that breaks a level.
func (c *checker) shown(level isolation.Level) bool {
	return slices.ContainsFunc(c.cycles, func(k cycle) bool {
		return slices.ContainsFunc(k.forbidden, level.Includes)
	})
}

func (c *checker) addCycle(steps []graph.Step, count int, exact bool) {
	p, o, item := graph.PhenomenonOf(steps)
	k := cycle{steps: steps, name: p.Name(o, item), order: o, forbidden: p.Forbidden(o, item), count: count, exact: exact}
	if o == graph.Plain && p == graph.GSingle && c.isLostUpdate(steps) {
		k.name = lostUpdate
	}
	if count == 1 {
		for _, s := range steps {
			c.saw(&k.seen, s.From)
		}
	}
	c.cycles = append(c.cycles, k)
}

// isLostUpdate reports whether the cycle is a lost update: two transactions read the same version of a list
// and both appended to it.
func (c *checker) isLostUpdate(steps []graph.Step) bool {
	if len(steps) != 2 {
		return false
	}
	_, ok := c.meetUpdate(steps[0].From, steps[1].From)
	return ok
}

// meetUpdate finds the list of which two transactions read the same version and to which both appended.
func (c *checker) meetUpdate(a, b uint32) (m meeting, ok bool) {
	for op := c.row[a]; op < c.row[a+1]; op++ {
		l := c.opList[op] &^ opKinds
		if c.opList[op]&opKinds > opRow || c.arg.at(op) == nowhere || c.kept[l] == Pieces || !c.appendsTo(a, l) || !c.appendsTo(b, l) {
			continue
		}
		for other := c.row[b]; other < c.row[b+1]; other++ {
			if c.opList[other]&opKinds <= opRow && c.opList[other]&^opKinds == l && c.arg.at(other) == c.arg.at(op) {
				return meeting{list: l, from: c.arg.at(op), op: op}, true
			}
		}
	}
	return meeting{}, false
}

func (c *checker) appendsTo(t, list uint32) bool {
	return slices.Contains(c.opList[c.row[t]:c.row[t+1]], opAppend|list)
}

// keeps reports whether the history satisfies a level.
func (c *checker) keeps(level isolation.Level) graph.State {
	worst := graph.Holds
	for o := range graph.Orders {
		for t := range graph.Tests {
			l := t.Level(o)
			if o == graph.Real && !c.RealTime && level.Includes(isolation.StrongReadUncommitted) && l == level {
				worst = max(worst, graph.Open)
			}
			if o == graph.Real && c.doubted() && l == level {
				worst = max(worst, graph.Open)
			}
			if l != isolation.Unknown && level.Includes(l) {
				worst = max(worst, c.decision.States[o][t])
			}
		}
	}
	rules := oddityRules()
	for kind := range rules {
		if c.found[kind].count > 0 && slices.ContainsFunc(rules[kind].forbidden, level.Includes) {
			return graph.Fails
		}
	}
	if slices.ContainsFunc(c.cycles, func(k cycle) bool { return slices.ContainsFunc(k.forbidden, level.Includes) }) {
		return graph.Fails
	}
	if worst == graph.Holds && (c.why != nil || c.unordered(level) || c.unknownValues(level)) {
		return graph.Open
	}
	return worst
}

// doubted reports whether real time may contradict the order of the transactions. If they have no order even
// by the certain times, weaker orders are not examined.
func (c *checker) doubted() bool {
	return c.doubt.Count > 0 || c.clock != nil && c.decision.Cores[graph.Real] != nil
}

// unordered reports whether a level depends on the order of unread appends to one list, and the search found
// no order within its limits.
func (c *checker) unordered(level isolation.Level) bool {
	for o := range graph.Orders {
		if c.unsettled[o] && level.Includes(graph.TestSnapshot.Level(o)) {
			return true
		}
	}
	return false
}

// unknownValues reports whether a level depends on unknown facts about Values: which of two values was
// written later, or what a transaction had read before its write. Read committed does not depend on them: any
// order that agrees with the reads suffices.
func (c *checker) unknownValues(level isolation.Level) bool {
	return (c.open || c.unplaced) && level.Includes(isolation.MonotonicAtomicView)
}

// effective returns the number of transactions that took effect.
func (c *checker) effective() (n int) {
	for t := range c.count() {
		if c.counts(t) {
			n++
		}
	}
	return n
}
