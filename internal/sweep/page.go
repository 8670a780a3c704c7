package sweep

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// PageName is the page's name in the directory of the sweep.
const PageName = "sweep.html"

// SavePage puts the page of the sweep into the directory of the options at once. again is the command that
// repeats the sweep, or continues an unfinished one.
func SavePage(b *Book, o report.Options, again string) error {
	d, err := NewDocument(b, cmp.Or(o.Quoted, o.Dir), again)
	if err != nil {
		return err
	}
	return d.SavePage(o.Dir, PageName)
}

// Text writes the sweep in the directory of the options for people.
func Text(w io.Writer, b *Book, o report.Options) error {
	d, err := NewDocument(b, cmp.Or(o.Quoted, o.Dir), "")
	if err != nil {
		return err
	}
	d.AddFiles(o, string(Steps)+" and "+PageName+"; a folder with its own report for each step", b.Finished)
	return d.WriteText(w, o.All())
}

// Charts are the data of the charts of a sweep.
type Charts struct {
	Axis     Axis        `json:"axis"`
	Steps    []ChartStep `json:"steps"`    // ascending; the maximum rate is last
	Knee     *Mark       `json:"knee"`     // null if none was found
	Law      *LawCurve   `json:"law"`      // null if it was not fitted
	Repeated bool        `json:"repeated"` // a step was measured more than once: low and high are the range of its throughputs
}

// ChartStep is one value of the axis in the charts. If it was measured more than once, it has the medians.
type ChartStep struct {
	Point
	Full bool `json:"full"` // the maximum rate
	Kept bool `json:"kept"` // its rate, if it has one, as far as is known
}

// Mark is a labelled place in a chart.
type Mark struct {
	N     float64 `json:"n"` // of the axis
	TPS   float64 `json:"tps"`
	Label string  `json:"label"`
}

// LawCurve is the fitted scalability law as a curve.
type LawCurve struct {
	Lambda float64      `json:"lambda"` // the ideal is this times N: the measured throughput of one, else the fitted
	Most   float64      `json:"most"`   // the largest N that was measured
	Curve  [][2]float64 `json:"curve"`  // N and throughput, ascending
	Peak   *Mark        `json:"peak"`   // null if there is none on the chart
}

// NewDocument returns the document of a sweep. dir is its directory, as a command takes it, and
// again the command that repeats the sweep.
func NewDocument(b *Book, dir, again string) (*report.Document, error) {
	spec, err := Parse(b.Over)
	if err != nil {
		return nil, err
	}
	points := shown(b.Points, spec.Axis)
	d := report.NewDocument(b.Workload, b.Database, b.StartedAt, b.Stroppy)
	d.Foot += " The sweep's directory holds the same as data: sweep.json, and a folder for each step."
	d.Subject = fmt.Sprintf("%s on %s, over %s; seed %d", b.Workload, report.OrNotKnown(b.Database), b.Over, b.Seed)
	d.Notes, d.Objectives = notes(spec.Axis, points), objectivesOf(points)
	verdict, reason := report.CombinedVerdict("step", points, func(p Point) (name, verdict string) { return step(spec.Axis, p.Value), p.Verdict })
	if len(points) == 0 {
		verdict, reason = "unknown", "No step was run."
	}
	d.Judge(verdict, reason, fmt.Sprintf("sweep of %s over %s", report.OrNotKnown(b.Workload), spec.Axis))
	if !b.Finished {
		d.CutOff(NotFinished)
	}
	s := summarize(spec.Axis, points)
	d.Add(report.Section{ID: "failed", Title: "What is wrong", Checks: failed(spec.Axis, points, dir)})
	d.Add(report.Section{ID: "figures", Title: "Measurements", Figures: s.figures, In: report.InPage})
	curve := report.Section{ID: "curve", Title: "Scalability", Text: s.Findings, Tables: s.tables}
	if len(s.charts.Steps) > 0 {
		curve.Chart = &report.Chart{Kind: "size", Data: s.charts}
	}
	if spec.Axis == Rate {
		curve.Title = "Throughput and latency"
		if curve.Chart != nil {
			curve.Chart.Kind = "rate"
		}
	}
	d.Add(curve)
	if spec.Axis != Rate && curve.Chart != nil {
		d.Add(report.Section{ID: "latency", Title: "Latency", Chart: &report.Chart{Kind: "sizes"}, In: report.InPage,
			Note: "Committed transactions, from the intended start time, on a logarithmic scale."})
	}
	d.Add(report.Section{ID: "steps", Title: "Steps", Tables: []report.DataTable{s.steps}})
	d.Add(report.Section{ID: "what", Title: "What was swept", Facts: facts(b, spec), Command: again, In: report.InPage})
	d.Add(report.Section{ID: "again", Title: "To make it again", Command: b.Command, In: report.InMarkdown})
	d.Add(report.Section{ID: "details", Title: "Configuration", Folded: "Show the settings that all steps share, and the machine",
		Tables: []report.DataTable{b.Environment.Table(b.Stroppy)}, Plain: b.Scenario, In: report.InPage})
	return d, nil
}

// summary is the result of all steps together.
type summary struct {
	Conclusions
	charts  *Charts
	figures []report.Figure
	tables  []report.DataTable // of the curve
	steps   report.DataTable
}

func summarize(axis Axis, points []Point) *summary {
	s := &summary{charts: &Charts{Axis: axis, Steps: []ChartStep{}, Repeated: repeated(points)}}
	for _, p := range merge(points) {
		s.charts.Steps = append(s.charts.Steps, ChartStep{
			Point: p, Full: axis == Rate && p.Value == 0, Kept: axis != Rate || p.Value > 0 && !p.behind(),
		})
	}
	s.tables = []report.DataTable{spreadTable(axis, points)}
	if axis == Rate {
		s.ofRate(points)
	} else {
		s.ofSize(axis, points)
	}
	return s
}

// shown returns the steps as the page has them: in the order of the axis, with the maximum rate last. A
// latency that is not above 0 is not known. An interval has two ends or none.
func shown(points []Point, axis Axis) []Point {
	offered := func(p Point) float64 {
		if axis == Rate && p.Value == 0 {
			return math.Inf(1)
		}
		return p.Value
	}
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(x, y Point) int { return cmp.Compare(offered(x), offered(y)) })
	for i := range points {
		p := &points[i]
		if p.Low == nil || p.High == nil {
			p.Low, p.High = nil, nil
		}
		for _, ms := range []**float64{&p.P50MS, &p.P99MS, &p.P999MS, &p.MaxMS} {
			if !above(*ms) {
				*ms = nil
			}
		}
	}
	return points
}

// ofRate adds the results of a sweep over the rate.
func (s *summary) ofRate(points []Point) {
	k := knee(points)
	s.Findings = []string{report.Sentence(k.Detail)}
	s.figures = rateFigures(points, k)
	s.steps = stepTable(Rate, points, nil)
	once := merge(points)
	if at := slices.IndexFunc(once, func(p Point) bool { return p.Value == k.Step.Offered }); k.Found && at >= 0 && once[at].TPS != nil {
		s.charts.Knee = &Mark{N: k.Step.Offered, TPS: *once[at].TPS, Label: "knee: " + report.RateText(k.Step.Offered) + "/s"}
		s.Knee = &AtKnee{Rate: k.Step.Offered, P99MS: digits(k.Step.Latency), Samples: k.Step.Samples}
	}
}

// ofSize adds the results of a sweep over clients or nodes.
func (s *summary) ofSize(axis Axis, points []Point) {
	known := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.TPS == nil })
	fit, err := scaling(axis, known)
	s.figures = sizeFigures(axis, known, fit)
	s.steps = stepTable(axis, points, efficiencies(merge(points)))
	if err != nil {
		s.Findings = []string{"No peak is claimed: the scalability law was not fitted: " + strings.TrimPrefix(err.Error(), "fit the scalability law: ") + "."}
		return
	}
	s.Findings = []string{report.Sentence(fit.Detail)}
	if fit.Sound {
		s.tables = append(s.tables, lawTable(fit))
		s.charts.Law = law(known, fit)
		s.Law = fitted(fit)
	}
}

// fitted returns the law for the file of the sweep.
func fitted(fit stats.Scaling) *Fitted {
	claimed := func(x float64) *float64 {
		if x == 0 {
			return nil
		}
		return new(digits(x))
	}
	coefficient := func(i stats.Interval) Coefficient {
		c := Coefficient{Value: digits(i.Value)}
		if i.Known() {
			c.Low, c.High = new(digits(i.Low)), new(digits(i.High))
		}
		return c
	}
	return &Fitted{
		Lambda: coefficient(fit.Lambda), Sigma: coefficient(fit.Sigma), Kappa: coefficient(fit.Kappa), R2: digits(fit.R2),
		PeakN: claimed(fit.PeakN), PeakTPS: claimed(fit.PeakX), Limit: claimed(fit.Limit),
	}
}

// The curve goes on beyond what was measured by this much, or to the peak where
// that is not much farther.
const (
	beyondMeasured = 1.25
	beyondPeak     = 1.15
	farthest       = 3
	curvePoints    = 120
)

func law(points []Point, fit stats.Scaling) *LawCurve {
	least, most := points[0].Value, points[len(points)-1].Value
	end := beyondMeasured * most
	if fit.PeakN*beyondPeak <= farthest*most {
		end = max(end, fit.PeakN*beyondPeak)
	}
	l := &LawCurve{Lambda: fit.Lambda.Value, Most: most, Curve: [][2]float64{}}
	if one := merge(points)[0]; one.Value == 1 {
		l.Lambda = *one.TPS
	}
	for i := range curvePoints + 1 {
		n := least + (end-least)*float64(i)/curvePoints
		if x := fit.At(n); !math.IsNaN(x) && !math.IsInf(x, 0) {
			l.Curve = append(l.Curve, [2]float64{digits(n), digits(x)})
		}
	}
	if fit.PeakN > 0 && fit.PeakN <= end {
		label := fmt.Sprintf("peak at %.3g: %s/s", fit.PeakN, report.RateText(fit.PeakX))
		if fit.Extrapolated {
			label += ", predicted"
		}
		l.Peak = &Mark{N: digits(fit.PeakN), TPS: digits(fit.PeakX), Label: label}
	}
	return l
}

// digits keeps five digits of a number, which is finer than any screen.
func digits(x float64) float64 { return report.Rounded(x, 5) }

// NotFinished is the sentence about a sweep that is not finished.
const NotFinished = report.NotFinished

// facts describes the sweep.
func facts(b *Book, spec Spec) []report.Setting {
	done := report.Counted(uint64(len(b.Points)), "step") + " done"
	if b.Repeat > 1 {
		done += fmt.Sprintf(", each value %d times", b.Repeat)
	}
	if !b.Finished {
		done += ", not finished"
	}
	return []report.Setting{
		{Name: "Workload", Value: report.OrNotKnown(b.Workload)},
		{Name: "Database", Value: report.OrNotKnown(b.Database)},
		{Name: "Swept", Value: swept(b, spec)},
		{Name: "Steps", Value: done + "; each is a whole run with a report of its own"},
		{Name: "Seed", Value: report.SeedText(b.Seed)},
		{Name: "Started", Value: report.StartText(b.StartedAt)},
		{Name: "Machine", Value: report.OrNotKnown(b.Environment.Text(b.Machine))},
	}
}

func swept(b *Book, spec Spec) string {
	if spec.Axis == Rate && len(spec.Values) == 0 {
		return "the rate by its profile: the maximum rate, then steps down by tenths of it, below 70 % by half, refined near the knee, whose two sides are repeated"
	}
	values := spec.Values
	if len(values) == 0 {
		for _, p := range merge(shown(b.Points, spec.Axis)) {
			values = append(values, p.Value)
		}
	}
	parts := report.Texts(values, func(v float64) string { return label(spec.Axis, v) })
	unit := map[Axis]string{Rate: "rate: %s transactions a second", Clients: "clients: %s", Nodes: "nodes of the cluster: %s"}[spec.Axis]
	return fmt.Sprintf(unit, report.OrNotKnown(strings.Join(parts, ", ")))
}

func label(axis Axis, value float64) string {
	return report.DecimalText(ValueName(axis, value))
}

func step(axis Axis, value float64) string {
	if axis == Rate && value == 0 {
		return "maximum rate"
	}
	return string(axis) + " " + label(axis, value)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func knee(points []Point) stats.Knee {
	var steps []stats.Step
	for _, p := range points {
		step := stats.Step{Offered: p.Value, Kept: p.Kept(), Samples: p.Samples}
		switch {
		case above(p.P99MS):
			step.Latency = *p.P99MS
		case p.behind():
			step.Latency = math.Inf(1) // nothing that was due was done
		}
		steps = append(steps, step)
	}
	return stats.FindKnee(steps)
}

// scaling fits the scalability law to steps whose throughput is known. A step without a commit belongs to the
// curve too, but no curve of that shape goes through it.
func scaling(axis Axis, points []Point) (stats.Scaling, error) {
	var sizes []stats.Size
	for _, p := range points {
		if !above(p.TPS) {
			return stats.Scaling{}, fmt.Errorf("at %s no transaction was committed, and no curve of this form has such a point", label(axis, p.Value))
		}
		sizes = append(sizes, stats.Size{N: p.Value, X: *p.TPS})
	}
	return stats.FitScaling(string(axis), sizes)
}

// remarks lists the warnings and notes of a step. note is a sentence about all such steps, and short a remark beside
// the verdict of one.
var remarks = []struct {
	is          func(axis Axis, p *Point) bool
	note, short string
}{
	{is: func(_ Axis, p *Point) bool { return p.Verdict == "invalid" },
		note: "Invalid: %s. The database broke its promise there, so those measurements, and the conclusions from all steps, " +
			"say nothing about its speed."},
	{is: func(_ Axis, p *Point) bool { return p.Verdict != "valid" && p.Verdict != "invalid" },
		note: "Not decided: %s. Whether the database kept its promise there is unknown."},
	{is: func(_ Axis, p *Point) bool { return p.Objectives == report.ObjectiveMissed },
		note: "Objectives missed: %s.", short: "objectives missed"},
	{is: func(_ Axis, p *Point) bool { return p.Objectives == report.ObjectiveUnknown },
		note: "Objectives that could not be decided: %s.", short: "objectives not decided"},
	{is: func(_ Axis, p *Point) bool { return p.Unsteady }, short: "unsteady",
		note: "No steady state: %s. The measurements of these steps depend on when they ended."},
	{is: func(_ Axis, p *Point) bool { return p.Starved }, short: "host starved",
		note: "The host was starved: %s. Other programs, the hypervisor or a CPU limit took processors that these steps needed, " +
			"so the database may be faster than measured."},
	{is: func(_ Axis, p *Point) bool { return p.TPS == nil },
		note: "No time was measured: %s. The throughput there is not known, as where the work ends within the warm-up."},
	{is: func(_ Axis, p *Point) bool { return p.TPS != nil && !above(p.TPS) },
		note: "Nothing was committed in what was measured: %s."},
	{is: func(axis Axis, p *Point) bool { return axis == Rate && p.behind() }, short: "rate not kept",
		note: "The database did not keep up: %s. The latencies there depend on the length of the step, because work piled up."},
}

// shortRemarks returns the remarks beside the verdict of a step.
func shortRemarks(axis Axis, p *Point) (list []string) {
	for _, r := range remarks {
		if r.short != "" && r.is(axis, p) {
			list = append(list, r.short)
		}
	}
	return list
}

// notes returns the facts that a reader must know before the measurements.
func notes(axis Axis, points []Point) []report.Note {
	n := &report.Notes{}
	for i, r := range remarks {
		are := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !r.is(axis, &p) })
		var steps []string
		for _, p := range merge(are) {
			name := step(axis, p.Value)
			if all := count(points, p.Value); all > 1 {
				name += fmt.Sprintf(" (%d of %d times)", count(are, p.Value), all)
			}
			steps = append(steps, name)
		}
		if len(steps) == 0 {
			continue
		}
		add, example := n.Warn, ""
		if i == len(remarks)-1 { // the rate was too high, which says nothing against the measurements of other steps
			add = n.Note
		}
		for _, p := range are {
			if _, text, _ := strings.Cut(p.ObjectivesText, ": "); text != "" && strings.HasPrefix(r.short, "objectives") {
				example = fmt.Sprintf(" At %s: %s.", step(axis, p.Value), text)
				break
			}
		}
		add("%s", strings.Replace(r.note, "%s", strings.Join(steps, ", "), 1)+example)
	}
	return n.All()
}

func rateFigures(points []Point, k stats.Knee) (all []report.Figure) {
	full, kept := report.NewFigure("Maximum rate", report.NotKnown, ""), report.NewFigure("Highest rate kept", report.NotKnown, "")
	if k.Found {
		all = append(all, report.NewFigure("Knee", report.RateText(k.Step.Offered), "/s", "99 % latency there "+report.LatencyText(k.Step.Latency)+" ms",
			"at low rates "+report.LatencyText(k.Flat)+" ms"))
	}
	for _, p := range merge(points) {
		switch {
		case p.Value == 0:
			full = report.NewFigure(full.Name, rateText(p.TPS), "/s", append(seconds(p.Median, "median "), append(seconds(p.Best, "best second "), "99 % latency "+latencyText(p.P99MS))...)...)
		case p.Kept(): // ascending, so that the last one stays
			kept = report.NewFigure(kept.Name, report.RateText(p.Value), "/s", "99 % latency "+latencyText(p.P99MS), "99.9 % "+latencyText(p.P999MS))
		}
	}
	return append(all, full, kept)
}

// sizeFigures returns the figures of steps whose throughput is known. A repeated step has its medians, so
// that no lucky measurement counts. Values that the fit does not show are left out.
func sizeFigures(axis Axis, points []Point, fit stats.Scaling) []report.Figure {
	best, highest := report.NewFigure("Highest throughput", report.NotKnown, ""), 0.0
	with := func(p Point) string {
		return "with " + report.Counted(uint64(p.Value), strings.TrimSuffix(string(axis), "s"))
	}
	once := merge(points)
	for _, p := range once {
		if *p.TPS > highest {
			highest = *p.TPS
			best = report.NewFigure(best.Name, report.RateText(highest), "/s", append([]string{with(p)}, around(points, p)...)...)
		}
	}
	all := []report.Figure{best}
	switch {
	case fit.PeakN > 0:
		peak := report.NewFigure("Peak of the fitted model", fmt.Sprintf("%.3g", fit.PeakN), string(axis), report.RateText(fit.PeakX)+" /s")
		if fit.Extrapolated {
			peak.Below = append(peak.Below, "a prediction beyond what was measured")
		}
		all = append(all, peak)
	case fit.Limit > 0:
		all = append(all, report.NewFigure("Limit of the fitted model", report.RateText(fit.Limit), "/s", "no peak up to "+label(axis, points[len(points)-1].Value)+" "+string(axis)))
	}
	if shares := efficiencies(once); len(once) > 1 && shares != nil {
		last := len(once) - 1
		all = append(all, report.NewFigure("Efficiency", percent(shares[once[last].Value]), "", with(once[last]), "of "+label(axis, once[last].Value)+" times what was measured with 1"))
	}
	if fit.Sound {
		all = append(all, report.NewFigure("R²", fmt.Sprintf("%.4f", fit.R2), "", "residual standard error "+report.RateText(fit.ResidualError)+" /s"))
	}
	return all
}

// around returns the range of a step's measurements, or the interval of its throughput.
func around(points []Point, p Point) (below []string) {
	if n := count(points, p.Value); n > 1 {
		return []string{fmt.Sprintf("median of %d, from %s to %s", n, rateText(p.Low), rateText(p.High))}
	}
	if p.Low != nil {
		below = append(below, "95 % interval "+pageInterval(p))
	}
	return append(below, seconds(p.Best, "best second ")...)
}

// efficiencies returns X/(N·X(1)) of each value N whose throughput X is known; nil if X(1) is not known or nothing.
func efficiencies(once []Point) map[float64]float64 {
	i := slices.IndexFunc(once, func(p Point) bool { return p.Value == 1 })
	if i < 0 || !above(once[i].TPS) {
		return nil
	}
	by := map[float64]float64{}
	for _, p := range once {
		if p.TPS != nil {
			by[p.Value] = *p.TPS / (p.Value * *once[i].TPS)
		}
	}
	return by
}

// spreadTable returns the range of the steps that were measured again.
func spreadTable(axis Axis, points []Point) report.DataTable {
	t := report.NewTable("Steps that were measured more than once", "Medians, and the least and the most of the measurements; the 99 % latency in milliseconds.",
		[]int{}, stepName(axis), "measured", "TPS", "from", "to", "99 %", "from", "to")
	for _, p := range merge(points) {
		same := at(points, p.Value)
		if len(same) < 2 {
			continue
		}
		least, most := spread(same, func(p *Point) *float64 { return p.P99MS })
		t.Add(label(axis, p.Value), fmt.Sprint(len(same)), rateText(p.TPS), rateText(p.Low), rateText(p.High),
			report.Perhaps(p.P99MS, report.LatencyText), report.Perhaps(least, report.LatencyText), report.Perhaps(most, report.LatencyText))
	}
	return t
}

func stepName(axis Axis) string {
	return map[Axis]string{Rate: "rate asked", Clients: "clients", Nodes: "nodes"}[axis]
}

// lawTable returns the scalability law with its coefficients.
func lawTable(fit stats.Scaling) report.DataTable {
	note := fmt.Sprintf("Fitted by least squares. R² %.4f, residual standard error %s a second. N. J. Gunther, Guerrilla Capacity Planning, Springer 2007.", fit.R2, report.RateText(fit.ResidualError))
	t := report.NewTable("Universal Scalability Law: X(N) = λN / (1 + σ(N−1) + κN(N−1))", note, []int{0, 4}, "", "value", "95 % from", "to", "meaning")
	row := func(name, meaning string, i stats.Interval) {
		low, high := report.NotKnown, report.NotKnown
		if i.Known() {
			low, high = fmt.Sprintf("%.4g", i.Low), fmt.Sprintf("%.4g", i.High)
		}
		t.Add(name, fmt.Sprintf("%.4g", i.Value), low, high, meaning)
	}
	row("λ", "throughput of one, a second", fit.Lambda)
	row("σ", "contention: the part that waits for what is shared", fit.Sigma)
	row("κ", "coherence: what it costs each pair to agree", fit.Kappa)
	return t
}

// stepTable has a row for each step, which leads to its report. efficiency is by value; nil: there is none. A
// column for which every step is too short is left out.
func stepTable(axis Axis, points []Point, efficiency map[float64]float64) report.DataTable {
	t := report.NewTable("", "Latencies (50 % to max) in milliseconds, from the intended start time.", []int{1})
	t.Spare = []string{"best second", "median", "50 %", "max", "99.9 %"}
	intervals := slices.ContainsFunc(points, func(p Point) bool { return p.Low != nil })
	whole := slices.ContainsFunc(points, func(p Point) bool { return p.Median != nil || p.Best != nil }) // seconds
	if whole && slices.ContainsFunc(points, func(p Point) bool { return p.TPS != nil && p.Median == nil }) {
		t.Note += " A step of fewer than two whole seconds has no median and no best second."
	}
	for _, p := range points {
		t.Rows = append(t.Rows, report.Row{Page: report.PageBeside(p.Dir), Mark: rowMark(axis, p)})
	}
	latency := func(ms *float64) string { return report.Perhaps(ms, report.LatencyText) }
	for _, c := range []struct {
		name  string
		shown bool
		cell  func(p Point) string
	}{
		{stepName(axis), true, func(p Point) string { return label(axis, p.Value) }},
		{"verdict", true, func(p Point) string { return verdictText(axis, p) }},
		{"TPS", true, func(p Point) string { return rateText(p.TPS) }},
		{"95 % interval", intervals, pageInterval},
		{"median", whole, func(p Point) string { return secondsText(p, p.Median) }},
		{"best second", whole, func(p Point) string { return secondsText(p, p.Best) }},
		{"efficiency", efficiency != nil, func(p Point) string {
			if share, known := efficiency[p.Value]; known {
				return percent(share)
			}
			return "–"
		}},
		{"50 %", true, func(p Point) string { return latency(p.P50MS) }},
		{"99 %", true, func(p Point) string { return latency(p.P99MS) }},
		{"99.9 %", true, func(p Point) string { return latency(p.P999MS) }},
		{"max", true, func(p Point) string { return latency(p.MaxMS) }},
		{"not sent", axis == Rate, func(p Point) string { return report.RateText(float64(p.Backlog)) }},
	} {
		if !c.shown {
			continue
		}
		t.Columns = append(t.Columns, c.name)
		for i, p := range points {
			t.Rows[i].Cells = append(t.Rows[i].Cells, c.cell(p))
		}
	}
	return t
}

func rowMark(axis Axis, p Point) string {
	if p.Verdict == "valid" && len(shortRemarks(axis, &p)) > 0 {
		return "warning"
	}
	return report.VerdictMark(p.Verdict)
}

func verdictText(axis Axis, p Point) string {
	text := report.OrNotKnown(p.Verdict)
	if p.Verdict == "invalid" {
		text = "INVALID"
	}
	return strings.Join(append([]string{text}, shortRemarks(axis, &p)...), ", ")
}

func pageInterval(p Point) string {
	if p.Low == nil {
		return report.NotKnown
	}
	return report.RateText(*p.Low) + " to " + report.RateText(*p.High)
}

// seconds names a figure of single seconds. A short step has none.
func seconds(rate *float64, name string) []string {
	if rate == nil {
		return nil
	}
	return []string{name + report.RateText(*rate)}
}

// secondsText returns such a figure for the table, and a dash if the step was too short for it.
func secondsText(p Point, rate *float64) string {
	if p.TPS != nil && rate == nil {
		return "–"
	}
	return rateText(rate)
}

func rateText(rate *float64) string { return report.Perhaps(rate, report.RateText) }

func latencyText(ms *float64) string {
	return report.Perhaps(ms, func(ms float64) string { return report.LatencyText(ms) + " ms" })
}

// folder is the name of a step's folder as a command takes it without quotes.
var folder = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// failed returns the first invalid steps of the sweep in a directory, and counts the others.
func failed(axis Axis, points []Point, dir string) []report.Item {
	points = slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.Verdict != "invalid" })
	return report.ViolatedRuns("step", points, func(p Point) report.Item { return failedStep(axis, p, dir) })
}

func failedStep(axis Axis, p Point, dir string) report.Item {
	c := report.Violated(step(axis, p.Value), "See the report of the step for the findings.", report.PageBeside(p.Dir))
	first := &c.Findings[0]
	if dir != "" && c.Page != "" && folder.MatchString(p.Dir) {
		c.Command = "stroppy report " + filepath.Join(dir, p.Dir)
	}
	var others []string
	for i, v := range p.Violations {
		switch {
		case i > 0 && v.Found > 0:
			others = append(others, fmt.Sprintf("%s (%s)", v.Check, report.Group(v.Found)))
		case i > 0:
			others = append(others, v.Check)
		default:
			c.Name += ": " + v.Check
			if first.Text = v.Detail; v.Found > 1 {
				first.Note = report.Group(v.Found) + " such violations were found. "
			}
		}
		if len(c.Witness) == 0 && len(v.Witness) > 0 {
			c.WitnessOf, c.Witness = v.Check, append(c.Witness, v.Witness...)
		}
	}
	if len(others) > 0 {
		first.Note += "Checks that found other violations: " + strings.Join(others, ", ") + "."
	}
	first.Note = strings.TrimSpace(first.Note)
	c.Detail = strings.TrimSpace(first.Text + " " + first.Note)
	if len(c.Witness) > 0 {
		c.Detail += " Transactions (" + c.WitnessOf + "): " + strings.Join(c.Witness, ", ")
	}
	return c
}
