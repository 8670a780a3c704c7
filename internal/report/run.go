package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"stroppy/internal/check/fact"
	"stroppy/internal/fault"
	"stroppy/internal/isolation"
	"stroppy/internal/stats"
)

// Item is a check, an objective, or a run of several, and what was found.
type Item struct {
	Name      string     `json:"name"`
	Status    string     `json:"status"`
	Shown     string     `json:"shown"`            // the status in words, as the level that it is about
	Required  bool       `json:"required"`         // the verdict counts it
	Beside    string     `json:"beside,omitempty"` // the status: whether the verdict counts it
	Detail    string     `json:"detail"`
	Findings  []Evidence `json:"findings"`             // of an invalid check: the content of Detail, with its evidence
	Rest      string     `json:"rest"`                 // the number of all violations, and their place; empty: not known
	WitnessOf string     `json:"witness_of,omitempty"` // the check whose violation the transactions show, if it is another
	Witness   []string   `json:"witness"`
	Page      string     `json:"page,omitempty"`    // the address of the run's page, beside this one
	Command   string     `json:"command,omitempty"` // shows the run's report
}

// Evidence is one violation: a sentence, the reasons edge by edge, and a drawing.
type Evidence struct {
	Title     string   `json:"title,omitempty"`     // of a finding beside the cause
	Explained bool     `json:"explained,omitempty"` // by the cause
	Text      string   `json:"text"`
	Note      string   `json:"note"`    // how often it was found, and what forbids it
	Edges     []string `json:"edges"`   // a line each, by number
	Drawing   string   `json:"drawing"` // as SVG, without a style
	File      string   `json:"file"`    // of the drawing, in the run's directory
}

// FirstFinding is the first finding of a check.
type FirstFinding struct {
	Check   string   `json:"check"`
	Detail  string   `json:"detail"`
	Found   uint64   `json:"found,omitempty"` // violations of that check; 0: not known
	Witness []string `json:"witness"`         // the first transactions, by their ids
}

// Findings returns the first finding of each check that makes the verdict invalid, with at most
// so many transactions each.
func (r *Result) Findings(witness int) (list []FirstFinding) {
	for _, c := range byWeight(r.Checks) {
		if !c.Required || c.Status != "invalid" {
			continue
		}
		f := FirstFinding{Check: c.Name, Detail: FirstLine(c.Detail), Witness: c.Witness[:min(len(c.Witness), witness)]}
		if len(c.Findings) > 0 {
			f.Detail = c.Findings[0].Text
		}
		f.Found = r.Violations.of(c.Name).Found
		list = append(list, f)
	}
	return list
}

// FirstLine returns the first line of a text.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Input holds the data of the document of a run.
type Input struct {
	Result    *Result
	Seconds   []stats.Second
	Resources []Resource
	Server    []ServerRow
	Plots     Plots
	Live      bool   // the run is still going on: the page asks for LiveData each second
	Dir       string // the run's directory as a command takes it; empty: not known

	Now   []Figure    // of a live run: what it does now, before its figures
	SoFar []DataTable // of a live run: what became of the transactions until now
}

// LiveData is the address, beside the live page, of its data: a Document as JSON.
const LiveData = "data.json"

// PageName is the page's name in the run's directory.
const PageName = "report.html"

// Page writes a run as one HTML file, which opens without a network. It is a function of the input alone.
func Page(w io.Writer, in Input) error { return RunDocument(in).WritePage(w) }

// RunCharts are the charts over the time of a run.
type RunCharts struct {
	Timeline     *Timeline         `json:"timeline"`
	Acknowledged *Acknowledgements `json:"acknowledged,omitempty"` // nil: one node acknowledged all writes, or it is not known
	Around       *AroundPlot       `json:"around"`                 // null without faults; the next two are null if they are not known
	Kinds        *KindPlot         `json:"kinds"`
	Heat         *HeatPlot         `json:"heat"`
}

// The sections that a text treats differently from others.
const (
	failedID = "failed"
	checksID = "checks"
)

// RunDocument returns the document of a run.
func RunDocument(in Input) *Document {
	r := in.Result
	d := NewDocument(r.Workload, judgedOf(r), r.StartedAt, r.Stroppy)
	d.Subject = strings.TrimSpace(r.Workload + " on " + d.Database)
	d.Foot += " The run's directory holds the same as data: result.json, series.csv and history/."
	d.Live, d.Objectives, d.Cause, d.Notes = in.Live, r.ObjectivesStatus(), r.explanation(), notes(r, in.Live)
	verdict := r.Verdict
	if r.Measured {
		verdict = "measured"
	}
	d.Judge(verdict, r.Reason, OrNotKnown(d.Workload)+" on "+OrNotKnown(d.Database))
	if in.Live {
		d.Judge("running", "The run is going on. Nothing is decided before its end.", OrNotKnown(d.Workload)+" on "+OrNotKnown(d.Database))
	}
	failed, others := r.pageChecks()
	wrong := "What is wrong"
	if len(failed) == 0 {
		wrong = "Violations that the claim allows"
	}
	d.Add(Section{ID: failedID, Title: wrong, Checks: failed, Facts: r.violationsFile(in.Dir), In: InPage | InText | InMarkdown})
	d.measured(in)
	rest := Section{ID: checksID, Title: "Checks", Checks: others}
	switch {
	case len(failed) > 0:
		rest.Title = "Other checks"
	case len(others) == 0 && in.Live:
		rest.Text = []string{"They are made after the load phase."}
	case len(others) == 0:
		rest.Text = []string{"None was made."}
	}
	d.Add(rest)
	var objectives []Item
	for _, o := range r.Objectives {
		objectives = append(objectives, Item{Name: o.Name, Status: o.Status, Shown: Capital(o.Status), Required: true, Detail: o.Detail})
	}
	d.Add(Section{ID: "objectives", Title: "Objectives", Checks: objectives})
	d.Add(Section{ID: "faults", Title: "Faults", Tables: []DataTable{faultTable(r, in.Live)}, In: InPage})
	d.Add(Section{ID: "faults-text", Title: "Faults", Tables: []DataTable{faultLines(r, in.Live)}, In: InText})
	d.Add(Section{ID: "servers", Tables: []DataTable{acknowledgedTable(r), eventTable(r)}, In: InPage | InFull})
	if !in.Live { // they are known at the end
		study := Section{ID: "study", Title: "For a paper", Tables: studyTables(r), In: InPage | InFull}
		if r.Study {
			study.In = InPage
		}
		d.Add(study)
		if r.Drive != nil || r.Client != nil {
			d.Add(Section{ID: "cost", Title: "Cost", Tables: costTables(r), In: InPage | InFull})
		}
	}
	run := facts(r, in.Live)
	d.Add(Section{ID: "what", Title: "What was run", Facts: run, Command: r.Command, In: InPage})
	settings := Texts(r.Settings, func(s Setting) string { return s.Name + " = " + s.Value })
	known := slices.DeleteFunc(slices.Clone(run), func(f Setting) bool { return strings.HasPrefix(f.Value, NotKnown) })
	d.Add(Section{ID: "what-text", Title: "What was run", Facts: append(known, present(Setting{"Settings", joined(settings...)})...), In: InFull})
	d.Add(Section{ID: "details", Title: "Configuration", Folded: "Show all settings", In: InPage, Tables: []DataTable{
		r.Environment.Table(r.Stroppy),
		settingsTable("Settings that the database reported", "name", "value", r.Settings),
		settingsTable("Scenario in effect", "name", "value", r.Scenario)}})
	return d
}

// measured adds what was measured of a run.
func (d *Document) measured(in Input) {
	r := in.Result
	figures := append(slices.Clone(in.Now), figures(r, in.Live)...)
	d.Add(Section{ID: "figures", Title: "Measurements", Figures: figures, In: InPage | InFull | InMarkdown})
	if r.Drive != nil {
		phase := append([]string{r.Drive.phaseText()}, labelled("mode ", clean(r.Drive.Style["mode"]))...)
		brief := []Setting{{"Load phase", joined(phase...)}}
		for i := range figures {
			brief = append(brief, figures[i].fact())
		}
		d.Add(Section{ID: "measured", Facts: append(brief, countLines(r)...), In: InShort})
	}
	time := Section{ID: "timeline", Title: "Over time", In: InPage}
	whole := in.whole()
	charts := &RunCharts{timeline(in), nil, pageAround(in), pageKinds(in.Plots.Kinds, whole), pageHeat(in.Plots, whole)}
	if r.Acknowledgements.shown() {
		charts.Acknowledged = r.Acknowledgements
	}
	if charts.Timeline != nil {
		time.Chart = &Chart{"timeline", charts}
	} else if !in.Live {
		time.Text = []string{NotKnown}
	}
	d.Add(time)
	if server := pageServer(in); server != nil && charts.Timeline != nil {
		d.Add(Section{ID: "server", Title: "The server's side", Chart: &Chart{"server", server}, In: InPage})
	}
	if r.Drive == nil {
		return
	}
	tables := latencyTables(r.Drive, in.Live)
	latency := Section{ID: "latency", Title: "Latency", In: InPage}
	if h := histogram(r.Drive); h != nil {
		latency.Chart = &Chart{"histogram", h}
	} else if len(tables) > 0 {
		latency.Text = []string{"The distribution is not known."}
	}
	d.Add(latency)
	d.Add(Section{ID: "percentiles", Tables: tables, In: InPage | InFull})
	outcomes := in.SoFar
	if outcomes == nil {
		outcomes = outcomeTables(r.Drive)
	}
	d.Add(Section{ID: "outcomes", Title: "Outcomes", Tables: outcomes, In: InPage | InFull})
}

// claimText returns the level that the database claims, with its source; empty if it is not known.
func (r *Result) claimText() string {
	c := r.Claim
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s, for which %s claims %s (%s)", c.Isolation, r.Database, strings.Replace(c.Level, "unknown", "nothing", 1), c.Source)
}

// facts describe the run. They leave out values that do not apply, and, during the run, values
// that are not known yet.
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

// footprintText returns how many bytes the database keeps.
func footprintText(r *Result) string {
	text := textOr("", r.FootprintBytes, bytesText)
	if each, n := r.FootprintPerTransfer, r.FootprintTransfers; text != "" && each != nil && n != nil {
		text += fmt.Sprintf(", %s bytes a committed transaction that wrote (%s of them)", Group(uint64(math.Round(max(*each, 0)))), Group(*n))
	}
	return text
}

func phasesText(phases []Phase) string {
	return joined(Texts(phases, func(p Phase) string { return p.Name + " " + seconds(p.Seconds) })...)
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

// faultsText counts the faults; empty for an embedded database without faults.
func faultsText(r *Result) string {
	switch faults := len(r.Faults); {
	case faults == 0 && r.Embedded:
		return ""
	case faults == 0:
		return "none"
	}
	injected := 0
	for _, f := range r.Faults {
		if f.Done() {
			injected++
		}
	}
	return fmt.Sprintf("%d of %d injected", injected, len(r.Faults))
}

// shares are the settings for the share of transactions that a check is about.
var shares = map[string]string{"no-lost-update": "modify-share", "scans": "scan-share"}

// unasked reports whether the settings of the run left a check without transactions.
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

// pageChecks returns the checks by which the verdict is invalid, with the one that explains them,
// and the others.
func (r *Result) pageChecks() (failed, others []Item) {
	for _, c := range byWeight(r.Checks) {
		if r.unasked(c) {
			continue
		}
		p := pageCheck(c)
		p.Rest = r.Violations.rest(c.Name)
		if c.Status == "invalid" && (c.Required || r.Cause != nil && r.Cause.Check == c.Name) {
			failed = append(failed, p)
		} else {
			others = append(others, p)
		}
	}
	return failed, others
}

// violationsFile names the file that has all violations of the run in a directory.
func (r *Result) violationsFile(dir string) []Setting {
	v, more := r.Violations, ""
	if v == nil {
		return nil
	}
	if v.More > 0 {
		more = fmt.Sprintf(" and %s more that are not in it", Group(v.More))
	}
	return []Setting{{"All of it", fmt.Sprintf("%s, %s%s; `stroppy history %s ID` shows a transaction",
		v.File, Counted(v.Lines, "line"), more, cmp.Or(dir, runDir))}}
}

// runDir stands in commands for a directory that is not known.
const runDir = "RUN_DIR"

// levels are the levels that a check decides as a whole, by the name of the check.
var levels = map[string]string{"serializable": "serializable", "strict": "strictly serializable"}

func pageCheck(c Check) Item {
	p := Item{
		Name: c.Name, Status: c.Status, Shown: Capital(c.Status), Required: c.Required, Detail: c.Detail,
		Findings: []Evidence{}, Witness: append([]string{}, c.Witness...),
	}
	switch {
	case c.Required:
		p.Beside = "required"
	case c.Status == "valid" || c.Status == "unknown":
		p.Beside = "for information"
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
		p.Findings = append(p.Findings, Evidence{Text: c.Detail, Edges: []string{}})
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
		p.Findings = append(p.Findings, Evidence{Edges: []string{}, Drawing: c.Broken[i].drawing()})
	}
	return p
}

// pageFinding returns a finding with its evidence.
func (c *Check) pageFinding(f *Finding) Evidence {
	at := slices.IndexFunc(c.Anomalies, func(a Anomaly) bool { return a.Name == f.Anomaly })
	if f.Anomaly == "" || at < 0 {
		p := Evidence{Text: f.Text, Edges: []string{}}
		damaged := slices.IndexFunc(c.Broken, func(v BrokenValue) bool { return slices.Contains(f.Transactions, v.Transaction) })
		if f.Kind == (fact.RegisterDamagedValue{}).Fact() && damaged >= 0 {
			p.Drawing = c.Broken[damaged].drawing()
		}
		return p
	}
	return c.Anomalies[at].evidence(f.Text)
}

// evidence returns an anomaly with its edges and its drawing below a text.
func (a *Anomaly) evidence(text string) Evidence {
	p := Evidence{Text: text, Edges: []string{}, Drawing: drawing(a, ""), File: a.Drawing, Note: forbiddenText(a.Forbidden)}
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

// pacingLimit is the pacing error, in milliseconds, from which on a reader must know it.
const pacingLimit = 1

// notes returns the facts that a reader must know before the measurements, warnings first.
func notes(r *Result, live bool) []Note {
	n := &Notes{}
	if !r.Finished && !live {
		n.Warn("The run was cut off before its end: these are the measurements until then.")
	}
	if r.ScaledDownBy > 0 {
		n.Warn("Scaled down by %g, so these are not the measurements of the scenario as it was written%s.", r.ScaledDownBy, strings.Join(labelled(": ", clean(r.ScaledDown)), ""))
	}
	for _, w := range r.DatabaseWarnings {
		n.Warn("%s", clean(w))
	}
	n.typed(r)
	late := func(w Warning) bool { return w.LateMS > 0 }
	explained := r.Client.bottleneck() != "" || slices.ContainsFunc(r.Warnings, late)
	switch d := r.Drive; {
	case d != nil:
		if d.Unmeasured() && !live {
			n.Warn("Nothing was measured: all transactions ended within the warm-up, which no measurement includes.")
		}
		n.loadPhase(d, r.follower(), r.Resolved)
		if p := d.Pacing; p != nil && p.P99 > pacingLimit && !explained {
			n.Warn("Transactions left late: of those whose client was free, 1 %% left more than %s ms after their intended start time. The latencies include that time.", LatencyText(p.P99))
		}
	case !live:
		n.Note("There was no load phase, so there are no measurements.")
	}
	for _, f := range r.Faults {
		for _, trouble := range labelled("not injected: ", f.Error, "not healed: ", f.HealError) {
			n.Warn("The fault %s at %s was %s", f.Fault, spanText(f.At), withPeriod(trouble))
		}
	}
	for _, e := range r.ClusterEvents {
		if e.Repair {
			n.Warn("The cluster did not heal by itself. At %s: %s.", atText(e.AtSeconds), clean(e.Text))
		}
	}
	if a := r.Acknowledgements; a != nil {
		for _, o := range a.Overlaps {
			n.Warn("%s", o.text())
		}
		for _, i := range a.Intervals {
			if i.LostFromSeconds != nil {
				n.Warn("%s acknowledged %s writes from %s to %s: %s are lost, the first of them acknowledged at %s.", i.Server, Group(i.Acknowledged),
					atText(i.FromSeconds), atText(i.ToSeconds), Perhaps(i.Lost, Group), atText(*i.LostFromSeconds))
			}
		}
	}
	if d := r.Degradation; d != nil && d.Loss() > 0 {
		n.Note("The throughput was %.1f %% less after the last heal than before the first fault: %s against %s per second.",
			100*d.Loss(), RateText(d.LastTPS), RateText(d.FirstTPS))
	}
	return n.All()
}

// typed adds the warnings of a result. A result of an early version has only the sentence about its client.
func (n *Notes) typed(r *Result) {
	said := false
	for i := range r.Warnings {
		w := &r.Warnings[i]
		said = said || w.ofClient()
		if w.severe() {
			n.Warn("%s", w.Text())
		} else {
			n.Note("%s", w.Text())
		}
	}
	if text := r.Client.bottleneck(); text != "" && !said {
		n.Warn("The client was the bottleneck, so the measurements may be its own rather than the database's: %s", withPeriod(text))
	}
}

func (n *Notes) loadPhase(d *Drive, follower string, resolved *Resolved) {
	if d.Interrupted {
		n.Warn("The user ended the run early.")
	}
	if d.StoppedOnViolation {
		n.Warn("A violation that showed ended the load phase early.")
	}
	if l := d.LiveCheck; l != nil && l.Skipped > 0 {
		n.Note("The check during the load phase did not keep up: it left out %s of %s, which were checked after the run alone.",
			Group(l.Skipped), Counted(l.Checked+l.Skipped, "transaction"))
	}
	if d.Rebuilt {
		n.Warn("The run ended before it wrote its measurements; these are from the recorded transactions. Errors, conflicts, reconnects, what was never sent, and the cost of the load phase are not known.")
	}
	switch s := d.Steady; {
	case s == nil || s.State == stats.Steady:
	case s.State == stats.Unsteady:
		depends := "the mean throughput depends"
		if s.Of == stats.OfLatency {
			depends = "the percentiles depend"
		}
		n.Warn("%s So %s on when the run ended.", Sentence(cmp.Or(s.Detail, "there is no steady state")), depends)
	case s.Detail != "" && d.Seconds >= stats.LeastSteady:
		n.Note("%s", Sentence(s.Detail))
	}
	if d.Backlog > 0 || d.Shed > 0 {
		add := n.Note
		if d.behind() {
			add = n.Warn
		}
		add("%s The latencies of committed transactions leave them out.", d.backlogText(follower))
	}
	if d.Limit != nil {
		n.Note("%s", d.Limit.text(d.Committed))
	}
	if c := d.Connect; c != nil {
		n.Note("Each transaction had a new connection, opened in %s ms (p50) and %s ms (p99).", LatencyText(c.P50), LatencyText(c.P99))
	}
	switch {
	case resolved != nil:
		n.Note("%s.", Capital(resolved.text()))
	case d.Unknown > 0:
		n.Note("%s ended in doubt: the database may or may not have applied the work.", Counted(d.Unknown, "transaction"))
	}
	if d.Retries > 0 && d.Outcomes["retried"] == nil {
		n.Note("Some transactions were tried again. The latencies of committed transactions include their time; by itself it is not known.")
	}
	if d.Clipped > 0 {
		n.Note("%s longer than an hour, which the percentiles take for an hour; mean and max have the true time.", wereCount(d.Clipped))
	}
}

// figures returns the few numbers in large type. A throughput that the rate fixed is no measurement and
// stands last. Values for which a run is too short are left out, and values that a live run does not know
// yet.
func figures(r *Result, live bool) []Figure {
	d := r.Drive
	if d == nil {
		return []Figure{}
	}
	outcomes := NewFigure("Committed", Group(d.Committed), "", Group(d.Rejected.total())+" rejected", Group(d.Aborted)+" aborted", Group(d.Unknown)+" in doubt")
	list := []Figure{throughputFigure(d, live), latencyFigure(d), outcomes}
	if open(d) && !d.behind() && (!live || d.throughput().Mean != nil) {
		rate := NewFigure("Rate", RateText(d.Rate), "/s", "as asked") // the rate fixed the throughput
		if mean := d.throughput().Mean; mean != nil {
			rate.Below = append(rate.Below, "committed "+RateText(*mean)+"/s")
		}
		list = []Figure{latencyFigure(d), outcomes, rate}
	}
	gap := "" // the longest
	if o := d.Outage; o != nil {
		gap = "longest gap without a commit " + seconds(o.Seconds)
	}
	if s := d.Steady; s != nil && s.State != stats.SteadyUnknown { // otherwise a note gives the reason
		steadiness := NewFigure("Steadiness", string(s.State), "")
		if s.State == stats.Steady {
			steadiness.Below = append(steadiness.Below, fmt.Sprintf("from second %d of the run", s.From))
		}
		steadiness.Below = append(steadiness.Below, labelled("", gap)...)
		list = append(list, steadiness)
	} else {
		list[0].Below = append(list[0].Below, labelled("", gap)...)
	}
	list = append(list, outageFigure(r.Faults)...)
	return slices.DeleteFunc(list, func(f Figure) bool { return live && f.Value == NotKnown })
}

func throughputFigure(d *Drive, live bool) Figure {
	f := NewFigure("Throughput, mean", Perhaps(d.throughput().Mean, RateText), "/s")
	if t := d.throughput(); t.Median != nil && t.Max != nil {
		f.Below = append(f.Below, "median "+RateText(*t.Median), "best second "+RateText(*t.Max))
	}
	var interval string
	if d.Seconds >= stats.LeastInterval && !live {
		interval = "confidence interval " + NotKnown
	}
	if i := d.Interval; i != nil {
		interval = fmt.Sprintf("%.4g %% interval %s to %s", 100*i.Confidence, RateText(i.Low), RateText(i.High))
	}
	f.Below = append(f.Below, labelled("", interval)...)
	return f
}

// latencyFigure shows the latency, and beside it the time that the percentiles of a closed loop hide.
func latencyFigure(d *Drive) Figure {
	l := d.Latency
	if l == nil {
		return NewFigure("Latency, 99 %", NotKnown, "")
	}
	f := NewFigure("Latency, 99 %", LatencyText(l.P99), "ms")
	if s := d.silent(); s != nil && !open(d) {
		f.Below = append(f.Below, s.text())
	}
	f.Below = append(f.Below, "median "+LatencyText(l.P50), "99.9 % "+LatencyText(l.P999), "max "+LatencyText(l.Max))
	if open(d) {
		f.Below = append(f.Below, "from the intended start time")
	}
	return f
}

// outageFigure returns the worst outage by a fault, if one was measured.
func outageFigure(faults []fault.Record) []Figure {
	faults = slices.DeleteFunc(slices.Clone(faults), func(f fault.Record) bool { return f.Outage == nil })
	if len(faults) == 0 {
		return nil
	}
	worst := slices.MaxFunc(faults, func(a, b fault.Record) int { return cmp.Compare(*a.Outage, *b.Outage) })
	back := "throughput not back before the next fault or the end"
	switch {
	case worst.Uncompared != "":
		back = "when throughput was back is not known"
	case worst.Recovered != nil && *worst.Recovered == 0:
		back = "throughput did not fall"
	case worst.Recovered != nil:
		back = "throughput back after " + spanText(*worst.Recovered)
	}
	return []Figure{NewFigure("Worst outage", outageText(*worst.Outage), "", worst.Fault+" at "+spanText(worst.At), back)}
}

// behindShare is the share of a second's arrivals that may be left at the end of a load phase. With more the
// database counts as slower than the rate. Every database has pauses of this length.
const behindShare = 0.1

// Unmeasured reports whether the load phase had a warm-up and nothing after it.
func (d *Drive) Unmeasured() bool { return d.Seconds <= 0 && d.WarmupSeconds > 0 }

// phaseText reports how many clients ran for how long, and how they were paced.
func (d *Drive) phaseText() string {
	length, early := seconds(d.Seconds), ""
	switch {
	case d.Unmeasured():
		length = seconds(d.WarmupSeconds) + " of warm-up, and nothing measured"
	case d.WarmupSeconds > 0:
		length += " after " + seconds(d.WarmupSeconds) + " of warm-up"
	}
	if d.Interrupted {
		early = "ended early by the user"
	}
	if d.StoppedOnViolation {
		early = "ended early by a violation"
	}
	clients := Counted(uint64(max(d.Clients, 0)), "client")
	if d.Workers > 0 {
		clients += " of " + Counted(uint64(d.Workers), "worker")
		if d.WorkersLost > 0 {
			clients += fmt.Sprintf(", %d of them lost", d.WorkersLost)
		}
	}
	return joined(clients+" for "+length, d.loopText(), early)
}

func (d *Drive) loopText() string {
	text, poisson := "open loop at "+RateText(d.Rate)+"/s", ", Poisson arrivals"
	switch {
	case !open(d) && d.ThinkSeconds <= 0:
		return "closed loop: each client sends when the last answer is there"
	case !open(d):
		text, poisson = "closed loop, "+seconds(d.ThinkSeconds)+" between two transactions of a client", " in the mean"
	case d.staged():
		text = "open loop at " + clean(d.RatePlan) + " per second"
	}
	if d.Arrival == "poisson" {
		text += poisson
	}
	return text
}

// open reports whether work was due at a rate, independent of the progress of earlier work.
func open(d *Drive) bool { return d.Rate > 0 || d.RatePlan != "" }

// staged reports whether the rate changed.
func (d *Drive) staged() bool { return strings.Contains(d.RatePlan, " for ") }

// behind reports whether the load phase did not follow the requested rate. Then work was shed, or the end
// left more than a short pause does and more than one transaction per client.
func (d *Drive) behind() bool {
	return d.Shed > d.skipped() || float64(d.Backlog) > max(behindShare*d.Rate, float64(d.Clients))
}

// follower names who could not follow a rate: the database, unless the client or its machine was too slow.
func (r *Result) follower() string {
	switch {
	case r.Client.bottleneck() != "":
		return "This client"
	case r.Starved():
		return "This starved host"
	}
	return "The database"
}

// skipped counts the transactions that were too late for the latency limit.
func (d *Drive) skipped() uint64 {
	if d.Limit == nil {
		return 0
	}
	return d.Limit.Skipped
}

// backlogText describes the backlog, and names who could not follow the rate.
func (d *Drive) backlogText(follower string) string {
	if !d.behind() {
		return wereCount(d.Backlog) + " due, but not started when the load phase ended."
	}
	asked := RateText(d.Rate) + "/s"
	if d.staged() {
		asked = clean(d.RatePlan)
	}
	text := fmt.Sprintf("%s could not follow the rate of %s: %s due and not started when the load phase ended", follower, asked, wereCount(d.Backlog))
	if d.MaxBacklog > d.Backlog {
		text += fmt.Sprintf(", up to %s waited at once", Group(d.MaxBacklog))
	}
	if full := d.Shed - d.skipped(); full > 0 {
		text += fmt.Sprintf(", and %s never sent because the queue was full", wereCount(full))
	}
	return text + "."
}

// bottleneck returns why the client was the bottleneck, or nothing.
func (c *Client) bottleneck() string { return cmp.Or(c, &Client{}).Bottleneck }

func wereCount(n uint64) string {
	if n == 1 {
		return "1 was"
	}
	return Group(n) + " were"
}

// mostCodes is how many codes of a class of errors the short text names.
const mostCodes = 3

// countLines returns the counts below the figures of the short text: failed tries, errors by class,
// why counts differ, and how the end state resolved transactions in doubt.
func countLines(r *Result) []Setting {
	d := r.Drive
	tries := []string{Group(d.Conflicts), Group(d.Retries) + " retries", countedOr(int(d.Reconnects), "reconnect")}
	if d.Retries == 1 {
		tries[1] = "1 retry"
	}
	if len(d.Errors) == 0 {
		tries = append(tries, "no errors")
	}
	if d.Rebuilt {
		tries = []string{NotKnown, Counted(d.Retries, "further try")}
	}
	return append([]Setting{{"Conflicts", joined(tries...)}}, present(Setting{"Errors", d.errorsText()}, Setting{"Counts", d.countsText()}, Setting{"In doubt", r.Resolved.text()})...)
}

// errorsText counts the failed tries by class, and in each class by the database's codes; empty if
// there was none. A time-out counts as an aborted try: see db.Class.
func (d *Drive) errorsText() string {
	var classes []string
	codes, totals := map[string][]ErrorCount{}, map[string]uint64{} // by class
	for _, e := range d.Errors {
		if totals[e.Class] += e.Count; totals[e.Class] == e.Count {
			classes = append(classes, e.Class)
		}
		if at := slices.IndexFunc(codes[e.Class], func(c ErrorCount) bool { return c.Code == e.Code }); at >= 0 {
			codes[e.Class][at].Count += e.Count
		} else {
			codes[e.Class] = append(codes[e.Class], e)
		}
	}
	slices.SortStableFunc(classes, func(a, b string) int { return cmp.Compare(totals[b], totals[a]) })
	var parts []string
	for _, class := range classes {
		list := codes[class]
		slices.SortStableFunc(list, func(a, b ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
		var texts []string
		for _, e := range list[:min(len(list), mostCodes)] {
			texts = append(texts, clean(cmp.Or(e.Code, "no code")))
			if len(list) > 1 {
				texts[len(texts)-1] += ": " + Group(e.Count)
			}
		}
		if len(list) > mostCodes {
			texts = append(texts, "…")
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", Group(totals[class]), clean(errorClass(class)), strings.Join(texts, ", ")))
	}
	return joined(parts...)
}

// errorClass names a class of errors for people; see db.Class.
func errorClass(name string) string {
	return cmp.Or(map[string]string{
		"aborted":     "tries aborted",
		"unavailable": "tries without a server",
		"unknown":     "tries with an unknown outcome",
		"constraint":  "tries refused by a constraint",
	}[name], name)
}

// countsText explains why the counts of a report differ. The measurements count the measured time,
// and the checks count the recording. It is empty if the counts do not differ or are not known.
func (d *Drive) countsText() string {
	var parts []string
	if w := d.Writes; w != nil && *w != d.Committed {
		parts = append(parts, fmt.Sprintf("%s committed: %s acknowledged writes and %s that only read",
			Group(d.Committed), Group(*w), Group(d.Committed-min(*w, d.Committed))))
	}
	if c := d.Recorded; c != nil && c.Committed+c.Background != d.Committed {
		var with []string
		if early := c.Committed - min(d.Committed, c.Committed); early > 0 {
			with = append(with, fmt.Sprintf("%s of the warm-up", Group(early)))
		}
		if c.Background > 0 {
			with = append(with, Counted(c.Background, "audit"))
		}
		text := fmt.Sprintf("the recording has %s, with %s", Group(c.Committed+c.Background), strings.Join(with, " and "))
		if d.Writes != nil && c.Writes != *d.Writes {
			text += fmt.Sprintf(" (%s writes)", Group(c.Writes))
		}
		parts = append(parts, text)
	}
	return joined(parts...)
}

// text returns how the end state resolved transactions in doubt; empty if there were none.
func (r *Resolved) text() string {
	if r == nil || r.Unknown == 0 {
		return ""
	}
	text := fmt.Sprintf("%s unknown during the run: %s applied, %s not", Group(r.Unknown), Group(r.Applied), Group(r.NotApplied))
	if open := r.Unknown - min(r.Unknown, r.Applied+r.NotApplied); open > 0 {
		text += fmt.Sprintf(", %s still unknown", Group(open))
	}
	return text + ", by the " + clean(cmp.Or(r.By, "end state"))
}

// present returns the settings that have a value.
func present(list ...Setting) []Setting {
	return slices.DeleteFunc(list, func(s Setting) bool { return s.Value == "" })
}
