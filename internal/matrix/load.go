package matrix

import (
	"slices"
	"strings"

	"stroppy/internal/isolation"
	"stroppy/internal/report"
	"stroppy/internal/schedule"
)

// NewLoad returns the anomalies that a run shows. finds lists the anomalies that each check would have named.
// kept is the claim, if a check that is not required named an anomaly and found that the claim is kept;
// otherwise it is Unknown.
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

// WithoutPredicates returns the anomalies that checks find if no transaction reads by predicate.
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

// otherNames maps names of anomalies in checks to the names here. A cycle with one anti-dependency and real
// time has a read that missed a finished transaction. In a cycle with several anti-dependencies each may have
// missed a running one, so the cycle keeps its name.
var otherNames = map[string]string{
	"internal inconsistency": schedule.Internal.String(),
	"G-nonadjacent":          schedule.LongFork.String(),
	"G-single-realtime":      schedule.StaleRead.String(),
}

// skewInTime replaces the name stale read, which a check gives to this anomaly too.
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

// anomalyNamed finds an anomaly by the name that a check gives it, such as lost update (P4). A name that is
// not known here stays.
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
