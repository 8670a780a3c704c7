package matrix

import (
	"slices"
	"strings"

	"stroppy/internal/isolation"
	"stroppy/internal/schedule"
)

// decided are the levels that schedules and load distinguish, each after those that it
// includes.
var decided = []isolation.Level{
	isolation.ReadUncommitted, isolation.ReadCommitted, isolation.MonotonicAtomicView, isolation.ReadAtomic,
	isolation.RepeatableRead, isolation.SnapshotIsolation, isolation.Serializable, isolation.StrictSerializable,
}

// forbids reports whether a level forbids an anomaly, predicate saying that it is one of
// what predicates find. The definitions are those that package isolation names.
func forbids(l isolation.Level, a schedule.Anomaly, predicate bool) bool {
	if a == schedule.StaleRead {
		return l.Includes(isolation.StrongSnapshotIsolation)
	}
	return slices.ContainsFunc(decided, func(d isolation.Level) bool { return l.Includes(d) && itself(d, a, predicate) })
}

// itself is forbids without what follows from weaker levels.
func itself(l isolation.Level, a schedule.Anomaly, predicate bool) bool {
	switch l {
	case isolation.ReadUncommitted:
		return a == schedule.G0
	case isolation.ReadCommitted:
		return a <= schedule.G1c
	case isolation.MonotonicAtomicView:
		return a == schedule.OTV
	case isolation.ReadAtomic: // fractured reads
		return !predicate && (a == schedule.PMP || a == schedule.GSingle)
	case isolation.RepeatableRead:
		return !predicate
	case isolation.SnapshotIsolation:
		return a <= schedule.LongFork
	}
	return true
}

// judge says what the level amounts to, and whether that is what was claimed.
func (l *Level) judge() {
	var held []isolation.Level
	for _, d := range decided {
		if l.tried() && l.holds(d) {
			held = append(held, d)
		}
	}
	l.AmountsTo = "not known"
	if held = isolation.Strongest(held); len(held) > 0 {
		var names []string
		for _, d := range held {
			names = append(names, d.String())
		}
		l.AmountsTo = strings.Join(names, " and ")
		l.Besides = l.besidesThat(held)
	} else if l.tried() {
		l.AmountsTo = "no level"
	}
	l.Verdict = validVerdict
	switch {
	case l.violates():
		l.Verdict = invalidVerdict
	case !l.tried() || l.undecided():
		l.Verdict = unknownVerdict
	}
}

// besidesThat are the anomalies that were looked for and not seen although none of the
// levels forbids them in all their forms. Of real time the schedules alone show too little.
func (l *Level) besidesThat(held []isolation.Level) []string {
	list := []string{}
	for _, a := range schedule.Anomalies() {
		c := l.Anomalies[a.String()]
		forbidden := slices.ContainsFunc(held, func(d isolation.Level) bool { return forbids(d, a, false) && forbids(d, a, true) })
		if !forbidden && a != schedule.StaleRead && looked(c) && c.Schedule != schedule.Undecided && !c.Seen() {
			list = append(list, a.String())
		}
	}
	return list
}

// violates reports whether something was seen that the claim forbids.
func (l *Level) violates() bool {
	for _, a := range schedule.Anomalies() {
		if l.seen(a, l.Claims) {
			return true
		}
	}
	return l.named(l.Claims)
}

// named reports whether a run named an anomaly that a level forbids by the check that
// found it.
func (l *Level) named(level isolation.Level) bool {
	return slices.ContainsFunc(l.Loads, func(r Load) bool {
		return slices.ContainsFunc(r.Found, func(f Found) bool { return f.Forbidden != isolation.Unknown && level.Includes(f.Forbidden) })
	})
}

// seen reports whether the anomaly was seen in a form that a level forbids.
func (l *Level) seen(a schedule.Anomaly, level isolation.Level) bool {
	c := l.Anomalies[a.String()]
	return c.Load == LoadSeen && forbids(level, a, false) || slices.ContainsFunc(c.Variants, func(o schedule.Outcome) bool {
		return o.State == schedule.Seen && forbids(level, a, o.Predicate)
	})
}

// holds reports whether nothing that a level forbids was seen, or left undecided. For what
// real time forbids load must have looked.
func (l *Level) holds(level isolation.Level) bool {
	for _, a := range schedule.Anomalies() {
		open := slices.ContainsFunc(l.Anomalies[a.String()].Variants, func(o schedule.Outcome) bool {
			return o.State == schedule.Undecided && forbids(level, a, o.Predicate)
		})
		if open || l.seen(a, level) {
			return false
		}
	}
	if forbids(level, schedule.StaleRead, false) && l.Anomalies[schedule.StaleRead.String()].Load != LoadNotSeen {
		return false
	}
	return !l.named(level)
}

// tried reports whether anything was looked for at all.
func (l *Level) tried() bool {
	for _, c := range l.Anomalies {
		if looked(c) {
			return true
		}
	}
	return false
}

func looked(c *Cell) bool {
	return c.Schedule == schedule.Prevented || c.Schedule == schedule.Seen || c.Load != LoadNotLookedFor
}

// undecided reports whether a schedule or a run could not be decided.
func (l *Level) undecided() bool {
	for _, c := range l.Anomalies {
		if slices.ContainsFunc(c.Variants, func(o schedule.Outcome) bool { return o.State == schedule.Undecided }) {
			return true
		}
	}
	return slices.ContainsFunc(l.Loads, func(r Load) bool { return r.Verdict == unknownVerdict })
}
