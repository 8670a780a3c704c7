package sessions

import (
	"context"
	"fmt"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/isolation"
)

// Levels are those that a history can be held to, each after those that it includes.
func Levels() []isolation.Level {
	return []isolation.Level{isolation.ReadCommitted, isolation.ReadAtomic, isolation.Causal}
}

// Found is what was found of a history.
type Found struct {
	Keys    int            // different ones
	Results []check.Result // one for each level that was decided, by its name
}

// Check decides the levels, and holds the history to expect, which is one of Levels; with
// Unknown all levels are decided, and the history is held to Causal. What is wrong with the history itself is an *InputError.
func Check(ctx context.Context, h *History, expect isolation.Level) (*Found, error) {
	r, err := resolve(h, check.Watch{Ctx: ctx})
	if err != nil {
		return nil, err
	}
	r.sortWritten()
	d := decision{resolved: r}
	decided := Levels()
	if expect != isolation.Unknown {
		decided = slices.DeleteFunc(decided, func(l isolation.Level) bool { return !expect.Includes(l) })
	} else {
		expect = isolation.Causal
	}
	d.decide(decided)
	if r.watch.Cancelled() {
		return nil, r.watch.Err
	}
	found := &Found{Keys: r.distinct}
	for _, l := range decided {
		result := d.results[l]
		result.Name, result.Required = l.String(), expect.Includes(l)
		found.Results = append(found.Results, result)
	}
	return found, nil
}

// decision decides level by level.
type decision struct {
	*resolved
	results map[isolation.Level]check.Result

	inferred map[isolation.Level]*edges // of each level that was decided by them
	held     map[isolation.Level]bool
}

// decide fills in the results. Where a level holds, so do those that it includes, and the
// strongest is asked first; where one is broken, so are those that include it, and what
// breaks it is said of the weakest alone.
func (d *decision) decide(levels []isolation.Level) {
	d.results, d.inferred, d.held = map[isolation.Level]check.Result{}, map[isolation.Level]*edges{}, map[isolation.Level]bool{}
	var found []check.Anomaly
	order, ok := []uint32(nil), false
	if found = d.wrongReads(); len(found) == 0 {
		if order, ok = d.order(nil); !ok {
			found = []check.Anomaly{d.circular()}
		}
	}
	broken := isolation.Unknown // the weakest level that is
	if len(found) > 0 {
		broken = levels[0]
		d.results[broken] = invalid(found)
	} else if !d.holds(levels[len(levels)-1], order) {
		at := slices.IndexFunc(levels, func(l isolation.Level) bool { return !d.holds(l, order) })
		broken = levels[at]
		d.results[broken] = invalid([]check.Anomaly{d.anomaly(broken, d.inferred[broken])})
	}
	for _, l := range levels {
		if _, decided := d.results[l]; decided {
			continue
		}
		d.results[l] = valid(l)
		if broken != isolation.Unknown && l.Includes(broken) {
			d.results[l] = check.Result{Status: check.Invalid, Detail: fmt.Sprintf("It includes %v, which is broken.", broken)}
		}
	}
}

// holds decides one level of a history whose reads are sound and agree with so. Once the
// watch has ended, no level holds.
func (d *decision) holds(l isolation.Level, order []uint32) bool {
	if held, decided := d.held[l]; decided {
		return held
	}
	var inferred *edges
	switch l {
	case isolation.ReadCommitted:
		inferred = d.committed()
	case isolation.ReadAtomic:
		inferred = d.atomic()
	case isolation.Causal:
		inferred = d.causal(order)
	}
	held := !slices.Contains(inferred.to, initial)
	if held {
		inferred.sort(d.transactions())
		_, held = d.order(inferred)
	}
	d.inferred[l], d.held[l] = inferred, held
	return held
}

func valid(l isolation.Level) check.Result {
	return check.Result{Status: check.Valid, Detail: "The transactions have an order that " + l.String() + " allows."}
}

func invalid(anomalies []check.Anomaly) check.Result {
	r := check.Result{Status: check.Invalid, Anomalies: anomalies}
	for i, a := range anomalies {
		if i > 0 {
			r.Detail += "\n"
		}
		r.Detail += a.Detail
		r.Witness = append(r.Witness, a.Witness...)
	}
	r.Witness = check.Distinct(r.Witness)
	return r
}
