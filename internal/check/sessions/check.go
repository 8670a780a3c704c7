package sessions

import (
	"context"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// Levels returns the levels that a history can be checked against, each after the levels that it includes.
// The definitions of the first three and the last two include the order of each session.
func Levels() []isolation.Level {
	return append(weakLevels(), isolation.SnapshotIsolation, isolation.Serializable, isolation.StrongSessionSnapshotIsolation, isolation.StrongSessionSerializable)
}

// weakLevels returns the levels that are always decided.
func weakLevels() []isolation.Level {
	return []isolation.Level{isolation.ReadCommitted, isolation.ReadAtomic, isolation.Causal}
}

// includes reports whether a history that satisfies l satisfies m. Here the weak levels include the order of
// sessions; snapshot isolation and serializability alone do not.
func includes(l, m isolation.Level) bool {
	if l == isolation.SnapshotIsolation || l == isolation.Serializable {
		return l.Includes(m) && m >= isolation.SnapshotIsolation
	}
	return l.Includes(m)
}

// Found holds the results for a history.
type Found struct {
	Keys    int            // number of different keys
	Results []check.Result // one for each decided level, named after the level

	Holds []isolation.Level // for CheckAll: the strongest levels that hold
}

// Check decides the levels and judges the history by expect, which is one of Levels. With Unknown, it decides
// all levels and judges the history by Causal. An error in the history itself is an *InputError.
func Check(ctx context.Context, h *History, expect isolation.Level) (*Found, error) {
	r, err := resolve(h, check.Watch{Ctx: ctx})
	if err != nil {
		return nil, err
	}
	r.sortWritten()
	d := decision{resolved: r, results: map[isolation.Level]check.Result{}, inferred: map[isolation.Level]*edges{}, held: map[isolation.Level]bool{}}
	levels := Levels()
	if expect != isolation.Unknown {
		levels = slices.DeleteFunc(levels, func(l isolation.Level) bool { return !includes(expect, l) })
	} else {
		expect = isolation.Causal
	}
	d.decide(levels)
	if r.watch.Cancelled() {
		return nil, r.watch.Err
	}
	found := &Found{Keys: r.distinct}
	for _, l := range levels {
		found.Results = append(found.Results, named(d.results[l], l, includes(expect, l)))
	}
	return found, nil
}

// decision decides level by level.
type decision struct {
	*resolved
	results  map[isolation.Level]check.Result
	inferred map[isolation.Level]*edges // by weak level: the edges that decided it
	held     map[isolation.Level]bool
}

// decide fills in the results. A violation is reported for the weakest level that it breaks.
func (d *decision) decide(levels []isolation.Level) {
	if wrong := d.wrongReads(); len(wrong) > 0 {
		d.results[levels[0]] = invalid(wrong...)
		for _, l := range levels[1:] {
			d.results[l] = brokenToo(levels[0])
		}
		return
	}
	weak := slices.DeleteFunc(weakLevels(), func(l isolation.Level) bool { return !slices.Contains(levels, l) })
	broken := d.weak(weak)
	has := func(snapshot, serializable isolation.Level) bool {
		return slices.Contains(levels, snapshot) || slices.Contains(levels, serializable)
	}
	if has(isolation.SnapshotIsolation, isolation.Serializable) {
		d.results[isolation.SnapshotIsolation], d.results[isolation.Serializable] = d.serial(graph.Plain)
	}
	undecided := func(l isolation.Level) bool {
		return slices.Contains(levels, l) && d.results[l].Status == check.Unknown
	}
	if broken == isolation.Unknown && slices.ContainsFunc(Levels()[len(weakLevels()):], undecided) {
		// The order with sessions may decide more.
		d.results[isolation.StrongSessionSnapshotIsolation], d.results[isolation.StrongSessionSerializable] = d.serial(graph.Sessions)
	}
	for _, l := range levels {
		d.follow(l)
	}
}

// follow decides a level by the levels that it includes and the levels that include it.
func (d *decision) follow(l isolation.Level) {
	for _, m := range Levels() {
		switch {
		case l == m:
		case includes(l, m) && d.results[m].Status == check.Invalid:
			d.results[l] = brokenToo(m)
			return
		case includes(m, l) && d.results[m].Status == check.Valid && d.results[l].Status == check.Unknown:
			d.results[l] = valid(l)
		}
	}
}

// weak decides the levels that are always decided, and returns the weakest broken one. It starts with the
// strongest, because a level that holds implies the levels that it includes.
func (d *decision) weak(levels []isolation.Level) (broken isolation.Level) {
	if len(levels) == 0 {
		return isolation.Unknown
	}
	order, ok := d.order(nil)
	switch {
	case !ok:
		broken = levels[0]
		f := d.circular(graph.Sessions)
		f.Forbidden = isolation.ReadCommitted // which includes the order of sessions here
		d.results[broken] = invalid(f)
	case !d.holds(levels[len(levels)-1], order):
		at := slices.IndexFunc(levels, func(l isolation.Level) bool { return !d.holds(l, order) })
		broken = levels[at]
		d.results[broken] = invalid(d.anomaly(broken, graph.Sessions, d.inferred[broken]))
	}
	for _, l := range levels {
		if _, decided := d.results[l]; !decided {
			d.results[l] = valid(l) // unless it includes the broken one
		}
	}
	return broken
}

func brokenToo(l isolation.Level) check.Result {
	return check.Result{Status: check.Invalid, Why: fact.SessionBroken{At: l.String()}}
}

// holds decides one level of a history whose reads are sound and agree with so. It returns false after the
// watch has ended.
func (d *decision) holds(l isolation.Level, order []uint32) bool {
	if held, decided := d.held[l]; decided {
		return held
	}
	var inferred *edges
	switch l {
	case isolation.ReadCommitted:
		inferred = d.committed()
	case isolation.ReadAtomic:
		inferred = d.atomic(true)
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
	return check.Result{Status: check.Valid, Why: fact.SessionHolds{Level: l.String()}}
}

// invalid returns the result of a level that the findings break.
func invalid(findings ...check.Finding) check.Result {
	r := check.Result{Status: check.Invalid, Findings: findings}
	for i := range findings {
		r.Witness = append(r.Witness, findings[i].Transactions...)
	}
	r.Witness = check.Distinct(r.Witness)
	return r
}

// named returns a result as the result of level l.
func named(r check.Result, l isolation.Level, required bool) check.Result {
	r.Name, r.Required = l.String(), required
	r.Findings = slices.Clone(r.Findings)
	for i := range r.Findings {
		r.Findings[i].Check = r.Name
	}
	return r
}
