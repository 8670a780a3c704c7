package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"stroppy/internal/check/fact"
	"stroppy/internal/isolation"
	"stroppy/internal/stats"
)

// PageData is what the page of a run shows. A live page is given a new one each second.
type PageData struct {
	Head
	Live     bool          `json:"live"`
	Timeline *PageTimeline `json:"timeline"` // null where there is none
	// Acknowledged is absent where one node acknowledged all writes, or that is not known.
	Acknowledged *PageAcknowledged `json:"acknowledged,omitempty"`
	Server       *PageServer       `json:"server,omitempty"` // absent where the database measures nothing
	Histogram    *PageHistogram    `json:"histogram"`
	Around       *PageAround       `json:"around"` // null without faults; the next two are null where they are not known
	Kinds        *PageKinds        `json:"kinds"`
	Heat         *PageHeat         `json:"heat"`
	Latency      []PageTable       `json:"latency"`
	Outcomes     []PageTable       `json:"outcomes"`
	Cause        *PageCause        `json:"cause,omitempty"` // of an invalid verdict; absent of others
	Failed       []PageCheck       `json:"failed"`          // the checks by which the verdict is invalid, and the one of the cause
	Checks       []PageCheck       `json:"checks"`          // the others
	// Objectives are the limits that the run was given, and their status is what they come
	// to together: met, missed or unknown; empty where there are none.
	Objectives       []Objective `json:"objectives"`
	ObjectivesStatus string      `json:"objectives_status"`
	Faults           []PageTable `json:"faults"`
	Cost             []PageTable `json:"cost"`
	Study            []PageTable `json:"study"`   // as the Stroppy study prints them
	Details          []PageTable `json:"details"` // configuration
}

// PageCheck is what a check found.
type PageCheck struct {
	Name     string        `json:"name"`
	Status   string        `json:"status"`
	Shown    string        `json:"shown"`    // the status in words, as the level that it is about
	Required bool          `json:"required"` // the verdict counts it
	Detail   string        `json:"detail"`
	Findings []PageFinding `json:"findings"` // of an invalid check: what Detail says, with its evidence
	Rest     string        `json:"rest"`     // how many violations there are in all, and where; empty: that is not known
	Witness  []string      `json:"witness"`
}

// PageFinding is one violation: a sentence first, then why it is one, edge by edge, and a
// drawing.
type PageFinding struct {
	Text    string   `json:"text"`
	Note    string   `json:"note"`    // how often it was found, and what forbids it
	Edges   []string `json:"edges"`   // a line each, by number
	Drawing string   `json:"drawing"` // as SVG, without a style
	File    string   `json:"file"`    // of the drawing, in the run's directory
}

// FirstFinding is what a check found first.
type FirstFinding struct {
	Check   string   `json:"check"`
	Detail  string   `json:"detail"`
	Found   uint64   `json:"found,omitempty"` // violations of that check; 0: not known
	Witness []string `json:"witness"`         // the first transactions, by their ids
}

// Findings are those of the checks by which the verdict is invalid, each with so many
// transactions at most.
func (r *Result) Findings(witness int) (list []FirstFinding) {
	for _, c := range byWeight(r.Checks) {
		if !c.Required || c.Status != "invalid" {
			continue
		}
		f := FirstFinding{Check: c.Name, Detail: c.FirstText(), Witness: c.Witness[:min(len(c.Witness), witness)]}
		if r.Violations != nil {
			for _, of := range r.Violations.Checks {
				if of.Check == c.Name {
					f.Found = of.Found
				}
			}
		}
		list = append(list, f)
	}
	return list
}

// FirstText returns what a check found first, or else what it came to.
func (c *Check) FirstText() string {
	if len(c.Findings) > 0 {
		return c.Findings[0].Text
	}
	return FirstLine(c.Detail)
}

// FirstLine returns the first line of a text.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Input is what a page is made from.
type Input struct {
	Result    *Result
	Seconds   []stats.Second
	Resources []Resource
	Server    []ServerRow
	Plots     Plots
	Live      bool // the run is still going on: the page asks for LiveData each second
}

// LiveData is the address, beside that of a live page, at which it asks for its
// data: PageData as JSON.
const LiveData = "data.json"

// PageName is the page's name in the run's directory.
const PageName = "report.html"

// runScripts are those of the page of a run.
var runScripts = []string{"server.js", "plots.js", "page.js"}

// Page writes a run as one HTML file that needs nothing else: it opens without a
// network. It is a function of the input alone.
func Page(w io.Writer, in Input) error { return NewPageData(in).Write(w, in.Result) }

// Write writes the page of a result that shows the data.
func (d *PageData) Write(w io.Writer, r *Result) error {
	sheet := Sheet{Title: d.Title, Data: d, Live: d.Live, Scripts: runScripts}
	if err := sheet.Write(w, func(w io.Writer) error { return d.text(w, r, Options{Detail: Full}) }); err != nil {
		return fmt.Errorf("write the page of the run: %w", err)
	}
	return nil
}

// NewPageData puts a run into the form of the page.
func NewPageData(in Input) *PageData {
	r := in.Result
	d := &PageData{
		Head: NewHead(r.Workload, judgedOf(r), r.StartedAt, r.Command, r.Stroppy), Live: in.Live,
		Timeline: timeline(in), Acknowledged: pageAcknowledged(r), Server: pageServer(in), Histogram: histogram(r.Drive),
		Around: pageAround(in), Kinds: pageKinds(in.Plots.Kinds, in.whole()), Heat: pageHeat(in.Plots, in.whole()),
		Latency: []PageTable{}, Outcomes: []PageTable{}, Failed: []PageCheck{}, Checks: []PageCheck{},
		Objectives: append([]Objective{}, r.Objectives...), ObjectivesStatus: r.ObjectivesStatus(),
		Faults: append(append(faultTables(r, in.Live), acknowledgedTables(r)...), eventTables(r)...), Cost: costTables(r), Study: studyTables(r), Details: detailTables(r),
	}
	if r.Drive != nil {
		d.Latency, d.Outcomes = latencyTables(r.Drive, in.Live), outcomeTables(r.Drive)
	}
	d.Cause = r.pageCause()
	for _, c := range pageChecks(slices.DeleteFunc(slices.Clone(r.Checks), r.unasked)) {
		c.Rest = r.Violations.rest(c.Name)
		if c.Status == "invalid" && (c.Required || r.Cause != nil && r.Cause.Check == c.Name) {
			d.Failed = append(d.Failed, c)
		} else {
			d.Checks = append(d.Checks, c)
		}
	}
	d.Verdict, d.Reason, d.Notes, d.Figures, d.Facts = r.Verdict, r.Reason, notes(r, in.Live), figures(r, in.Live), facts(r, in.Live)
	if in.Live {
		d.Verdict, d.Reason = "running", "The run is going on. Nothing is decided before its end."
	}
	d.Title = strings.TrimSpace(fmt.Sprintf("%s: %s on %s", Capital(cmp.Or(d.Verdict, "unknown")), OrNotKnown(d.Workload), OrNotKnown(d.Database)))
	return d
}

// claimText says what the database claims; empty where that is not known.
func (r *Result) claimText() string {
	c := r.Claim
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s, for which %s claims %s (%s)", c.Isolation, r.Database, strings.Replace(c.Level, "unknown", "nothing", 1), c.Source)
}

// unchecked is said where there is no check.
func (d *PageData) unchecked() string {
	if d.Live {
		return "They are made after the load phase."
	}
	return "None was made."
}

// facts say what was run. What cannot be of this run is left out, and of one that goes on
// what is not known yet.
func facts(r *Result, live bool) []Setting {
	d, load, claim := cmp.Or(r.Drive, &Drive{}), cmp.Or(r.Load, &Load{}), cmp.Or(r.Claim, &Claim{})
	cluster, expect, phase := NotKnown+": stroppy did not start the database", claim.Expect, "there was no load phase"
	if c := settingOf(r.Scenario, "cluster"); c != "" {
		cluster = c + ", started on the client machine"
	}
	if r.Embedded {
		cluster = "" // there is no server
	}
	if expect != "" && expect == claim.Level {
		expect += ", which is the claim"
	}
	if r.Drive != nil {
		phase = d.phaseText()
	}
	list := []Setting{
		{"Workload", joined(append([]string{r.Workload}, labelled("update ", d.Style["update"], "mode ", d.Style["mode"])...)...)},
		{"Database", joined(databaseOf(r), r.DatabaseURL)},
		{"Cluster", cluster},
		{"Isolation", r.claimText()},
		{"Checked against", expect},
		{Capital(cmp.Or(load.Things, "accounts")), loadText(r.Load)},
		{"Load phase", phase},
		{"Footprint", footprintText(r)},
		{"Faults", faultsText(r)},
		{"Seed", SeedText(r.Seed)},
		{"Started", StartText(r.StartedAt)},
		{"Machine", r.Environment.Text(r.Machine)},
		{"Times", phasesText(r.Phases)},
	}
	list = slices.DeleteFunc(list, func(f Setting) bool {
		return live && f.Value == NotKnown || f.Value == "" && (live || f.Name == "Cluster" || f.Name == "Faults" || f.Name == "Footprint" && (r.Drive == nil || r.NoFootprint))
	})
	for i, f := range list {
		list[i].Value = OrNotKnown(f.Value)
	}
	return list
}

// footprintText says what the database keeps.
func footprintText(r *Result) string {
	text := textOr("", r.FootprintBytes, bytesText)
	if each, n := r.FootprintPerTransfer, r.FootprintTransfers; text != "" && each != nil && n != nil {
		text += fmt.Sprintf(", %s bytes a committed transaction that wrote (%s of them)", Group(uint64(math.Round(max(*each, 0)))), Group(*n))
	}
	return text
}

func phasesText(phases []Phase) string {
	var parts []string
	for _, p := range phases {
		parts = append(parts, p.Name+" "+seconds(p.Seconds))
	}
	return joined(parts...)
}

func loadText(l *Load) string {
	if l == nil {
		return ""
	}
	s := Counted(l.Accounts, "account")
	if l.Things != "" {
		s = Group(l.Accounts) + " " + l.Things
	}
	if l.Total != "" {
		s += " holding " + DecimalText(l.Total)
	}
	switch {
	case l.Seconds == nil:
		return s + ", loaded before"
	case l.Resumed > 0:
		s += fmt.Sprintf(", of which %s were there already", Group(l.Resumed))
	}
	s += " in " + seconds(*l.Seconds)
	if l.RowsPerSecond != nil {
		s += ", " + RateText(*l.RowsPerSecond) + " rows/s"
	}
	return s
}

func settingOf(settings []Setting, name string) string {
	for _, s := range settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

// faultsText counts the faults; empty where none was to be injected into a database of this
// process.
func faultsText(r *Result) string {
	faults := r.Faults
	if len(faults) == 0 && r.Embedded {
		return ""
	}
	if len(faults) == 0 {
		return "none"
	}
	injected := 0
	for _, f := range faults {
		if f.Error == "" && f.Skipped == "" {
			injected++
		}
	}
	return fmt.Sprintf("%d of %d injected", injected, len(faults))
}

// shares are the settings that say how often there is something to check.
var shares = map[string]string{"no-lost-update": "modify-share", "scans": "scan-share"}

// unasked says that a check had nothing to check because the run was to have none of it.
func (r *Result) unasked(c Check) bool {
	return c.Status == notApplicable && settingOf(r.Scenario, shares[c.Name]) == "0"
}

// byWeight returns the checks in the order in which they are shown: those that the verdict counts
// first, and of them the invalid ones.
func byWeight(checks []Check) []Check {
	order := func(c Check) int {
		order := []string{"invalid", "unknown", "valid", notApplicable}
		place := slices.Index(order, c.Status)
		if !c.Required {
			place += len(order)
		}
		return place
	}
	return slices.SortedStableFunc(slices.Values(checks), func(a, b Check) int { return order(a) - order(b) })
}

func pageChecks(checks []Check) []PageCheck {
	list := []PageCheck{}
	for _, c := range byWeight(checks) {
		list = append(list, pageCheck(c))
	}
	return list
}

// levels are what the checks of a whole level decide.
var levels = map[string]string{"serializable": "serializable", "strict": "strictly serializable"}

// shortStatus is the status of a check that is for information, in a narrow column.
func (c PageCheck) shortStatus() string {
	if c.Status == "invalid" {
		return "no, and not claimed"
	}
	return c.Status + ", not claimed"
}

func pageCheck(c Check) PageCheck {
	p := PageCheck{
		Name: c.Name, Status: c.Status, Shown: Capital(c.Status), Required: c.Required, Detail: c.Detail,
		Findings: []PageFinding{}, Witness: append([]string{}, c.Witness...),
	}
	if c.Status != "invalid" {
		return p
	}
	if !c.Required {
		p.Shown = "Does not hold (not claimed)"
		if level, ok := levels[c.Name]; ok {
			p.Shown = "Not " + level + " (not claimed)"
		}
	}
	for i := range c.Findings {
		p.Findings = append(p.Findings, c.pageFinding(&c.Findings[i]))
	}
	if len(c.Findings) == 0 { // of a program that kept none
		p.Findings = append(p.Findings, PageFinding{Text: c.Detail, Edges: []string{}})
		for i := range c.Anomalies {
			a := &c.Anomalies[i]
			p.Findings = append(p.Findings, a.evidence(Capital(a.Name)+": "+a.Detail))
		}
	}
	for i := range c.Broken {
		if i == 0 {
			p.Findings[0].Drawing = c.Broken[i].drawing()
			continue
		}
		p.Findings = append(p.Findings, PageFinding{Edges: []string{}, Drawing: c.Broken[i].drawing()})
	}
	return p
}

// pageFinding returns a finding with its evidence.
func (c *Check) pageFinding(f *Finding) PageFinding {
	at := slices.IndexFunc(c.Anomalies, func(a Anomaly) bool { return a.Name == f.Anomaly })
	if f.Anomaly == "" || at < 0 {
		p := PageFinding{Text: f.Text, Edges: []string{}}
		damaged := slices.IndexFunc(c.Broken, func(v BrokenValue) bool { return slices.Contains(f.Transactions, v.Transaction) })
		if f.Kind == (fact.RegisterDamagedValue{}).Fact() && damaged >= 0 {
			p.Drawing = c.Broken[damaged].drawing()
		}
		return p
	}
	return c.Anomalies[at].evidence(f.Text)
}

// evidence returns an anomaly with its edges and its drawing below a text.
func (a *Anomaly) evidence(text string) PageFinding {
	p := PageFinding{Text: text, Edges: []string{}, Drawing: drawing(a, ""), File: a.Drawing, Note: forbiddenText(a.Forbidden)}
	for i, e := range a.Edges {
		p.Edges = append(p.Edges, fmt.Sprintf("%d. %s: %s", i+1, e.Kind, Sentence(e.Text)))
	}
	return p
}

// forbiddenText returns which levels forbid an anomaly, by their names in the literature.
func forbiddenText(level string) string {
	l, err := isolation.Parse(level)
	if err != nil { // of a program with other levels
		return fmt.Sprintf("Forbidden by %s.", level)
	}
	return Capital(isolation.ForbiddenBy(l)) + "."
}
