package sweep

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// confidence is that of every interval of a sweep.
const confidence = 0.95

// Text writes the sweep for people: a table with a row a step, ascending, and
// what the steps together report.
func Text(w io.Writer, b *Book, dir string) error {
	spec, err := Parse(b.Over)
	if err != nil {
		return err
	}
	points := ascending(b.Points, spec.Axis)
	fmt.Fprintf(w, "%s on %s, over %s; seed %d\n\n", b.Workload, b.Database, b.Over, b.Seed)
	if err := table(w, spec.Axis, points); err != nil {
		return err
	}
	for _, p := range points {
		if p.Verdict == "invalid" {
			fmt.Fprintf(w, "\nThe step at %s is INVALID: its measurements are those of a database that did not do its work. The results below include them.\n", label(spec.Axis, p.Value))
		}
	}
	for _, sentence := range findings(spec.Axis, points) {
		fmt.Fprintf(w, "\n%s\n", sentence)
	}
	if !b.Finished {
		fmt.Fprintf(w, "\nThe sweep was interrupted: the same command with --out %s goes on.\n", dir)
	}
	_, err = fmt.Fprintf(w, "\n%s/%s and %s; a folder with its own report for each step\n", dir, FileName, PageName)
	return err
}

// ascending are the steps in the order of the axis.
func ascending(points []Point, axis Axis) []Point {
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(x, y Point) int { return cmp.Compare(offered(x, axis), offered(y, axis)) })
	return points
}

// offered is where a step stands on the axis: the maximum rate is last.
func offered(p Point, axis Axis) float64 {
	if axis == Rate && p.Value == 0 {
		return math.Inf(1)
	}
	return p.Value
}

// table writes the table of the page, with the verdict as its last column.
func table(w io.Writer, axis Axis, points []Point) error {
	t := stepTable(axis, points, nil)
	reordered := func(cells []string) []string { return slices.Concat(cells[:1], cells[2:], cells[1:2]) }
	t.Columns, t.Text = reordered(t.Columns), []int{len(t.Columns) - 1}
	for i := range t.Rows {
		t.Rows[i].Cells = reordered(t.Rows[i].Cells)
	}
	if err := t.WriteText(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nLatencies (50 % to max) in milliseconds, from the intended start time.")
	return err
}

func label(axis Axis, value float64) string {
	if axis == Rate && value == 0 {
		return "maximum"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// findings are the sentences about all steps together.
func findings(axis Axis, points []Point) []string {
	if axis == Rate {
		return []string{report.Sentence(knee(points).Detail)}
	}
	points = measured(points)
	fit, err := scaling(points)
	if err != nil {
		return []string{unfitted(err)}
	}
	lines := []string{
		fmt.Sprintf("Universal Scalability Law, X(N) = λN/(1+σ(N-1)+κN(N-1)), 95 %% intervals:\n  λ %s a second of one\n  σ %s contention\n  κ %s coherence\n  R² %.4f, residual standard error %.0f a second",
			coefficient(fit.Lambda), coefficient(fit.Sigma), coefficient(fit.Kappa), fit.R2, fit.ResidualError),
		report.Sentence(fit.Detail),
	}
	efficiency := "Efficiency:"
	for i, p := range points {
		efficiency += fmt.Sprintf(" %s at %s,", percent(fit.Efficiency[i]), label(axis, p.Value))
	}
	return append(lines, efficiency[:len(efficiency)-1]+".")
}

// unfitted says why the scalability law was not fitted.
func unfitted(err error) string {
	return "The scalability law was not fitted: " + strings.TrimPrefix(err.Error(), "fit the scalability law: ") + "."
}

func knee(points []Point) stats.Knee {
	var steps []stats.Step
	for _, p := range points {
		step := stats.Step{Offered: p.Value, Achieved: p.Value * (1 - p.Left)}
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

// measured are the steps whose throughput is known.
func measured(points []Point) []Point {
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.TPS == nil })
}

// scaling fits the law to steps whose throughput is known: one in which nothing was
// committed belongs to the curve, too, and no curve of that shape goes through it.
func scaling(points []Point) (stats.Scaling, error) {
	var sizes []stats.Size
	for _, p := range points {
		if !above(p.TPS) {
			return stats.Scaling{}, fmt.Errorf("at %s nothing was committed in what was measured, which no curve of its shape goes through", strconv.FormatFloat(p.Value, 'f', -1, 64))
		}
		sizes = append(sizes, stats.Size{N: p.Value, X: *p.TPS})
	}
	return stats.FitScaling(sizes, confidence)
}

func coefficient(i stats.Interval) string {
	value := strconv.FormatFloat(i.Value, 'g', 4, 64)
	if !i.Known() {
		return value + " (interval not known)"
	}
	return fmt.Sprintf("%s (%.4g..%.4g)", value, i.Low, i.High)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
