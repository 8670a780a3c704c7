package sessions

import (
	"context"
	"reflect"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/isolation"
)

// CheckAll decides every level of package isolation by that package's definitions, and judges the history by
// expect. With Unknown, it judges by strict serializability. Otherwise levels that expect does not include
// are omitted. The error is as for Check.
//
// Some levels differ from the levels of Check. Read committed, monotonic atomic view and read atomic do not include the
// order of sessions. Below read atomic, a transaction may miss its own writes. Causal consistency, snapshot isolation
// and serializability, each with the order of sessions, are the same.
func CheckAll(ctx context.Context, h *History, expect isolation.Level) (*Found, error) {
	r, err := resolve(h, check.Watch{Ctx: ctx})
	if err != nil {
		return nil, err
	}
	r.sortWritten()
	d := &ladder{resolved: r, verdicts: map[isolation.Level]verdict{}}
	d.decide()
	if r.watch.Cancelled() {
		return nil, r.watch.Err
	}
	held := expect
	if held == isolation.Unknown {
		held = isolation.StrictSerializable
	}
	found := &Found{Keys: r.distinct}
	var shown []broken
	var holds []isolation.Level
	for _, l := range isolation.Levels() {
		if expect != isolation.Unknown && !expect.Includes(l) {
			continue
		}
		result := d.result(l, &shown)
		if result.Status == check.Valid {
			holds = append(holds, l)
		}
		found.Results = append(found.Results, named(result, l, held.Includes(l)))
	}
	found.Holds = isolation.Strongest(holds)
	return found, nil
}

// ladder decides level by level.
type ladder struct {
	*resolved
	verdicts map[isolation.Level]verdict
}

// verdict holds what is known of a level.
type verdict struct {
	status   check.Status
	findings []check.Finding
	why      fact.Fact // the reason why it is unknown
}

// holds records that a level holds, with all levels that it includes.
func (d *ladder) holds(l isolation.Level) {
	for _, m := range isolation.Levels() {
		if d.open(m) && l.Includes(m) {
			d.verdicts[m] = verdict{status: check.Valid}
		}
	}
}

// breaks records the findings that break a level, and all levels that include it.
func (d *ladder) breaks(l isolation.Level, findings ...check.Finding) {
	for _, m := range isolation.Levels() {
		if d.open(m) && m.Includes(l) {
			d.verdicts[m] = verdict{status: check.Invalid, findings: findings}
		}
	}
}

// open reports whether a level is not decided yet.
func (d *ladder) open(l isolation.Level) bool { return d.verdicts[l].status == check.Unknown }

// decide fills in the verdicts. It starts with the violations of single reads. Then it looks for levels that
// hold, in the strongest order first, and records violations in the weakest order first.
func (d *ladder) decide() {
	d.wrongAlone()
	strong := [graph.Orders]struct{ snapshot, serializable check.Result }{}
	for _, o := range []graph.Order{graph.Real, graph.Sessions, graph.Plain} {
		if o == graph.Sessions {
			d.weak()
		}
		snapshot, serializable := graph.TestSnapshot.Level(o), graph.TestSerializable.Level(o)
		if !d.open(serializable) || o == graph.Real && !d.real() {
			continue
		}
		of := &strong[o]
		of.snapshot, of.serializable = d.serial(o)
		if of.serializable.Status == check.Valid {
			d.holds(serializable)
		}
		if of.snapshot.Status == check.Valid {
			d.holds(snapshot)
		}
	}
	for o := range graph.Orders {
		d.is(graph.TestSnapshot.Level(o), strong[o].snapshot)
		d.is(graph.TestSerializable.Level(o), strong[o].serializable)
		if o == graph.Plain && d.open(isolation.RepeatableRead) { // without predicates it forbids the same
			d.verdicts[isolation.RepeatableRead] = d.verdicts[isolation.Serializable]
		}
	}
	if !d.real() {
		for _, l := range isolation.Levels() {
			if d.open(l) && l.Includes(isolation.StrongReadUncommitted) {
				d.verdicts[l] = verdict{why: fact.SessionNoTimes{}}
			}
		}
	}
}

// is records the result of a level that does not hold.
func (d *ladder) is(l isolation.Level, r check.Result) {
	switch {
	case !d.open(l):
	case r.Status == check.Invalid:
		d.breaks(l, r.Findings...)
	case r.Why != nil:
		d.verdicts[l] = verdict{why: r.Why}
	}
}

// wrongAlone records the levels that single reads break. Writes alone can be ordered in any way, so they
// break no level.
func (d *ladder) wrongAlone() {
	byLevel := map[isolation.Level][]check.Finding{}
	for _, f := range d.wrongReads() {
		if f.Anomaly == readWords[notOwn].name {
			f.Anomaly, f.Forbidden = "internal inconsistency", isolation.ReadAtomic
		}
		byLevel[f.Forbidden] = append(byLevel[f.Forbidden], f)
	}
	for _, l := range []isolation.Level{isolation.ReadUncommitted, isolation.ReadCommitted, isolation.ReadAtomic} {
		if a := byLevel[l]; len(a) > 0 {
			d.breaks(l, a...)
		}
	}
	if a := byLevel[isolation.ReadAtomic]; len(a) > 0 {
		d.breaks(isolation.RepeatableRead, a...)
	}
	d.holds(isolation.StrongSessionReadUncommitted)
	if d.real() {
		d.holds(isolation.StrongReadUncommitted)
	}
}

// real reports whether the history has the order of real time.
func (d *ladder) real() bool { return d.Times != nil && d.Times.Real }

// weak decides the levels below snapshot isolation.
func (d *ladder) weak() {
	if d.open(isolation.ReadCommitted) && !d.agrees(graph.Plain, &edges{}) {
		d.breaks(isolation.ReadCommitted, d.circular(graph.Plain))
	}
	for _, l := range []isolation.Level{isolation.MonotonicAtomicView, isolation.ReadAtomic} {
		if !d.open(l) {
			continue
		}
		inferred := d.committed()
		if l == isolation.ReadAtomic {
			inferred = d.atomic(false)
		}
		if d.agrees(graph.Plain, inferred) {
			d.holds(l)
		} else {
			d.breaks(l, d.anomaly(l, graph.Plain, inferred))
		}
	}
	d.holdsUnlessBroken(isolation.ReadCommitted)
	var order []uint32
	agrees := true
	if d.open(isolation.StrongSessionReadCommitted) || d.open(isolation.Causal) {
		if order, agrees = d.order(nil); !agrees {
			d.breaks(isolation.StrongSessionReadCommitted, d.circular(graph.Sessions))
			d.breaks(isolation.Causal, d.circular(graph.Sessions))
		}
	}
	d.holdsUnlessBroken(isolation.StrongSessionReadCommitted)
	if d.open(isolation.StrongReadCommitted) && d.real() && !d.agrees(graph.Real, &edges{}) {
		d.breaks(isolation.StrongReadCommitted, d.circular(graph.Real))
	}
	if d.real() {
		d.holdsUnlessBroken(isolation.StrongReadCommitted)
	}
	if d.open(isolation.Causal) {
		if inferred := d.causal(order); d.agrees(graph.Sessions, inferred) {
			d.holds(isolation.Causal)
		} else {
			d.breaks(isolation.Causal, d.anomaly(isolation.Causal, graph.Sessions, inferred))
		}
	}
}

func (d *ladder) holdsUnlessBroken(l isolation.Level) {
	if d.open(l) {
		d.holds(l)
	}
}

// broken is a finding with the first level that it breaks.
type broken struct {
	check.Finding
	at isolation.Level
}

// result returns the result of a level. A finding that breaks several levels is reported for the first.
func (d *ladder) result(l isolation.Level, shown *[]broken) check.Result {
	v := d.verdicts[l]
	switch {
	case v.status == check.Valid:
		return valid(l)
	case v.status == check.Unknown:
		return check.Result{Why: v.why}
	}
	var fresh []check.Finding
	var before fact.Fact
	for _, f := range v.findings {
		at := slices.IndexFunc(*shown, func(b broken) bool {
			return b.Anomaly == f.Anomaly && reflect.DeepEqual(b.Instances, f.Instances)
		})
		if at < 0 {
			*shown = append(*shown, broken{f, l})
			fresh = append(fresh, f)
		} else if before == nil {
			before = fact.SessionBroken{Anomaly: f.Anomaly, At: (*shown)[at].at.String()}
		}
	}
	r := invalid(fresh...)
	if len(fresh) == 0 {
		r.Why = before
	}
	return r
}
