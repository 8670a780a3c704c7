// Package matrix holds the observations at the isolation levels of one database: a table of levels against
// anomalies. Each cell combines scripted schedules and load. Each level has the strongest level of the
// literature without an observed violation, and the claim of the vendor.
package matrix

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"stroppy/internal/isolation"
	"stroppy/internal/report"
	"stroppy/internal/schedule"
)

// Matrix is the table of one database.
type Matrix struct {
	Database string `json:"database"`
	Version  string `json:"version"`
	Stroppy  string `json:"stroppy_version"`
	Started  string `json:"started_at"` // RFC 3339
	Command  string `json:"command"`    // makes it again
	// NoSchedules is the reason why this database has no schedules; empty if it has some.
	NoSchedules string  `json:"no_schedules,omitempty"`
	Verdict     string  `json:"verdict"` // valid, invalid or unknown
	Reason      string  `json:"reason"`
	Levels      []Level `json:"levels"`
}

// Level is one isolation of the database.
type Level struct {
	Name    string          `json:"name"`
	Default bool            `json:"default"`
	Claims  isolation.Level `json:"claims"`
	Source  string          `json:"source"` // the place of the claim
	// UpperBound are the strongest levels of the literature without an observed violation. The
	// level gives at most that, because no test shows that it gives as much. Schedules and
	// Transactions count what could have shown a violation. Summary is a sentence about them.
	UpperBound   []isolation.Level `json:"upper_bound"`
	Schedules    int               `json:"schedules"`
	Transactions uint64            `json:"transactions"`
	Summary      string            `json:"summary"`
	// Besides are the anomalies that were looked for and not seen although the upper bound
	// allows a form of them.
	Besides []string `json:"besides"`
	// AmountsTo is the names of UpperBound, for readers of this format from before that key.
	AmountsTo string           `json:"amounts_to"`
	Verdict   string           `json:"verdict"`
	Anomalies map[string]*Cell `json:"anomalies"` // all of them, by their short names
	Loads     []Load           `json:"loads"`
}

// Cell is one anomaly at one level.
type Cell struct {
	Schedule schedule.State `json:"schedule"` // seen if a variant showed it, undecided if one is and none did
	How      string         `json:"how"`      // by what the schedules prevented it, or why they do not apply
	// Load is seen, not seen, or not looked for, and Transactions are those among which it
	// was looked for.
	Load         string `json:"load"`
	Transactions uint64 `json:"transactions"`
	// Few reports that the anomaly was not seen and that Transactions are fewer than Enough.
	Few       bool               `json:"few_transactions"`
	Witnesses []string           `json:"witnesses"`
	Variants  []schedule.Outcome `json:"variants"`
}

// Enough is the number of transactions under load below which a cell is marked.
const Enough = 100_000

// The states of an anomaly under load.
const (
	LoadSeen         = "seen"
	LoadNotSeen      = "not seen"
	LoadNotLookedFor = "not looked for"
)

// Load is one run under load at one level. Its verdict is about anomalies alone: unknown
// if the run could not be carried out, or its order of transactions not be decided.
type Load struct {
	Command      string   `json:"command"`
	Dir          string   `json:"directory"`
	Verdict      string   `json:"verdict"`
	Run          string   `json:"run"` // the run's own verdict and reason, about all of its checks
	Transactions uint64   `json:"transactions"`
	Found        []Found  `json:"found"`
	LookedFor    []string `json:"looked_for"` // anomalies that the run would have named
}

// Found is an anomaly that a run named.
type Found struct {
	Anomaly string `json:"anomaly"` // the short name, or the run's own name if it is not known here
	Count   int    `json:"count"`
	Witness string `json:"witness"`
	// Forbidden is the weakest level that forbids it, by the check that found it.
	Forbidden isolation.Level `json:"forbidden_from"`
}

// NewLevel makes a level of what its schedules and its loads came to.
func NewLevel(name string, isDefault bool, claims isolation.Level, source string, outcomes []schedule.Outcome, loads []Load) Level {
	l := Level{
		Name: name, Default: isDefault, Claims: claims, Source: source, Besides: []string{},
		Anomalies: map[string]*Cell{}, Loads: append([]Load{}, loads...),
	}
	for _, a := range schedule.Anomalies() {
		c := emptyCell()
		for _, o := range outcomes {
			if o.Anomaly == a {
				c.Variants = append(c.Variants, o)
			}
		}
		c.sum()
		for i := range loads {
			c.add(a, &loads[i])
		}
		c.Few = c.few()
		l.Anomalies[a.String()] = c
	}
	l.judge()
	return l
}

// emptyCell returns the cell of an anomaly that nothing looked for.
func emptyCell() *Cell {
	return &Cell{
		Schedule: schedule.NotApplicable, Load: LoadNotLookedFor, Witnesses: []string{}, Variants: []schedule.Outcome{},
	}
}

func (c *Cell) few() bool { return c.Mark() == notSeen && c.Transactions < Enough }

// sum combines the variants of the cell.
func (c *Cell) sum() {
	in := func(s schedule.State) (list []schedule.Outcome) {
		for _, o := range c.Variants {
			if o.State == s {
				list = append(list, o)
			}
		}
		return list
	}
	for _, s := range []schedule.State{schedule.Seen, schedule.Undecided, schedule.Prevented, schedule.NotApplicable} {
		if list := in(s); len(list) > 0 {
			c.Schedule = s
			break
		}
	}
	of := in(c.Schedule)
	if c.Schedule == schedule.Seen {
		for _, o := range of {
			c.Witnesses = append(c.Witnesses, o.Variant+": "+o.Witness)
		}
		of = slices.DeleteFunc(in(schedule.Prevented), func(o schedule.Outcome) bool { return o.Sampled })
	}
	var how []string
	for _, o := range of {
		if !slices.Contains(how, o.How) {
			how = append(how, o.How)
		}
	}
	c.How = strings.Join(how, " / ")
}

// add adds the observations of a run.
func (c *Cell) add(a schedule.Anomaly, l *Load) {
	for _, f := range l.Found {
		if f.Anomaly == a.String() {
			c.Load = LoadSeen
			c.Witnesses = append(c.Witnesses, fmt.Sprintf(underLoad+"%d times: %s", f.Count, f.Witness))
		}
	}
	if slices.Contains(l.LookedFor, a.String()) {
		c.Transactions += l.Transactions
		if c.Load == LoadNotLookedFor {
			c.Load = LoadNotSeen
		}
	}
}

// underLoad begins a witness of load.
const underLoad = "under load "

// Seen reports whether a schedule or load showed the anomaly.
func (c *Cell) Seen() bool { return c.Schedule == schedule.Seen || c.Load == LoadSeen }

// Some reports whether one variant of the schedule showed it and another did not.
func (c *Cell) Some() bool {
	return c.Schedule == schedule.Seen && slices.ContainsFunc(c.Variants, func(o schedule.Outcome) bool { return o.State == schedule.Prevented && !o.Sampled })
}

// Judge sets the verdict from the verdicts of the levels.
func (m *Matrix) Judge() {
	var invalid, unknown []string
	for _, l := range m.Levels {
		switch l.Verdict {
		case invalidVerdict:
			invalid = append(invalid, l.Name)
		case unknownVerdict:
			unknown = append(unknown, l.Name)
		}
	}
	switch {
	case len(invalid) > 0:
		m.Verdict = invalidVerdict
		m.Reason = fmt.Sprintf("At %s an anomaly was seen that the database's claim forbids.", strings.Join(invalid, " and "))
	case m.NoSchedules != "" && len(unknown) > 0:
		m.Verdict, m.Reason = unknownVerdict, "No schedule could be run, and no load was: "+m.NoSchedules+"."
	case len(unknown) > 0:
		m.Verdict, m.Reason = unknownVerdict, fmt.Sprintf("At %s something could not be decided.", strings.Join(unknown, " and "))
	case len(m.Levels) == 0:
		m.Verdict, m.Reason = unknownVerdict, "No level was tried."
	default:
		m.Verdict, m.Reason = validVerdict, "No level showed an anomaly that its claim forbids."
	}
}

const (
	validVerdict   = "valid"
	invalidVerdict = "invalid"
	unknownVerdict = "unknown"
)

// JSON writes the matrix as JSON.
func (m *Matrix) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(m)
}

// Parse reads what JSON wrote.
func Parse(data []byte) (*Matrix, error) {
	m := &Matrix{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("read a matrix of isolation levels: %w", err)
	}
	for i, l := range m.Levels {
		for _, a := range schedule.Anomalies() {
			c, there := l.Anomalies[a.String()]
			if !there && a == schedule.Internal && l.Anomalies != nil { // recorded before there were schedules of it
				c = emptyCell()
				l.Anomalies[a.String()] = c
			}
			if c == nil {
				return nil, fmt.Errorf("read a matrix of isolation levels: level %d has no cell for %s", i+1, a)
			}
			for n := range c.Variants {
				c.Variants[n].Anomaly = a
			}
			c.Few = c.few()
		}
		if l.UpperBound == nil { // recorded before there was this key
			m.Levels[i].judge()
		}
	}
	return m, nil
}

// Earlier reports whether the matrix was recorded before some of today's schedules were added.
func (m *Matrix) Earlier() bool {
	for _, s := range schedule.Schedules() {
		for i := range m.Levels {
			there := slices.ContainsFunc(m.Levels[i].Anomalies[s.Anomaly.String()].Variants, func(o schedule.Outcome) bool {
				return o.Variant == s.Variant
			})
			if m.NoSchedules == "" && !there {
				return true
			}
		}
	}
	return false
}

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
			forbidden, _ := isolation.Parse(a.Forbidden) // unknown if the result does not name it
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
