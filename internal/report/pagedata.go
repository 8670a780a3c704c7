package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// PageShape is the version of PageData.
const PageShape = 1

// NotKnown is what the page shows for what nobody measured.
const NotKnown = "not known"

// PageData is everything that the page shows, in the page's own words: numbers
// of tables are text already, numbers of charts are numbers. A live page is given
// a new one each second.
type PageData struct {
	Shape     int            `json:"shape"`
	Live      bool           `json:"live"`
	Title     string         `json:"title"`
	Workload  string         `json:"workload"`
	Database  string         `json:"database"` // with its version
	Started   string         `json:"started"`  // the day
	Verdict   string         `json:"verdict"`  // valid, invalid or unknown
	Reason    string         `json:"reason"`
	Notes     []PageNote     `json:"notes"`    // what a reader must know before the measurements
	Figures   []PageFigure   `json:"figures"`  // the few that matter most
	Facts     []PageFact     `json:"facts"`    // what was run
	Command   string         `json:"command"`  // repeats the run
	Timeline  *PageTimeline  `json:"timeline"` // null where there is none
	Histogram *PageHistogram `json:"histogram"`
	Latency   []PageTable    `json:"latency"`
	Outcomes  []PageTable    `json:"outcomes"`
	Checks    []PageCheck    `json:"checks"`
	Faults    []PageTable    `json:"faults"`
	Cost      []PageTable    `json:"cost"`
	Study     []PageTable    `json:"study"`   // as the Stroppy study prints them
	Details   []PageTable    `json:"details"` // configuration
	Made      string         `json:"made"`    // by which program
}

// PageNote is a sentence that the measurements must not be read without.
type PageNote struct {
	Kind string `json:"kind"` // warning or note
	Text string `json:"text"`
}

// PageFigure is one number in large type.
type PageFigure struct {
	Name  string   `json:"name"`
	Value string   `json:"value"`
	Unit  string   `json:"unit"`
	Below []string `json:"below"`
}

// PageFact is a name and what is known of it.
type PageFact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// PageTable is a table as it is shown. An empty cell says that there is nothing
// to show.
type PageTable struct {
	Title    string    `json:"title"`
	Note     string    `json:"note"`
	Columns  []string  `json:"columns"`
	Text     []int     `json:"text_columns"` // by index: those that are no numbers
	Rows     []PageRow `json:"rows"`
	Markdown string    `json:"markdown"` // the same to be copied; empty: not offered
}

// PageRow is one row of a table, with what is reported below it.
type PageRow struct {
	Cells []string `json:"cells"`
	Below []string `json:"below,omitempty"`
	Page  string   `json:"page,omitempty"` // the address, beside this page's, of another that its first cell leads to
	Mark  string   `json:"mark,omitempty"` // the icon before it: invalid, unknown or warning
}

// PageCheck is what a check found.
type PageCheck struct {
	Name      string   `json:"name"`
	Status    string   `json:"status"`
	Required  bool     `json:"required"` // the verdict counts it
	Detail    string   `json:"detail"`
	Anomalies []string `json:"anomalies"`
	Witness   []string `json:"witness"`
	Where     []string `json:"where"`
}

// NewPageData puts a run into the form of the page.
func NewPageData(in Input) *PageData {
	r := in.Result
	d := &PageData{
		Shape: PageShape, Live: in.Live, Workload: r.Workload, Database: databaseOf(r),
		Started: DayText(r.StartedAt), Verdict: r.Verdict, Reason: r.Reason, Command: r.Command,
		Notes: notes(r, in.Live), Figures: figures(r), Facts: facts(r),
		Timeline: timeline(in), Histogram: histogram(r.Drive),
		Latency: latencyTables(r.Drive), Outcomes: outcomeTables(r.Drive), Checks: pageChecks(r.Checks),
		Faults: append(faultTables(r), eventTables(r)...), Cost: costTables(r), Study: studyTables(r), Details: detailTables(r),
		Made: strings.TrimSpace("stroppy " + strings.TrimPrefix(r.Stroppy, "stroppy ")),
	}
	if in.Live {
		d.Verdict, d.Reason = "running", "The run is going on. Nothing is decided before its end."
	}
	d.Title = strings.TrimSpace(fmt.Sprintf("%s: %s on %s", word(d.Verdict), orNotKnown(d.Workload), orNotKnown(d.Database)))
	return d
}

// word is a verdict with a capital letter.
func word(verdict string) string {
	if verdict == "" {
		return "Unknown"
	}
	return strings.ToUpper(verdict[:1]) + verdict[1:]
}

func orNotKnown(s string) string { return cmp.Or(s, NotKnown) }

// claimText says what the database claims.
func (r *Result) claimText() string {
	c, claims := r.Claim, r.Claim.Level
	if claims == "unknown" {
		claims = "nothing"
	}
	return fmt.Sprintf("%s, for which %s claims %s (%s)", c.Isolation, r.Database, claims, c.Source)
}

func (a *Anomaly) text() string {
	return fmt.Sprintf("%s: found %s, forbidden from %s upwards.", a.Name, times(a.Count), a.Forbidden)
}

// facts say what was run. All are there in every report, known or not.
func facts(r *Result) []PageFact {
	claim, expect := NotKnown, NotKnown
	if c := r.Claim; c != nil {
		claim, expect = r.claimText(), c.Expect
		if c.Expect == c.Level {
			expect += ", which is the claim"
		}
	}
	return []PageFact{
		{"Workload", joined(r.Workload, style(r.Drive))},
		{"Database", joined(databaseOf(r), r.DatabaseURL)},
		{"Cluster", clusterFact(r)},
		{"Isolation", claim},
		{"Checked against", expect},
		{loaded(r.Load), orNotKnown(loadLine(r.Load))},
		{"Load phase", driveFact(r.Drive)},
		{"Faults", faultsFact(r)},
		{"Seed", seedFact(r.Seed)},
		{"Started", StartText(r.StartedAt)},
		{"Machine", orNotKnown(r.Machine)},
		{"Times", orNotKnown(phases(r.Phases, lasting))},
	}
}

// joined puts a point between what is there.
func joined(parts ...string) string {
	there := slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return orNotKnown(strings.Join(there, " · "))
}

func style(d *Drive) string {
	if d == nil {
		return ""
	}
	var parts []string
	for _, key := range []string{"update", "mode"} {
		if value := d.Style[key]; value != "" {
			parts = append(parts, key+" "+value)
		}
	}
	return strings.Join(parts, " · ")
}

func settingOf(settings []Setting, name string) string {
	for _, s := range settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

func clusterFact(r *Result) string {
	if c := settingOf(r.Scenario, "cluster"); c != "" {
		return c + ", started on the client machine"
	}
	return NotKnown + ": stroppy did not start the database"
}

func driveFact(d *Drive) string {
	if d == nil {
		return "there was no load phase"
	}
	parts := []string{d.lengthText(lasting)}
	switch {
	case !open(d):
		parts = append(parts, "closed loop: each client sends when the last answer is there")
	case d.RatePlan != "":
		parts = append(parts, "open loop at "+d.RatePlan+" per second")
	default:
		parts = append(parts, "open loop at "+RateText(d.Rate)+" per second")
	}
	if d.Arrival != "" && open(d) {
		parts = append(parts, d.Arrival+" arrivals")
	}
	if d.ThinkSeconds > 0 {
		parts = append(parts, lasting(d.ThinkSeconds)+" of think time")
	}
	return strings.Join(parts, " · ")
}

// open says whether work was due at a rate, whatever became of the work before.
func open(d *Drive) bool { return d.Rate > 0 || d.RatePlan != "" }

// seedFact writes a seed; no run has the seed 0.
func seedFact(seed uint64) string {
	if seed == 0 {
		return NotKnown
	}
	return fmt.Sprint(seed)
}

func faultsFact(r *Result) string {
	if len(r.Faults) == 0 {
		return "none"
	}
	injected := 0
	for _, f := range r.Faults {
		if f.Error == "" && f.Skipped == "" {
			injected++
		}
	}
	return fmt.Sprintf("%d of %d injected", injected, len(r.Faults))
}

// StartText writes a time in RFC 3339 for people.
func StartText(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return orNotKnown(text)
	}
	return at.UTC().Format("2 January 2006, 15:04:05 UTC")
}

// DayText is the day of a start; empty where it is not known.
func DayText(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	return at.UTC().Format("2 January 2006")
}

func phases(list []Phase, write func(float64) string) string {
	var parts []string
	for _, p := range list {
		parts = append(parts, p.Name+" "+write(p.Seconds))
	}
	return strings.Join(parts, " · ")
}

// lasting writes a time in the units that people say.
func lasting(s float64) string {
	if s < 120 || s >= 1e9 {
		return seconds(s)
	}
	whole := int64(math.Round(s))
	h, m, rest := whole/3600, whole/60%60, whole%60
	switch {
	case h > 0 && m == 0:
		return fmt.Sprintf("%d h", h)
	case h > 0:
		return fmt.Sprintf("%d h %d min", h, m)
	case rest == 0:
		return fmt.Sprintf("%d min", m)
	}
	return fmt.Sprintf("%d min %d s", m, rest)
}

// pageChecks are the checks: those that the verdict counts first, and of them
// what was found first.
func pageChecks(checks []Check) []PageCheck {
	list := []PageCheck{}
	for _, required := range []bool{true, false} {
		for _, status := range []string{"invalid", "unknown", "valid"} {
			for _, c := range checks {
				if c.Status == status && c.Required == required {
					list = append(list, pageCheck(c))
				}
			}
		}
	}
	return list
}

func pageCheck(c Check) PageCheck {
	p := PageCheck{
		Name: c.Name, Status: c.Status, Required: c.Required, Detail: c.Detail,
		Anomalies: []string{}, Witness: append([]string{}, c.Witness...), Where: []string{},
	}
	for _, a := range c.Anomalies {
		s := a.text()
		if a.Detail != "" && !strings.Contains(c.Detail, a.Detail) {
			s += " " + a.Detail
		}
		if len(a.Witness) > 0 && !slices.Equal(a.Witness, c.Witness) {
			s += " Transactions: " + some(a.Witness, 20) + "."
		}
		p.Anomalies = append(p.Anomalies, s)
	}
	for _, w := range c.Where {
		p.Where = append(p.Where, fmt.Sprintf("%s, block at %d, record %d", w.File, w.Offset, w.Record))
	}
	return p
}

// loaded names the line that says what was loaded.
func loaded(l *Load) string {
	if l == nil || l.Things == "" {
		return "Accounts"
	}
	return strings.ToUpper(l.Things[:1]) + l.Things[1:]
}
