package lists

import (
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// violation is a finding with the weakest levels that forbid it.
type violation struct {
	check.Finding
	forbidden []isolation.Level
}

// report returns the results.
func (c *checker) report() *Report {
	r := &Report{Transactions: c.effective(), Dependencies: c.graph.Edges(), Lists: len(c.kept), Clients: len(c.sessions)}
	c.explain()
	c.reportLevels(r)
	r.Results = []check.Result{c.agreement(), c.durable(), c.noGhost()}
	r.Results = append(r.Results, c.ordered(graph.Plain, r), c.ordered(graph.Sessions, r), c.ordered(graph.Real, r))
	if r.Transactions == 0 {
		for i := range r.Results {
			r.Results[i] = r.Results[i].Without(fact.Nothing{Noun: "transaction", Verb: "committed"})
		}
	}
	return r
}

// untrusted returns the report of a history that proves nothing because it is damaged.
func (c *checker) untrusted() *Report {
	r := &Report{Lists: len(c.kept), Clients: len(c.sessions)}
	for _, name := range []string{Lists, check.Durable, check.NoGhost} {
		r.Results = append(r.Results, check.Result{Name: name, Required: true, Why: c.damage})
	}
	for o := graph.Plain; o < graph.Orders; o++ {
		claimed := slices.Contains(c.claimed(o), graph.TestSerializable.Level(o))
		r.Results = append(r.Results, check.Result{Name: checkOf(o), Required: claimed, Why: c.damage})
	}
	for _, l := range isolation.Levels() {
		if l != isolation.Causal {
			r.Levels = append(r.Levels, LevelResult{l, check.Result{Name: l.String(), Why: c.damage}})
			r.Open = append(r.Open, l)
		}
	}
	return r
}

// agreement returns the result about the reads of each list.
func (c *checker) agreement() check.Result {
	return check.Result{Name: Lists, Required: true}.Judge(c.findings(), c.why, fact.ListsAgree{Prefixes: !c.values && !c.pieces})
}

func (c *checker) durable() check.Result {
	return check.Result{Name: check.Durable, Required: true}.Judge(c.findings(), c.whyNoEnd(), fact.ListsDurable{Overwritten: c.forked})
}

func (c *checker) noGhost() check.Result {
	return check.Result{Name: check.NoGhost, Required: true}.Judge(c.findings(), c.whyNoEnd(), fact.ListsNoGhost{})
}

// whyNoEnd returns the reason why a check of the end state is undecided, or nil if it is decided.
func (c *checker) whyNoEnd() fact.Fact {
	switch {
	case c.End != nil:
		return c.why
	case c.NoEnd != nil:
		return c.NoEnd
	}
	return fact.NoEnd{}
}

// explain converts everything that was found to findings.
func (c *checker) explain() {
	for kind := range oddityRules() {
		if c.found[kind].count > 0 {
			c.violations = append(c.violations, c.oddityFound(kind))
		}
	}
	for _, k := range c.cycles {
		c.violations = append(c.violations, c.cycleFound(k))
	}
}

// findings returns all findings.
func (c *checker) findings() []check.Finding {
	list := make([]check.Finding, len(c.violations))
	for i := range c.violations {
		list[i] = c.violations[i].Finding
	}
	return list
}

// oddityFound returns the finding of one kind of oddity.
func (c *checker) oddityFound(kind int) violation {
	o, rule := &c.found[kind], oddityRules()[kind]
	v := violation{check.Finding{Check: rule.check, Anomaly: rule.name}, rule.forbidden}
	if kind == incompatible && !c.forbidsDirtyReads() {
		v.Check = check.Serializable // a rolled-back read can cause this
	}
	if len(rule.forbidden) > 0 {
		v.Forbidden = rule.forbidden[0]
	}
	for _, f := range o.list {
		by := c.shownBy(kind, f)
		var ids []history.ID
		for _, t := range by {
			ids = append(ids, c.idOf(t))
		}
		is := c.fact(kind, f)
		v.Add(is, c.on(f.list), ids...)
		c.show(&v.Finding, ids, string(c.on(f.list)), is)
	}
	v.Count, v.OfLost = o.count, o.ofLost
	v.First, v.Last = o.seen.first, o.seen.last
	v.Transactions = check.Distinct(v.Transactions)
	v.Spans = c.spans(c.shownBy(kind, o.list[0]))
	return v
}

// show passes on a violation, which the first of the transactions shows.
func (c *checker) show(f *check.Finding, by []history.ID, object string, is fact.Fact) {
	if c.OnViolation == nil {
		return
	}
	v := check.Violation{Check: f.Check, Anomaly: f.Anomaly, Account: object, Fact: is}
	if len(by) > 0 {
		v.Transaction = by[0]
	}
	c.OnViolation(v)
}

// shownBy returns the transactions that show a finding.
func (c *checker) shownBy(kind int, f finding) (list []uint32) {
	if kind == duplicate || kind == takenBack || kind == foreign {
		return nil
	}
	if f.t != check.None {
		list = append(list, f.t)
	}
	if c.ofTwo(kind) && f.other != check.None {
		list = append(list, f.other)
	}
	return list
}

// cycleFound returns the finding of one kind of cycle.
func (c *checker) cycleFound(k cycle) violation {
	v := violation{check.Finding{Check: checkOf(k.order), Anomaly: k.name, Forbidden: k.forbidden[0], AtLeast: !k.exact && k.count > 1}, k.forbidden}
	v.Cycle = c.edges(k)
	shown := min(len(k.steps), 4*check.Shown)
	var nodes []uint32
	var ids []history.ID
	for _, s := range k.steps[:shown] {
		nodes, ids = append(nodes, s.From), append(ids, c.idOf(s.From))
	}
	v.Add(c.cycleFact(k, v.Cycle), fact.Object(v.Cycle[0].Object), ids...)
	v.Count, v.Transactions = max(k.count, 1), check.Distinct(ids)
	v.OfLost, v.OfLostUpdate = min(k.ofLost, v.Count), min(k.ofUpdate, v.Count)
	v.First, v.Last = k.seen.first, k.seen.last
	v.Spans = c.spans(nodes)
	for i, id := range ids {
		c.show(&v.Finding, []history.ID{id}, v.Cycle[i].Object, v.Cycle[i].Why)
	}
	return v
}

// cycleFact returns the fact of a cycle. Its edges state the reasons.
func (c *checker) cycleFact(k cycle, edges []check.Edge) fact.Fact {
	if k.name == lostUpdate {
		if m, ok := c.meetUpdate(k.steps[0].From, k.steps[1].From); ok {
			return fact.ListLostUpdate{First: c.member(k.steps[0].From), Second: c.member(k.steps[1].From), On: c.on(m.list), Read: c.seen(m)}
		}
	}
	f := fact.ListCycle{Length: len(k.steps)}
	for _, s := range k.steps[:min(len(k.steps), check.Shown)] {
		f.Members = append(f.Members, c.member(s.From))
	}
	if len(edges) == 2 {
		f.Why = []fact.Fact{edges[0].Why, edges[1].Why}
	}
	return f
}

// reportLevels adds the result of each level. A violation of several levels is reported for the first.
func (c *checker) reportLevels(r *Report) {
	var holds []isolation.Level
	said := make([]isolation.Level, len(c.violations)) // by violation; Unknown: not reported yet
	for _, l := range isolation.Levels() {
		if l == isolation.Causal { // these graphs do not decide it
			continue
		}
		one := check.Result{Name: l.String()}
		var before fact.Fact
		for i := range c.violations {
			v := &c.violations[i]
			switch {
			case !slices.ContainsFunc(v.forbidden, l.Includes):
			case said[i] == isolation.Unknown:
				said[i] = l
				one.Findings = append(one.Findings, v.Finding)
				one.Witness = append(one.Witness, v.Transactions...)
			case before == nil:
				before = fact.ListBroken{Anomaly: v.Anomaly, At: said[i].String()}
			}
		}
		one.Witness = check.Distinct(one.Witness)
		switch c.keeps(l) {
		case graph.Holds:
			holds = append(holds, l)
			one.Status, one.Why = check.Valid, fact.ListLevelHolds{}
		case graph.Fails:
			if len(one.Findings) == 0 {
				one.Why = before
			}
			if !slices.ContainsFunc(r.Broken, l.Includes) {
				r.Broken = append(r.Broken, l)
			}
			one.Status = check.Invalid
		default:
			one.Why = c.whyOpen(l)
			r.Open = append(r.Open, l)
		}
		r.Levels = append(r.Levels, LevelResult{l, one})
	}
	r.Holds = isolation.Strongest(holds)
}

// checkOf returns the name of the check that decides an order.
func checkOf(o graph.Order) string {
	return [graph.Orders]string{check.Serializable, Session, check.Strict}[o]
}

// ordered returns the result about an order of all transactions. A violation that needs neither the order of
// clients nor real time is not reported again.
func (c *checker) ordered(o graph.Order, report *Report) check.Result {
	top := graph.TestSerializable.Level(o)
	var why fact.Fact
	state := c.keeps(top)
	if state == graph.Open {
		why = c.whyOpen(top)
	}
	holds := fact.ListsOrdered{Transactions: report.Transactions, Dependencies: report.Dependencies, Sessions: o == graph.Sessions, RealTime: o == graph.Real}
	r := check.Result{Name: checkOf(o), Required: c.required(o)}.Judge(c.findings(), why, holds)
	if state == graph.Fails && len(r.Findings) == 0 {
		r.Status, r.Why = check.Invalid, fact.ListBroken{At: top.String()}
	}
	if open := c.openClaim(o); open != isolation.Unknown && r.Status == check.Invalid {
		r.Status, r.Why = check.Unknown, c.whyOpen(open)
	}
	return r
}

// openClaim returns an undecided level of the claim, if no level of the claim is broken in the order. Unknown
// means none.
func (c *checker) openClaim(o graph.Order) isolation.Level {
	open := isolation.Unknown
	for _, l := range c.claimed(o) {
		switch c.keeps(l) {
		case graph.Fails:
			return isolation.Unknown
		case graph.Open:
			open = l
		}
	}
	return open
}

// claimed returns the levels of an order that the claim includes.
func (c *checker) claimed(o graph.Order) (list []isolation.Level) {
	claim := c.Expect
	if claim == isolation.Unknown {
		claim = isolation.Serializable
	}
	weakest, top := graph.TestReadUncommitted.Level(o), graph.TestSerializable.Level(o)
	for _, l := range isolation.Levels() {
		if l != isolation.Causal && claim.Includes(l) && l.Includes(weakest) && top.Includes(l) {
			list = append(list, l)
		}
	}
	return list
}

// required reports whether the claim covers the check of an order: it includes the check's level, or a weaker
// level that is broken or undecided.
func (c *checker) required(o graph.Order) bool {
	list := c.claimed(o)
	return slices.Contains(list, graph.TestSerializable.Level(o)) || slices.ContainsFunc(list, func(l isolation.Level) bool { return c.keeps(l) != graph.Holds })
}

// whyOpen returns the reason why a level that is not broken is undecided.
func (c *checker) whyOpen(l isolation.Level) fact.Fact {
	switch {
	case c.why != nil:
		return c.why
	case !c.RealTime && l.Includes(isolation.StrongReadUncommitted):
		return fact.ListNoTimes{}
	case c.doubted() && l.Includes(isolation.StrongReadUncommitted):
		return fact.ListClocks{Within: c.uncertainty()}
	case c.open && c.unknownValues(l):
		return fact.ListSameVersion{}
	case c.unknownValues(l):
		return fact.ListBaseUnknown{}
	case c.unordered(l):
		return fact.ListUnreadAppends{}
	}
	return fact.ListAbsent{}
}

// uncertainty returns the maximal error between the times of two clocks.
func (c *checker) uncertainty() time.Duration {
	var first, second int64
	for _, error := range c.Errors {
		switch {
		case error > first:
			first, second = error, first
		default:
			second = max(second, error)
		}
	}
	return time.Duration(first + second)
}
