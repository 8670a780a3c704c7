package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"stroppy/internal/stats"
)

// PageData is what the page of a run shows. A live page is given a new one each second.
type PageData struct {
	Head
	Live      bool           `json:"live"`
	Timeline  *PageTimeline  `json:"timeline"` // null where there is none
	Histogram *PageHistogram `json:"histogram"`
	Latency   []PageTable    `json:"latency"`
	Outcomes  []PageTable    `json:"outcomes"`
	Checks    []PageCheck    `json:"checks"`
	Faults    []PageTable    `json:"faults"`
	Cost      []PageTable    `json:"cost"`
	Study     []PageTable    `json:"study"`   // as the Stroppy study prints them
	Details   []PageTable    `json:"details"` // configuration
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

// Input is what a page is made from.
type Input struct {
	Result    *Result
	Seconds   []stats.Second
	Resources []Resource
	Live      bool // the run is still going on: the page asks for LiveData each second
}

// LiveData is the address, beside that of a live page, at which it asks for its
// data: PageData as JSON.
const LiveData = "data.json"

// PageName is the page's name in the run's directory.
const PageName = "report.html"

// Page writes a run as one HTML file that needs nothing else: it opens without a
// network. It is a function of the input alone.
func Page(w io.Writer, in Input) error {
	data := NewPageData(in)
	sheet := Sheet{Title: data.Title, Data: data, Live: data.Live, Scripts: []string{"page.js"}}
	if err := sheet.Write(w, func(w io.Writer) error { return Text(w, in.Result, Options{}) }); err != nil {
		return fmt.Errorf("write the page of the run: %w", err)
	}
	return nil
}

// NewPageData puts a run into the form of the page.
func NewPageData(in Input) *PageData {
	r := in.Result
	d := &PageData{
		Head: NewHead(r.Workload, databaseOf(r), r.StartedAt, r.Command, r.Stroppy), Live: in.Live,
		Timeline: timeline(in), Histogram: histogram(r.Drive),
		Latency: latencyTables(r.Drive), Outcomes: outcomeTables(r.Drive), Checks: pageChecks(r.Checks),
		Faults: append(faultTables(r), eventTables(r)...), Cost: costTables(r), Study: studyTables(r), Details: detailTables(r),
	}
	d.Verdict, d.Reason, d.Notes, d.Figures, d.Facts = r.Verdict, r.Reason, notes(r, in.Live), figures(r), facts(r)
	if in.Live {
		d.Verdict, d.Reason = "running", "The run is going on. Nothing is decided before its end."
	}
	d.Title = strings.TrimSpace(fmt.Sprintf("%s: %s on %s", Capital(cmp.Or(d.Verdict, "unknown")), OrNotKnown(d.Workload), OrNotKnown(d.Database)))
	return d
}

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
		{loaded(r.Load), OrNotKnown(loadLine(r.Load))},
		{"Load phase", driveFact(r.Drive)},
		{"Faults", faultsFact(r)},
		{"Seed", SeedText(r.Seed)},
		{"Started", StartText(r.StartedAt)},
		{"Machine", OrNotKnown(r.Machine)},
		{"Times", OrNotKnown(phases(r.Phases, lasting))},
	}
}

// joined puts a point between what is there.
func joined(parts ...string) string {
	there := slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return OrNotKnown(strings.Join(there, " · "))
}

func style(d *Drive) string {
	if d == nil {
		return ""
	}
	return strings.Join(labelled("update ", d.Style["update"], "mode ", d.Style["mode"]), " · ")
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
	parts := []string{d.lengthText(lasting), "closed loop: each client sends when the last answer is there"}
	if open(d) {
		parts[1] = "open loop at " + cmp.Or(d.RatePlan, RateText(d.Rate)) + " per second"
		if d.Arrival != "" {
			parts = append(parts, d.Arrival+" arrivals")
		}
	}
	if d.ThinkSeconds > 0 {
		parts = append(parts, lasting(d.ThinkSeconds)+" of think time")
	}
	return strings.Join(parts, " · ")
}

// open says whether work was due at a rate, whatever became of the work before.
func open(d *Drive) bool { return d.Rate > 0 || d.RatePlan != "" }

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
	text := fmt.Sprintf("%d h %d min", h, m)
	if h == 0 {
		text = fmt.Sprintf("%d min %d s", m, rest)
	}
	return strings.TrimSuffix(strings.TrimSuffix(text, " 0 s"), " 0 min")
}

// pageChecks are the checks: those that the verdict counts first, and of them
// what was found first.
func pageChecks(checks []Check) []PageCheck {
	order := func(c Check) int {
		place := slices.Index([]string{"invalid", "unknown", "valid"}, c.Status)
		if !c.Required {
			place += 3
		}
		return place
	}
	list := []PageCheck{}
	for _, c := range slices.SortedStableFunc(slices.Values(checks), func(a, b Check) int { return order(a) - order(b) }) {
		list = append(list, pageCheck(c))
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
	if l == nil {
		return "Accounts"
	}
	return Capital(cmp.Or(l.Things, "accounts"))
}
