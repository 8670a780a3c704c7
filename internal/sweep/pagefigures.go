package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

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
			return stats.Scaling{}, fmt.Errorf("at %s nothing was committed in what was measured, which no curve of its shape goes through", label(axis, p.Value))
		}
		sizes = append(sizes, stats.Size{N: p.Value, X: *p.TPS})
	}
	return stats.FitScaling(string(axis), sizes)
}

// remarks are what a reader must know of a step. note is a sentence about all such steps, and short
// a remark beside the verdict of one.
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

// efficiencies returns the efficiency of each value whose throughput is known, or nil if the throughput of one
// is not known.
func efficiencies(once []Point) map[float64]float64 {
	var sizes []stats.Size
	for _, p := range once {
		if p.TPS != nil {
			sizes = append(sizes, stats.Size{N: p.Value, X: *p.TPS})
		}
	}
	shares := stats.Efficiency(sizes)
	if shares == nil {
		return nil
	}
	by := map[float64]float64{}
	for i, share := range shares {
		by[sizes[i].N] = share
	}
	return by
}

// spreadTable returns the range of the steps that were measured again.
func spreadTable(axis Axis, points []Point) report.DataTable {
	t := report.NewTable("Steps that were measured more than once", "Medians, and the least and the most of the measurements; the 99 % latency in milliseconds.",
		[]int{}, stepName(axis), "measured", "TPS", "from", "to", "99 %", "from", "to")
	for _, p := range merge(points) {
		same := slices.DeleteFunc(slices.Clone(points), func(q Point) bool { return q.Value != p.Value })
		if len(same) < 2 {
			continue
		}
		least, most := spread(same, p99)
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
