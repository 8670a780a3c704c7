package sweep

import (
	"fmt"
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// notes are what the measurements must not be read without.
func notes(axis Axis, points []Point) []report.PageNote {
	n := &report.Notes{}
	of := func(is func(Point) bool) (names []string) {
		for _, p := range points {
			if is(p) {
				names = append(names, step(axis, p.Value))
			}
		}
		return names
	}
	for _, kind := range []struct {
		add   func(format string, args ...any)
		text  string
		steps []string
	}{
		{n.Warn, "Invalid: %s. The database broke its promise there, so those measurements, and the conclusions from all steps, say nothing about its speed.",
			of(func(p Point) bool { return p.Verdict == "invalid" })},
		{n.Warn, "Not decided: %s. Whether the database kept its promise there is unknown.",
			of(func(p Point) bool { return p.Verdict != "valid" && p.Verdict != "invalid" })},
		{n.Warn, "No steady state: %s. The mean throughput of these steps depends on when they ended.", of(func(p Point) bool { return p.Unsteady })},
		{n.Warn, "No time was measured: %s. The throughput there is not known, as where the work ends within the warm-up.",
			of(func(p Point) bool { return p.TPS == nil })},
		{n.Warn, "Nothing was committed in what was measured: %s.", of(func(p Point) bool { return p.TPS != nil && !above(p.TPS) })},
		{n.Note, "The database did not keep up: %s. The latencies there depend on the length of the step, because work piled up.",
			of(func(p Point) bool { return axis == Rate && p.behind() })},
	} {
		if len(kind.steps) > 0 {
			kind.add(kind.text, strings.Join(kind.steps, ", "))
		}
	}
	return n.All()
}

func rateFigures(points []Point, k stats.Knee) []report.PageFigure {
	at := report.PageFigure{Name: "Knee", Value: "none found", Below: []string{}}
	if k.Found {
		at.Value, at.Unit = report.RateText(k.Step.Offered), "/s"
		at.Below = append(at.Below, "99 % latency there "+report.LatencyText(k.Step.Latency)+" ms")
	}
	if k.Flat > 0 {
		at.Below = append(at.Below, "at low rates "+report.LatencyText(k.Flat)+" ms")
	}
	full := report.PageFigure{Name: "Maximum rate", Value: report.NotKnown, Below: []string{}}
	kept := report.PageFigure{Name: "Highest rate kept", Value: report.NotKnown, Below: []string{}}
	for _, p := range points {
		switch {
		case p.Value == 0:
			if full.Value = report.Perhaps(p.TPS, report.RateText); p.TPS != nil {
				full.Unit = "/s"
			}
			full.Below = []string{"median " + report.Perhaps(p.Median, report.RateText), "best second " + report.Perhaps(p.Best, report.RateText), "99 % latency " + latencyText(p.P99MS)}
		case p.Kept(): // ascending, so that the last one stays
			kept.Value, kept.Unit = report.RateText(p.Value), "/s"
			kept.Below = []string{"99 % latency " + latencyText(p.P99MS), "99.9 % " + latencyText(p.P999MS)}
		}
	}
	return []report.PageFigure{at, full, kept}
}

// sizeFigures are of steps whose throughput is known; the fit has no efficiency where
// there is none.
func sizeFigures(axis Axis, points []Point, fit stats.Scaling) []report.PageFigure {
	best := report.PageFigure{Name: "Highest throughput", Value: report.NotKnown, Below: []string{}}
	highest := 0.0
	with := func(p Point) string { return "with " + label(axis, p.Value) + " " + string(axis) }
	for _, p := range points {
		if *p.TPS > highest {
			highest = *p.TPS
			best.Value, best.Unit = report.RateText(highest), "/s"
			best.Below = []string{with(p), "95 % interval " + pageInterval(p), "best second " + report.Perhaps(p.Best, report.RateText)}
		}
	}
	if len(fit.Efficiency) == 0 {
		return []report.PageFigure{best}
	}
	peak := report.PageFigure{Name: "Peak of the fitted model", Value: "none", Below: []string{}}
	switch {
	case fit.PeakN > 0:
		peak.Value, peak.Unit = fmt.Sprintf("%.3g", fit.PeakN), string(axis)
		peak.Below = append(peak.Below, report.RateText(fit.PeakX)+" /s")
		if fit.Extrapolated {
			peak.Below = append(peak.Below, "a prediction beyond what was measured")
		}
	case fit.Limit > 0:
		peak.Below = append(peak.Below, "approaches "+report.RateText(fit.Limit)+" /s")
	}
	last := points[len(points)-1]
	return []report.PageFigure{best, peak,
		{Name: "Efficiency", Value: percent(fit.Efficiency[len(points)-1]), Below: []string{with(last), "of " + label(axis, last.Value) + " times one"}},
		{Name: "R²", Value: fmt.Sprintf("%.4f", fit.R2), Below: []string{"residual standard error " + report.RateText(fit.ResidualError) + " /s"}},
	}
}

// lawTable is the scalability law with its coefficients.
func lawTable(fit stats.Scaling) report.PageTable {
	row := func(name, meaning string, i stats.Interval) report.PageRow {
		low, high := report.NotKnown, report.NotKnown
		if i.Known() {
			low, high = fmt.Sprintf("%.4g", i.Low), fmt.Sprintf("%.4g", i.High)
		}
		return report.PageRow{Cells: []string{name, fmt.Sprintf("%.4g", i.Value), low, high, meaning}}
	}
	return report.PageTable{
		Title: "Universal Scalability Law: X(N) = λN / (1 + σ(N−1) + κN(N−1))", Columns: []string{"", "value", "95 % from", "to", "meaning"}, Text: []int{0, 4},
		Rows: []report.PageRow{
			row("λ", "throughput of one, a second", fit.Lambda),
			row("σ", "contention: the part that waits for what is shared", fit.Sigma),
			row("κ", "coherence: what it costs each pair to agree", fit.Kappa),
		},
		Note: fmt.Sprintf("Fitted by least squares. R² %.4f, residual standard error %s a second. N. J. Gunther, Guerrilla Capacity Planning, Springer 2007.", fit.R2, report.RateText(fit.ResidualError)),
	}
}

// stepTable has a row a step, each leading to its report. efficiency is by the
// step's value; nil: there is none.
func stepTable(axis Axis, points []Point, efficiency map[float64]float64) report.PageTable {
	t := report.PageTable{
		Columns: []string{map[Axis]string{Rate: "rate asked", Clients: "clients", Nodes: "nodes"}[axis], "verdict", "TPS", "95 % interval", "median", "best second"},
		Text:    []int{1}, Rows: []report.PageRow{},
		Note: "Latencies in milliseconds, of committed transactions from the intended start time. The first column leads to the report of the step.",
	}
	if efficiency != nil {
		t.Columns = append(t.Columns, "efficiency")
	}
	t.Columns = append(t.Columns, "50 %", "99 %", "99.9 %", "max")
	if axis == Rate {
		t.Columns = append(t.Columns, "not sent")
	}
	for _, p := range points {
		r := report.PageRow{Page: link(p.Dir), Mark: rowMark(axis, p), Cells: []string{
			label(axis, p.Value), verdictText(axis, p), report.Perhaps(p.TPS, report.RateText), pageInterval(p), report.Perhaps(p.Median, report.RateText), report.Perhaps(p.Best, report.RateText),
		}}
		if efficiency != nil {
			share, known := efficiency[p.Value]
			if r.Cells = append(r.Cells, "–"); known {
				r.Cells[len(r.Cells)-1] = percent(share)
			}
		}
		for _, ms := range []*float64{p.P50MS, p.P99MS, p.P999MS, p.MaxMS} {
			r.Cells = append(r.Cells, strings.TrimSuffix(latencyText(ms), " ms"))
		}
		if axis == Rate {
			r.Cells = append(r.Cells, report.RateText(float64(p.Backlog)))
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

func rowMark(axis Axis, p Point) string {
	if p.Verdict == "valid" && (p.Unsteady || axis == Rate && p.behind()) {
		return "warning"
	}
	return report.VerdictMark(p.Verdict)
}

func verdictText(axis Axis, p Point) string {
	text := report.OrNotKnown(p.Verdict)
	if p.Verdict == "invalid" {
		text = "INVALID"
	}
	if p.Unsteady {
		text += ", unsteady"
	}
	if axis == Rate && p.behind() {
		text += ", rate not kept"
	}
	return text
}

func pageInterval(p Point) string {
	if p.Low == nil || p.High == nil {
		return report.NotKnown
	}
	return report.RateText(*p.Low) + " to " + report.RateText(*p.High)
}

// latencyText writes a latency, which may not be known.
func latencyText(ms *float64) string {
	if !above(ms) {
		return report.NotKnown
	}
	return report.LatencyText(*ms) + " ms"
}
