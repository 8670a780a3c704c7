package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stroppy/internal/isolation"
	"stroppy/internal/report"
	"stroppy/internal/schedule"
)

// decided are the levels that schedules and load distinguish, each after those that it
// includes.
var decided = []isolation.Level{
	isolation.ReadUncommitted, isolation.ReadCommitted, isolation.MonotonicAtomicView, isolation.ReadAtomic,
	isolation.RepeatableRead, isolation.SnapshotIsolation, isolation.Serializable, isolation.StrictSerializable,
}

// form distinguishes variants of an anomaly in the definition of a level.
type form struct {
	predicate bool // an anti-dependency is by a predicate
	every     bool // each level forbids it
}

func formOf(o *schedule.Outcome) form { return form{o.Predicate, o.Every} }

// forbids reports whether a level forbids an anomaly in a form. The definitions are those
// that package isolation names.
func forbids(l isolation.Level, a schedule.Anomaly, f form) bool {
	if a == schedule.StaleRead {
		return l.Includes(isolation.StrongSnapshotIsolation)
	}
	return slices.ContainsFunc(decided, func(d isolation.Level) bool { return l.Includes(d) && itself(d, a, f) })
}

// Forbidden returns the weakest levels that forbid an anomaly in each form that its schedules
// have.
func Forbidden(a schedule.Anomaly) (weakest []isolation.Level) {
	byPredicate := slices.ContainsFunc(schedule.Schedules(), func(s schedule.Schedule) bool {
		return s.Anomaly == a && s.Predicate
	})
	for _, l := range isolation.Levels() {
		all := forbids(l, a, form{}) && (!byPredicate || forbids(l, a, form{predicate: true}))
		if all && !slices.ContainsFunc(weakest, l.Includes) {
			weakest = append(weakest, l)
		}
	}
	return weakest
}

// itself is like forbids, without the consequences of weaker levels.
func itself(l isolation.Level, a schedule.Anomaly, f form) bool {
	switch l {
	case isolation.ReadUncommitted:
		return a == schedule.G0 || f.every
	case isolation.ReadCommitted:
		return a <= schedule.G1c
	case isolation.MonotonicAtomicView:
		return a == schedule.OTV
	case isolation.ReadAtomic: // fractured reads, and internal consistency
		return !f.predicate && (a == schedule.Internal || a == schedule.PMP || a == schedule.GSingle)
	case isolation.RepeatableRead:
		return !f.predicate
	case isolation.SnapshotIsolation:
		return a <= schedule.LongFork
	}
	return true
}

// judge finds the strongest levels without an observed violation, counts the attempts that could have shown
// one, and sets the verdict.
func (l *Level) judge() {
	var unviolated []isolation.Level
	for _, d := range decided {
		if l.tried() && l.holds(d) {
			unviolated = append(unviolated, d)
		}
	}
	l.UpperBound, l.Besides = append([]isolation.Level{}, isolation.Strongest(unviolated)...), []string{}
	l.count()
	switch {
	case len(l.UpperBound) > 0:
		l.Besides = l.besidesThat(l.UpperBound)
		l.AmountsTo = joined(l.UpperBound, isolation.Level.String)
	case l.tried():
		l.AmountsTo = "no level"
	default:
		l.AmountsTo = "not known"
	}
	l.Summary = l.summary()
	l.Verdict = validVerdict
	switch {
	case l.sees(l.Claims):
		l.Verdict = invalidVerdict
	case !l.tried() || l.undecided():
		l.Verdict = unknownVerdict
	}
}

// count sets Schedules and Transactions to what could have shown a violation of the upper bound.
func (l *Level) count() {
	bound := anyForbids(l.UpperBound...)
	l.Schedules, l.Transactions = l.outcomes(bound)[schedule.Prevented], 0
	for _, r := range l.Loads {
		if slices.ContainsFunc(schedule.Anomalies(), func(a schedule.Anomaly) bool {
			return slices.Contains(r.LookedFor, a.String()) && bound(a, form{})
		}) {
			l.Transactions += r.Transactions
		}
	}
}

// anyForbids returns a function that reports whether one of the levels forbids an anomaly in a form.
func anyForbids(levels ...isolation.Level) func(schedule.Anomaly, form) bool {
	return func(a schedule.Anomaly, f form) bool {
		return slices.ContainsFunc(levels, func(l isolation.Level) bool { return forbids(l, a, f) })
	}
}

// outcomes counts the schedules of the selected forms of anomalies by their outcome. An anomaly
// that load showed counts as seen.
func (l *Level) outcomes(selected func(schedule.Anomaly, form) bool) map[schedule.State]int {
	by := map[schedule.State]int{}
	for _, a := range schedule.Anomalies() {
		c := l.Anomalies[a.String()]
		if c.Load == LoadSeen && selected(a, form{}) {
			by[schedule.Seen]++
		}
		for i := range c.Variants {
			if o := &c.Variants[i]; selected(a, formOf(o)) {
				by[o.State]++
			}
		}
	}
	return by
}

// summary returns a sentence about the attempts that showed no violation of the upper bound.
func (l *Level) summary() string {
	switch {
	case !l.tried():
		return "Nothing was tried."
	case len(l.UpperBound) == 0:
		pl1 := isolation.ReadUncommitted.Literature()
		if l.sees(isolation.ReadUncommitted) {
			return "A violation of " + pl1 + " was seen, and so of every level."
		}
		return "Whether there is a violation of " + pl1 + " could not be decided."
	}
	text := fmt.Sprintf("No violation of %s in %s and %s. ", joined(l.UpperBound, isolation.Level.Literature),
		report.Counted(l.Transactions, "transaction"), report.Counted(uint64(l.Schedules), "schedule"))
	if open := l.open(); len(open) > 0 {
		return text + "This is an upper bound of what was tested: the level may give less. Not decided: " +
			joined(open, isolation.Level.Short) + "."
	}
	return text + "This is an upper bound: the level may give less, not more."
}

// open returns the strongest levels of which no violation was seen and of which something was
// not looked for or not decided.
func (l *Level) open() []isolation.Level {
	var list []isolation.Level
	for _, d := range decided {
		if !l.holds(d) && !l.sees(d) {
			list = append(list, d)
		}
	}
	return isolation.Strongest(list)
}

func joined(levels []isolation.Level, name func(isolation.Level) string) string {
	return strings.Join(report.Texts(levels, name), " and ")
}

// besidesThat returns the anomalies that were looked for and not seen although none of the levels forbids
// them in all their forms. Schedules alone show too little about real time.
func (l *Level) besidesThat(bounds []isolation.Level) []string {
	list := []string{}
	for _, a := range schedule.Anomalies() {
		c := l.Anomalies[a.String()]
		forbidden := slices.ContainsFunc(bounds, func(d isolation.Level) bool {
			return forbids(d, a, form{}) && forbids(d, a, form{predicate: true})
		})
		if !forbidden && a != schedule.StaleRead && looked(c) && c.Schedule != schedule.Undecided && !c.Seen() {
			list = append(list, a.String())
		}
	}
	return list
}

// sees reports whether something was seen that a level forbids.
func (l *Level) sees(level isolation.Level) bool {
	return l.named(level) || l.outcomes(anyForbids(level))[schedule.Seen] > 0
}

// named reports whether a run named an anomaly that a level forbids by the check that
// found it.
func (l *Level) named(level isolation.Level) bool {
	return slices.ContainsFunc(l.Loads, func(r Load) bool {
		return slices.ContainsFunc(r.Found, func(f Found) bool { return f.Forbidden != isolation.Unknown && level.Includes(f.Forbidden) })
	})
}

// holds reports whether nothing that a level forbids was seen, or left undecided. For what
// real time forbids load must have looked.
func (l *Level) holds(level isolation.Level) bool {
	by := l.outcomes(anyForbids(level))
	looked := l.Anomalies[schedule.StaleRead.String()].Load == LoadNotSeen
	return by[schedule.Seen]+by[schedule.Undecided] == 0 && !l.named(level) &&
		(looked || !forbids(level, schedule.StaleRead, form{}))
}

// tried reports whether anything was looked for at all.
func (l *Level) tried() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(l.Anomalies)), looked)
}

func looked(c *Cell) bool {
	return c.Schedule == schedule.Prevented || c.Schedule == schedule.Seen || c.Load != LoadNotLookedFor
}

// undecided reports whether a schedule or a run could not be decided.
func (l *Level) undecided() bool {
	every := func(schedule.Anomaly, form) bool { return true }
	return l.outcomes(every)[schedule.Undecided] > 0 ||
		slices.ContainsFunc(l.Loads, func(r Load) bool { return r.Verdict == unknownVerdict })
}
