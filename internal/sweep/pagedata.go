package sweep

import (
	"cmp"
	"fmt"
	"io"
	"math"
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
		Tables: b.Environment.Table(b.Stroppy), Plain: b.Scenario, In: report.InPage})
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
	var parts []string
	for _, v := range spec.Values {
		parts = append(parts, label(spec.Axis, v))
	}
	if len(parts) == 0 {
		for _, p := range merge(shown(b.Points, spec.Axis)) {
			parts = append(parts, label(spec.Axis, p.Value))
		}
	}
	unit := map[Axis]string{Rate: "rate: %s transactions a second", Clients: "clients: %s", Nodes: "nodes of the cluster: %s"}[spec.Axis]
	return fmt.Sprintf(unit, report.OrNotKnown(strings.Join(parts, ", ")))
}
