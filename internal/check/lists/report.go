package lists

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// violation is an anomaly with the check that it breaks and the weakest levels that forbid it.
type violation struct {
	check.Anomaly
	check     string
	forbidden []isolation.Level
}

// report makes the results.
func (c *checker) report() *Report {
	r := &Report{Transactions: c.effective(), Dependencies: c.graph.Edges(), Lists: len(c.lists), Clients: len(c.clients)}
	c.explain()
	c.reportLevels(r)
	same := "Every read of a list is the beginning of one and the same list, and every element in it was appended."
	if c.values || c.pieces {
		same = "No two reads of a list contradict each other, and every element in it was appended."
	}
	r.Results = append(r.Results, c.integrity(Lists, same))
	if c.End != nil {
		durable := "Every acknowledged append is in the end state."
		if c.forked {
			durable = "Every acknowledged append is in the end state, or was overwritten by a transaction that had read the list without it."
		}
		r.Results = append(r.Results,
			c.integrity(check.Durable, durable),
			c.integrity(check.NoGhost, "No aborted append is in the end state."))
	}
	r.Results = append(r.Results, c.ordered(graph.Plain, r), c.ordered(graph.Sessions, r), c.ordered(graph.Real, r))
	if r.Transactions == 0 {
		for i := range r.Results {
			r.Results[i] = r.Results[i].Nothing("No transaction took effect.")
		}
	}
	return r
}

// explain makes anomalies of all that was found.
func (c *checker) explain() {
	rules := oddityRules()
	for kind := range rules {
		if c.found[kind].count > 0 {
			name := rules[kind].check
			if kind == incompatible && !c.forbidsDirtyReads() {
				name = check.Serializable // a read of what was taken back can make that
			}
			c.violations = append(c.violations, violation{c.oddityAnomaly(kind), name, rules[kind].forbidden})
		}
	}
	for _, k := range c.cycles {
		c.violations = append(c.violations, violation{c.cycleAnomaly(k), checkOf(k.order), k.forbidden})
	}
}

// reportLevels makes a result of each level. What breaks several is said at the first.
func (c *checker) reportLevels(r *Report) {
	var holds []isolation.Level
	said := make([]isolation.Level, len(c.violations)) // at which level; Unknown is not yet
	for _, l := range isolation.Levels() {
		if l == isolation.Causal { // which these graphs do not decide
			continue
		}
		one := check.Result{Name: l.String()}
		var found []violation
		before := ""
		for i, v := range c.violations {
			switch {
			case !slices.ContainsFunc(v.forbidden, l.Includes):
			case said[i] == isolation.Unknown:
				said[i] = l
				found = append(found, v)
			case before == "":
				before = fmt.Sprintf("Broken by the %s at %s.", v.Name, said[i])
			}
		}
		lines := take(&one, found)
		switch c.keeps(l) {
		case graph.Holds:
			holds = append(holds, l)
			one.Status, one.Detail = check.Valid, "It holds."
		case graph.Fails:
			if len(lines) == 0 {
				lines = []string{before}
			}
			if !slices.ContainsFunc(r.Broken, l.Includes) {
				r.Broken = append(r.Broken, l)
			}
			one.Status, one.Detail = check.Invalid, strings.Join(lines, "\n")
		default:
			one.Detail = "Not decided: " + c.whyOpen(l) + "."
			r.Open = append(r.Open, l)
		}
		r.Levels = append(r.Levels, LevelResult{l, one})
	}
	r.Holds = isolation.Strongest(holds)
}

// take puts violations into a result, and returns a line of each.
func take(r *check.Result, list []violation) (lines []string) {
	for _, v := range list {
		r.Witness = append(r.Witness, v.Witness...)
		if v.Name == "" {
			lines = append(lines, v.Detail)
			continue
		}
		r.Anomalies = append(r.Anomalies, v.Anomaly)
		lines = append(lines, check.Capital(v.Name)+": "+v.Detail)
	}
	r.Witness = check.Distinct(r.Witness)
	return lines
}

// integrity is the result of a check that no isolation level excuses.
func (c *checker) integrity(name, valid string) check.Result {
	r := check.Result{Name: name, Required: true}
	lines := take(&r, slices.DeleteFunc(slices.Clone(c.violations), func(v violation) bool { return v.check != name }))
	return c.settle(r, lines, c.why, valid)
}

func (c *checker) settle(r check.Result, lines []string, why, valid string) check.Result {
	switch {
	case len(lines) > 0:
		r.Status, r.Detail = check.Invalid, strings.Join(lines, "\n")
	case why != "":
		r.Detail = "Not decided: " + why + "."
	default:
		r.Status, r.Detail = check.Valid, valid
	}
	return r
}

// oddityAnomaly is what was found of one kind, the first instance in words.
func (c *checker) oddityAnomaly(kind int) check.Anomaly {
	o, rule := &c.found[kind], oddityRules()[kind]
	a := check.Anomaly{Name: rule.name, Count: o.count, Detail: check.Capital(c.sentence(kind, o.list[0])) + check.Times(o.count)}
	if len(rule.forbidden) > 0 {
		a.Forbidden = rule.forbidden[0]
	}
	who := func(f finding) []uint32 {
		switch {
		case kind == duplicate || kind == takenBack || f.t == check.None:
			return nil
		case c.ofTwo(kind):
			return []uint32{f.t, f.other}
		}
		return []uint32{f.t}
	}
	for _, f := range o.list {
		var first history.ID
		for i, t := range who(f) {
			a.Witness = append(a.Witness, c.id[t])
			if i == 0 {
				first = c.id[t]
			}
		}
		if c.OnViolation != nil {
			c.OnViolation(check.Violation{Check: rule.check, Anomaly: rule.name, Transaction: first, Account: c.listName(f.list), What: c.sentence(kind, f)})
		}
	}
	a.Witness = check.Distinct(a.Witness)
	a.Spans = c.spans(who(o.list[0]))
	return a
}

// ofTwo says that a finding of a kind is about two transactions.
func (c *checker) ofTwo(kind int) bool {
	return kind == twice || kind == aborted || kind == dirtyUpdate || kind == halfway || kind == vanished || kind == fractured
}

// checkOf names the check that decides an order.
func checkOf(o graph.Order) string {
	return [graph.Orders]string{check.Serializable, Session, check.Strict}[o]
}

// ordered is the result about an order of all transactions. What is wrong without the order of
// clients, or without real time, is not reported again.
func (c *checker) ordered(o graph.Order, report *Report) check.Result {
	top := graph.TestSerializable.Level(o)
	r := check.Result{Name: checkOf(o), Required: c.required(o)}
	lines := take(&r, slices.DeleteFunc(slices.Clone(c.violations), func(v violation) bool { return v.check != r.Name }))
	if c.keeps(top) == graph.Fails && len(lines) == 0 {
		lines = []string{fmt.Sprintf("Not %s, because a weaker level is broken already: see the checks before.", top)}
	}
	why := ""
	if c.keeps(top) == graph.Open {
		why = c.whyOpen(top)
	}
	r = c.settle(r, lines, why, c.validText(o, report))
	if open := c.openClaim(o); open != isolation.Unknown && r.Status == check.Invalid {
		r.Status, r.Detail = check.Unknown, "Not decided: "+c.whyOpen(open)+"\n"+r.Detail
	}
	return r
}

// openClaim returns a level of the claim that is not decided, where what is broken of an order is
// of none; Unknown is none.
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

// claimed are the levels of an order that the claim includes.
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

// required says that the claim is about what a check decides: it is of the level of that check,
// or of a weaker one that is broken or not decided.
func (c *checker) required(o graph.Order) bool {
	list := c.claimed(o)
	return slices.Contains(list, graph.TestSerializable.Level(o)) || slices.ContainsFunc(list, func(l isolation.Level) bool { return c.keeps(l) != graph.Holds })
}

// whyOpen says why a level that is not broken is not decided.
func (c *checker) whyOpen(l isolation.Level) string {
	switch {
	case c.why != "":
		return c.why
	case !c.RealTime && l.Includes(isolation.StrongReadUncommitted):
		return "the history has no times of one clock"
	case c.doubted() && l.Includes(isolation.StrongReadUncommitted):
		return fmt.Sprintf("nothing contradicts real time for sure, but clients have different clocks, whose times are known to within %s of each other", check.Lasted(c.uncertainty()))
	case c.open && c.unknownValues(l):
		return "transactions overwrote the same value of a list, and which of them came first is not known"
	case c.unknownValues(l):
		return "what a transaction had read of a list that it wrote was not recorded"
	case c.unordered(l):
		return "several transactions appended to one list what nobody has read, and the search for their order came to its bound"
	}
	return "a list was read as absent that was made and deleted, and whether before the one or after the other is not known"
}

// uncertainty is how far the times of two clocks may be wrong beside each other.
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

func (c *checker) validText(o graph.Order, report *Report) string {
	switch o {
	case graph.Sessions:
		return "The order of all transactions agrees with that of each client."
	case graph.Real:
		return "The order of all transactions agrees with real time."
	}
	return fmt.Sprintf("%s, %s, no cycle.", check.Plural(report.Transactions, "committed transaction"), check.Plural(c.graph.Edges(), "dependency"))
}

// summary says what a cycle comes to; its edges say why.
func (c *checker) summary(k cycle, edges []check.Edge) string {
	if k.name == lostUpdate {
		return fmt.Sprintf("%s and %s both read %s as %s and both appended to it: one did not see what the other appended",
			c.who(k.steps[0].From), c.who(k.steps[1].From), edges[0].Object, edges[0].FromVersion)
	}
	if len(edges) == 2 {
		return edges[0].Text + "; " + edges[1].Text + ". So each must come before the other"
	}
	if len(edges) > 4 {
		return fmt.Sprintf("%s must each come before the next, and the last before the first: %s", check.Plural(len(edges), "transaction"), c.who(k.steps[0].From))
	}
	var parts []string
	for _, s := range k.steps {
		parts = append(parts, fmt.Sprintf("%s must come before %s", c.who(s.From), c.who(s.To)))
	}
	return strings.Join(parts, ", ")
}

// cycleAnomaly describes a cycle.
func (c *checker) cycleAnomaly(k cycle) check.Anomaly {
	a := check.Anomaly{Name: k.name, Forbidden: k.forbidden[0], Count: k.count}
	shown := min(len(k.steps), 4*check.Shown)
	a.Cycle = c.edges(k)
	var nodes []uint32
	for _, s := range k.steps[:shown] {
		nodes = append(nodes, s.From)
		a.Witness = append(a.Witness, c.id[s.From])
	}
	a.Detail = check.Capital(c.summary(k, a.Cycle)) + check.Times(max(k.count, 1))
	a.Spans = c.spans(nodes)
	if c.OnViolation != nil {
		for i, s := range k.steps[:shown] {
			c.OnViolation(check.Violation{Check: checkOf(k.order), Anomaly: k.name, Transaction: c.id[s.From], Account: a.Cycle[i].Object, What: a.Cycle[i].Text})
		}
	}
	return a
}
