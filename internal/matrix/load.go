package matrix

import (
	"slices"
	"strings"

	"stroppy/internal/isolation"
	"stroppy/internal/report"
	"stroppy/internal/schedule"
)

// NewLoad returns what a run says of anomalies. finds are those that each check would have
// named, by the check's name. kept is the claim, if a check that named an anomaly and is not
// required has found that the claim is kept; otherwise Unknown.
func NewLoad(r *report.Result, dir string, finds map[string][]string, kept isolation.Level) Load {
	l := Load{Command: r.Command, Dir: dir, Verdict: validVerdict, Run: r.Verdict + ": " + r.Reason, Found: []Found{}, LookedFor: []string{}}
	if r.Drive != nil {
		l.Transactions = r.Drive.Committed
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		for _, a := range c.Anomalies {
			forbidden, _ := isolation.Parse(a.Forbidden) // unknown where it is not said
			l.Found = append(l.Found, Found{Anomaly: anomalyOf(a), Count: a.Count, Witness: a.Detail, Forbidden: forbidden})
		}
		anomalies, asked := finds[c.Name]
		switch {
		case !asked:
		case c.Status == validVerdict:
			l.LookedFor = append(l.LookedFor, anomalies...)
		case c.Status == unknownVerdict:
			l.Verdict = unknownVerdict
		case !c.Required:
			l.LookedFor = append(l.LookedFor, forbiddenAmong(anomalies, kept)...)
		}
	}
	// A check that found one anomaly may not have gone on to others that the claim allows, so
	// of those it says nothing.
	for _, f := range l.Found {
		if !slices.Contains(l.LookedFor, f.Anomaly) {
			l.LookedFor = append(l.LookedFor, f.Anomaly)
		}
	}
	if len(l.Found) > 0 {
		l.Verdict = validVerdict
	}
	return l
}

// forbiddenAmong returns the anomalies of the list that a level forbids.
func forbiddenAmong(anomalies []string, level isolation.Level) (list []string) {
	for _, name := range anomalies {
		if a, ok := schedule.Parse(name); ok && forbids(level, a, form{}) {
			list = append(list, name)
		}
	}
	return list
}

// WithoutPredicates are what checks find where nothing is read by predicate.
func WithoutPredicates(finds map[string][]string) map[string][]string {
	less := map[string][]string{}
	for check, anomalies := range finds {
		less[check] = slices.DeleteFunc(slices.Clone(anomalies), func(a string) bool { return a == schedule.G2.String() })
	}
	return less
}

// FailedLoad is a run that could not be carried out.
func FailedLoad(command string, err error) Load {
	return Load{Command: command, Verdict: unknownVerdict, Run: err.Error(), Found: []Found{}, LookedFor: []string{}}
}

// otherNames are names in checks of anomalies that are called otherwise here. A cycle of one
// anti-dependency and real time is of a read that missed what had ended before. In one of several
// each may have missed what had not, so it keeps its name.
var otherNames = map[string]string{
	"internal inconsistency": schedule.Internal.String(),
	"G-nonadjacent":          schedule.LongFork.String(),
	"G-single-realtime":      schedule.StaleRead.String(),
}

// skewInTime is what a check names a stale read, and is none.
const skewInTime = "read skew in real time (G-single-realtime)"

// anomalyOf finds the anomaly that a check named. A stale read is of a transaction that had not
// begun when what it missed was there: in the cycle its anti-dependency follows real time. Else it had begun,
// and read one thing from before and another from after.
func anomalyOf(a report.Anomaly) string {
	name := anomalyNamed(a.Name)
	if name != schedule.StaleRead.String() {
		return name
	}
	for i, e := range a.Edges {
		if e.Kind == "real time" && a.Edges[(i+1)%len(a.Edges)].Kind != "rw" {
			return skewInTime
		}
	}
	return name
}

// anomalyNamed finds an anomaly by the name that a check gives it, such as lost update
// (P4). What is none of ours keeps its name.
func anomalyNamed(name string) string {
	short := name
	if i := strings.LastIndexByte(name, '('); i >= 0 {
		short = strings.TrimSuffix(name[i+1:], ")")
	}
	if other, ok := otherNames[short]; ok {
		short = other
	}
	if slices.ContainsFunc(schedule.Anomalies(), func(a schedule.Anomaly) bool { return a.String() == short }) {
		return short
	}
	return name
}
