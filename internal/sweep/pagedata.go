package sweep

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// PageName is the page's name in the directory of the sweep.
const PageName = "sweep.html"

// Page writes the sweep in the directory of the options as one HTML file that needs nothing
// else. again is the command that repeats it, or goes on with one that is not
// finished.
func Page(w io.Writer, b *Book, o report.Options, again string) error {
	o = report.Options{Dir: o.Dir, Quoted: o.Quoted} // a page is no terminal
	data, err := NewPageData(b, cmp.Or(o.Quoted, o.Dir), again)
	if err != nil {
		return err
	}
	sheet := report.Sheet{Title: data.Title, Data: data, Scripts: []string{"sweepcharts.js", "sweep.js"}}
	return sheet.Write(w, func(w io.Writer) error { return Text(w, b, o) })
}

// SavePage makes the page in the sweep's directory, and puts it in place at once.
func SavePage(b *Book, o report.Options, again string) error {
	if err := report.WriteFile(o.Dir, PageName, func(w io.Writer) error { return Page(w, b, o, again) }); err != nil {
		return fmt.Errorf("make the page of the sweep in %s: %w", o.Dir, err)
	}
	return nil
}

// PageData is what the page of a sweep shows. The verdict is that of all steps, and
// unfinished where there are more to come.
type PageData struct {
	report.Head
	Failed       []PageFailed       `json:"failed"`            // the first invalid steps
	FailedMore   string             `json:"failed_more"`       // how many more there are; empty: none
	Objectives   string             `json:"objectives_status"` // of all steps, as of a run
	Axis         Axis               `json:"axis"`
	Steps        []PageStep         `json:"steps"` // ascending; the maximum rate is last
	Knee         *PageKnee          `json:"knee"`  // null where none was found
	Law          *PageLaw           `json:"law"`   // null where it was not fitted
	Findings     []string           `json:"findings"`
	Coefficients []report.PageTable `json:"coefficients"`
	Table        report.PageTable   `json:"table"`
	Settings     string             `json:"settings"` // of every step
	Environment  []report.PageTable `json:"environment"`
	Repeated     bool               `json:"repeated"` // a step was measured more than once: low and high are the range of its throughputs

	conclusions *Conclusions
}

// PageFailed is what was found first in an invalid step.
type PageFailed struct {
	Step  string `json:"step"`
	Check string `json:"check"`
	Text  string `json:"text"`
	More  string `json:"more"` // what else was found; empty: nothing

	WitnessOf string   `json:"witness_of"` // the check whose violation the transactions show
	Witness   []string `json:"witness"`
	Page      string   `json:"page"`    // the step's, beside this one; empty: none
	Command   string   `json:"command"` // shows the step's report; empty: it is not known
}

// PageStep is one value of the axis in the charts: where it was measured more than once,
// the medians. What is not known is null.
type PageStep struct {
	Value   float64  `json:"value"`
	Label   string   `json:"label"`
	Verdict string   `json:"verdict"`
	Full    bool     `json:"full"` // the maximum rate
	Kept    bool     `json:"kept"` // its rate, where it had one, as far as is known
	TPS     *float64 `json:"tps"`
	Low     *float64 `json:"low"`
	High    *float64 `json:"high"`
	P50     *float64 `json:"p50_ms"`
	P99     *float64 `json:"p99_ms"`
	P999    *float64 `json:"p999_ms"`
	Max     *float64 `json:"max_ms"`
}

// PageKnee is where the throughput-latency curve bends.
type PageKnee struct {
	TPS   float64 `json:"tps"`
	P99   float64 `json:"p99_ms"`
	Label string  `json:"label"`
}

// PageLaw is the fitted scalability law as a curve.
type PageLaw struct {
	Lambda float64      `json:"lambda"` // the ideal is this times N: the measured throughput of one, else the fitted
	Most   float64      `json:"most"`   // the largest N that was measured
	Curve  [][2]float64 `json:"curve"`  // N and throughput, ascending
	Peak   *PagePeak    `json:"peak"`   // null where there is none on the chart
}

// PagePeak is the highest place of the curve.
type PagePeak struct {
	N     float64 `json:"n"`
	TPS   float64 `json:"tps"`
	Label string  `json:"label"`
}

// NewPageData puts a sweep into the form of the page; see Page. dir is its directory, as a
// command takes it.
func NewPageData(b *Book, dir, again string) (*PageData, error) {
	spec, err := Parse(b.Over)
	if err != nil {
		return nil, err
	}
	points := shown(b.Points, spec.Axis)
	d := &PageData{
		Head: report.NewHead(b.Workload, b.Database, b.StartedAt, again, b.Stroppy),
		Axis: spec.Axis, Steps: []PageStep{}, Findings: []string{}, Coefficients: []report.PageTable{}, Settings: b.Scenario,
		Environment: append([]report.PageTable{}, b.Environment.Table(b.Stroppy)...), Objectives: objectivesOf(points),
	}
	d.Failed, d.FailedMore = failed(spec.Axis, points, dir)
	d.Notes, d.Facts = notes(spec.Axis, points), facts(b, spec)
	d.Verdict, d.Reason = verdict(b, spec.Axis, points)
	d.Title = fmt.Sprintf("%s: sweep of %s over %s", report.Capital(d.Verdict), report.OrNotKnown(b.Workload), spec.Axis)
	d.Repeated = repeated(points)
	for _, p := range merge(points) {
		d.Steps = append(d.Steps, PageStep{
			Value: p.Value, Label: label(spec.Axis, p.Value), Verdict: p.Verdict, TPS: p.TPS, Low: p.Low, High: p.High,
			P50: p.P50MS, P99: p.P99MS, P999: p.P999MS, Max: p.MaxMS,
			Full: spec.Axis == Rate && p.Value == 0, Kept: spec.Axis != Rate || p.Value > 0 && !p.behind(),
		})
	}
	if d.Repeated {
		d.Coefficients = append(d.Coefficients, spreadTable(spec.Axis, points))
	}
	d.conclusions = &Conclusions{}
	if spec.Axis == Rate {
		d.ofRate(points)
	} else {
		d.ofSize(spec.Axis, points)
	}
	d.conclusions.Findings = d.Findings
	return d, nil
}

// shown are the steps as the page has them: in the order of the axis, the maximum rate last,
// a latency that is not above 0 not known, and an interval of two ends or none.
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

// ofRate adds what a sweep over the rate reports.
func (d *PageData) ofRate(points []Point) {
	k := knee(points)
	d.Findings = append(d.Findings, report.Sentence(k.Detail))
	d.Figures = rateFigures(points, k)
	d.Table = stepTable(Rate, points, nil)
	once := merge(points)
	if at := slices.IndexFunc(once, func(p Point) bool { return p.Value == k.Step.Offered }); k.Found && at >= 0 && once[at].TPS != nil {
		d.Knee = &PageKnee{TPS: *once[at].TPS, P99: k.Step.Latency, Label: "knee: " + report.RateText(k.Step.Offered) + "/s"}
		d.conclusions.Knee = &AtKnee{Rate: k.Step.Offered, P99MS: digits(k.Step.Latency), Samples: k.Step.Samples}
	}
}

// ofSize adds what a sweep over clients or nodes reports.
func (d *PageData) ofSize(axis Axis, points []Point) {
	known := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.TPS == nil })
	fit, err := scaling(axis, known)
	d.Figures = sizeFigures(axis, known, fit)
	d.Table = stepTable(axis, points, byValue(points, merge(points)))
	if err != nil {
		d.Findings = append(d.Findings, "No peak is claimed: the scalability law was not fitted: "+strings.TrimPrefix(err.Error(), "fit the scalability law: ")+".")
		return
	}
	d.Findings = append(d.Findings, report.Sentence(fit.Detail))
	if fit.Sound {
		d.Coefficients = append(d.Coefficients, lawTable(fit))
		d.Law = law(known, fit)
		d.conclusions.Law = fitted(fit)
	}
}

// fitted is the law as the sweep's file has it.
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

func law(points []Point, fit stats.Scaling) *PageLaw {
	least, most := points[0].Value, points[len(points)-1].Value
	end := beyondMeasured * most
	if fit.PeakN*beyondPeak <= farthest*most {
		end = max(end, fit.PeakN*beyondPeak)
	}
	l := &PageLaw{Lambda: fit.Lambda.Value, Most: most, Curve: [][2]float64{}}
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
		l.Peak = &PagePeak{N: digits(fit.PeakN), TPS: digits(fit.PeakX), Label: label}
	}
	return l
}

// digits keeps five of a number, which is finer than any screen.
func digits(x float64) float64 { return report.Rounded(x, 5) }

// NotFinished is what is said of a sweep that is not.
const NotFinished = "The sweep is not finished: it goes on, or was cut off."

// verdict is that of all steps together. An unfinished sweep is never valid.
func verdict(b *Book, axis Axis, points []Point) (verdict, reason string) {
	verdict, reason = report.CombinedVerdict("step", points, func(p Point) (name, verdict string) { return step(axis, p.Value), p.Verdict })
	if len(points) == 0 {
		verdict, reason = "unknown", "No step was run."
	}
	if !b.Finished {
		reason += " " + NotFinished
		if verdict != "invalid" {
			verdict = "unfinished"
		}
	}
	return verdict, reason
}

// link is the address of a step's report, beside the sweep's page; empty where
// the book names no folder of the sweep.
func link(dir string) string {
	if dir == "" || dir == "." || !filepath.IsLocal(dir) || filepath.Base(dir) != dir {
		return ""
	}
	return report.PageFrom("", dir)
}

// facts report what was swept.
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
