package lists

import (
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// report makes the results.
func (c *checker) report() *Report {
	r := &Report{Transactions: c.effective(), Dependencies: c.graph.Edges()}
	var holds, broken []isolation.Level
	for _, l := range isolation.Levels() {
		if l == isolation.Causal { // which these graphs do not decide
			continue
		}
		switch c.keeps(l) {
		case graph.Holds:
			holds = append(holds, l)
		case graph.Fails:
			broken = append(broken, l)
		default:
			r.Open = append(r.Open, l)
		}
	}
	r.Holds = isolation.Strongest(holds)
	for _, l := range broken {
		if !slices.ContainsFunc(r.Broken, l.Includes) {
			r.Broken = append(r.Broken, l)
		}
	}
	r.Results = append(r.Results, c.integrity(Lists, true, "Every read of a list is the beginning of one and the same list, and every element in it was appended."))
	if c.End != nil {
		r.Results = append(r.Results,
			c.integrity(check.Durable, false, "Every acknowledged append is in the end state."),
			c.integrity(check.NoGhost, false, "No aborted append is in the end state."))
	}
	r.Results = append(r.Results, c.ordered(graph.Plain, r), c.ordered(graph.Sessions, r), c.ordered(graph.Real, r))
	return r
}

// integrity is the result of a check that no isolation level excuses. Shown makes anomalies of
// its oddities.
func (c *checker) integrity(name string, shown bool, valid string) check.Result {
	r := check.Result{Name: name, Required: true}
	var lines []string
	rules := oddityRules()
	for kind := range rules {
		if o := &c.found[kind]; rules[kind].check == name && o.count > 0 {
			a := c.oddityAnomaly(kind)
			lines = append(lines, a.Detail)
			r.Witness = append(r.Witness, a.Witness...)
			if shown && a.Name != "" {
				r.Anomalies = append(r.Anomalies, a)
			}
		}
	}
	r.Witness = check.Distinct(r.Witness)
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
		var list []uint32
		for _, t := range []uint32{f.t, f.other} {
			if t != check.None && (t != f.other || c.tellsOther(kind)) && kind != duplicate {
				list = append(list, t)
			}
		}
		return list
	}
	for _, f := range o.list {
		for _, t := range who(f) {
			a.Witness = append(a.Witness, c.id[t])
		}
		if c.OnViolation != nil && len(who(f)) > 0 {
			c.OnViolation(check.Violation{Check: rule.check, Anomaly: rule.name, Transaction: c.id[who(f)[0]], Account: c.listName(f.list), What: c.sentence(kind, f)})
		}
	}
	a.Witness = check.Distinct(a.Witness)
	a.Spans = c.spans(who(o.list[0]))
	return a
}

// tellsOther says that a finding of a kind is about two transactions.
func (c *checker) tellsOther(kind int) bool {
	return kind == twice || kind == aborted || kind == dirtyUpdate || kind == halfway || kind == vanished || kind == fractured
}

// checkOf names the check that decides an order.
func checkOf(o graph.Order) string {
	return [graph.Orders]string{check.Serializable, Session, check.Strict}[o]
}

// ordered is the result about an order of all transactions. What is wrong without the order of
// clients, or without real time, is not reported again.
func (c *checker) ordered(o graph.Order, report *Report) check.Result {
	top := levelOf(o, graph.TestSerializable)
	r := check.Result{Name: checkOf(o)}
	var lines []string
	if o == graph.Plain {
		rules := oddityRules()
		for kind := range rules {
			if c.found[kind].count > 0 && (rules[kind].check == check.Serializable || kind == incompatible) {
				a := c.oddityAnomaly(kind)
				r.Anomalies = append(r.Anomalies, a)
				lines = append(lines, check.Capital(a.Name)+": "+a.Detail)
			}
		}
	}
	for _, k := range c.cycles {
		if k.order == o {
			a := c.cycleAnomaly(k)
			r.Anomalies = append(r.Anomalies, a)
			lines = append(lines, check.Capital(a.Name)+": "+a.Detail)
		}
	}
	for _, a := range r.Anomalies {
		r.Witness = append(r.Witness, a.Witness...)
	}
	r.Witness = check.Distinct(r.Witness)
	fails := c.keeps(top) == graph.Fails
	if fails && len(lines) == 0 {
		lines = []string{fmt.Sprintf("Not %s, because weaker levels are broken already: see the checks before.", top)}
	}
	r.Required = c.required(o)
	return c.settle(r, lines, c.whyOpen(o, top), c.validText(o, report))
}

// required says that the claim is about what a check decides: it forbids what is broken or not
// decided of an order, or it is of that order and nothing is.
func (c *checker) required(o graph.Order) bool {
	claim := c.Expect
	if claim == isolation.Unknown {
		claim = isolation.Serializable
	}
	weakest, top := levelOf(o, graph.TestReadUncommitted), levelOf(o, graph.TestSerializable)
	for _, l := range isolation.Levels() {
		if l != isolation.Causal && claim.Includes(l) && l.Includes(weakest) && top.Includes(l) && c.keeps(l) != graph.Holds {
			return true
		}
	}
	return claim.Includes(weakest) && c.keeps(top) == graph.Holds
}

// whyOpen says why what seems to hold is not decided; empty if it is.
func (c *checker) whyOpen(o graph.Order, top isolation.Level) string {
	switch {
	case c.keeps(top) != graph.Open:
		return ""
	case c.why != "":
		return c.why
	case o == graph.Real && !c.RealTime:
		return "the history has no times of one clock"
	}
	return "a list was read as absent that was made and deleted, and whether before the one or after the other is not known"
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

// cycleAnomaly describes a cycle.
func (c *checker) cycleAnomaly(k cycle) check.Anomaly {
	a := check.Anomaly{Name: k.name, Forbidden: k.forbidden[0], Count: k.count}
	shown := min(len(k.steps), 4*check.Shown)
	a.Cycle = c.edges(k)
	var nodes []uint32
	var clauses []string
	for i, s := range k.steps[:shown] {
		nodes = append(nodes, s.From)
		a.Witness = append(a.Witness, c.id[s.From])
		clauses = append(clauses, a.Cycle[i].Text)
	}
	if more := len(k.steps) - shown; more > 0 {
		clauses = append(clauses, fmt.Sprintf("and %d steps more", more))
	}
	a.Detail = check.Capital(strings.Join(clauses, "; ")) + fmt.Sprintf(". So %s must come before itself", c.who(k.steps[0].From)) + check.Times(max(k.count, 1))
	a.Spans = c.spans(nodes)
	if c.OnViolation != nil {
		for i, s := range k.steps[:shown] {
			c.OnViolation(check.Violation{Check: checkOf(k.order), Anomaly: k.name, Transaction: c.id[s.From], Account: a.Cycle[i].Object, What: a.Cycle[i].Text})
		}
	}
	return a
}
