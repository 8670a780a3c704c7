package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/internal/stats"
)

// ComparisonPageName is the name of a comparison's page in its directory.
const ComparisonPageName = "comparison.html"

// What the chart of a comparison holds at most.
const (
	mostRuns   = 24
	mostPoints = 600
)

// ComparisonData is everything that the page of a comparison shows.
type ComparisonData struct {
	Shape    int                `json:"shape"`
	Title    string             `json:"title"`
	Workload string             `json:"workload"`
	Database string             `json:"database"` // those of all sides
	Started  string             `json:"started"`
	Verdict  string             `json:"verdict"` // the worst of all runs
	Reason   string             `json:"reason"`
	Notes    []PageNote         `json:"notes"`
	Figures  []PageFigure       `json:"figures"`
	Facts    []PageFact         `json:"facts"` // the sides
	Command  string             `json:"command"`
	Differs  []PageFact         `json:"differs"` // what the sides do not have in common
	Table    PageTable          `json:"table"`
	Ratios   []ComparisonRatio  `json:"ratios"`
	Timeline ComparisonTimeline `json:"timeline"`
	Runs     PageTable          `json:"runs"`
	Made     string             `json:"made"`
}

// ComparisonRatio is one measurement of one side against that of the first. What is
// not known is null.
type ComparisonRatio struct {
	Against    string   `json:"against"` // such as B against A
	Name       string   `json:"name"`
	Value      *float64 `json:"value"`
	Low        *float64 `json:"low"`
	High       *float64 `json:"high"`
	Text       string   `json:"text"`
	Difference string   `json:"difference"`
	Shown      bool     `json:"shown"` // there is a difference
}

// ComparisonTimeline is the throughput of all runs over time.
type ComparisonTimeline struct {
	Bucket int              `json:"bucket_s"` // of how many seconds a point is the mean
	At     []float64        `json:"at_s"`
	Lines  []ComparisonLine `json:"lines"`
	Note   string           `json:"note"`
}

// ComparisonLine is one run in the chart.
type ComparisonLine struct {
	Side  int        `json:"side"`
	Label string     `json:"label"`
	TPS   []*float64 `json:"tps"` // null where the run had no load phase
}

// ComparisonPage writes a comparison as one HTML file that needs nothing else.
// dir is where it will lie, from which the runs are linked. It refuses what
// Compare refuses.
func ComparisonPage(w io.Writer, sides []Side, dir, command string) error {
	if err := sameKind(sides); err != nil {
		return err
	}
	data := NewComparisonData(sides, dir, command)
	var plain bytes.Buffer
	if err := data.text(&plain); err != nil {
		return fmt.Errorf("write the page of the comparison: %w", err)
	}
	sheet := Sheet{Title: data.Title, Data: data, Plain: plain.String(), Scripts: []string{"comparison.js"}}
	if err := sheet.Write(w); err != nil {
		return fmt.Errorf("write the page of the comparison: %w", err)
	}
	return nil
}

// NewComparisonData puts a comparison that Compare does not refuse into the form
// of the page.
func NewComparisonData(sides []Side, dir, command string) *ComparisonData {
	first := sides[0].Runs[0].Result
	d := &ComparisonData{
		Shape: PageShape, Workload: first.Workload, Database: distinct(allRuns(sides), databaseOf), Started: DayText(first.StartedAt), Command: command,
		Notes: comparisonNotes(sides), Figures: []PageFigure{}, Facts: []PageFact{}, Differs: differences(sides),
		Ratios: []ComparisonRatio{}, Timeline: comparisonTimeline(sides), Runs: runsTable(sides, dir),
		Made: strings.TrimSpace("stroppy " + strings.TrimPrefix(first.Stroppy, "stroppy ")),
	}
	d.Verdict, d.Reason = comparisonVerdict(sides)
	d.Title = fmt.Sprintf("%s: comparison of %d sides, %s", word(d.Verdict), len(sides), orNotKnown(d.Workload))
	d.Table = table("", "Means over the runs of each side.", []int{0}, "")
	for i := range sides {
		d.Table.Columns = append(d.Table.Columns, letter(i))
		d.Facts = append(d.Facts, PageFact{Name: letter(i), Value: describe(&sides[i])})
	}
	for _, f := range comparedFigures {
		r := cellsOf(f.name)
		for i := range sides {
			r.Cells = append(r.Cells, meanOf(&sides[i], f.of))
		}
		d.Table.Rows = append(d.Table.Rows, r)
	}
	for i := 1; i < len(sides); i++ {
		d.against(i, stats.Compare(samples(&sides[0]), samples(&sides[i]), compareConfidence))
	}
	return d
}

// against adds the ratios of one side to the first.
func (d *ComparisonData) against(side int, c stats.Comparison) {
	names := letter(side) + " against " + letter(0)
	f := PageFigure{Name: "Throughput, " + names, Value: NotKnown, Below: []string{}}
	if c.TPS.Ratio.Known() {
		f.Value = "no difference shown"
		if c.TPS.Difference != stats.DifferenceNone {
			f.Value, f.Unit = fmt.Sprintf("%.3f", c.TPS.Ratio.Value), "times"
		} else {
			f.Below = append(f.Below, fmt.Sprintf("ratio %.3f", c.TPS.Ratio.Value))
		}
		f.Below = append(f.Below, fmt.Sprintf("95 %% interval %.3f to %.3f", c.TPS.Ratio.Low, c.TPS.Ratio.High))
	} else if c.TPS.Ratio.Value > 0 {
		f.Below = append(f.Below, fmt.Sprintf("ratio %.3f, without an interval", c.TPS.Ratio.Value))
	}
	if c.TPS.Detail != "" {
		f.Below = append(f.Below, c.TPS.Detail)
	}
	d.Figures = append(d.Figures, f)
	d.Ratios = append(d.Ratios, ratioRow(names, "throughput", c.TPS))
	for _, l := range comparedLatencies {
		if r, ok := c.Latency[l.key]; ok {
			d.Ratios = append(d.Ratios, ratioRow(names, "latency "+l.name, r))
		}
	}
}

func ratioRow(against, name string, r stats.Ratio) ComparisonRatio {
	row := ComparisonRatio{Against: against, Name: name, Text: NotKnown, Difference: r.Detail}
	if r.Ratio.Value > 0 {
		row.Value, row.Text = &r.Ratio.Value, fmt.Sprintf("%.3f", r.Ratio.Value)
	}
	if r.Ratio.Known() {
		row.Low, row.High = &r.Ratio.Low, &r.Ratio.High
		row.Text += fmt.Sprintf(" (%.3f to %.3f)", r.Ratio.Low, r.Ratio.High)
		row.Difference, row.Shown = string(r.Difference), r.Difference != stats.DifferenceNone
	}
	return row
}

// allRuns are those of all sides.
func allRuns(sides []Side) (runs []Recorded) {
	for _, s := range sides {
		runs = append(runs, s.Runs...)
	}
	return runs
}

// comparisonVerdict is the worst of all runs.
func comparisonVerdict(sides []Side) (verdict, reason string) {
	var invalid, unknown []string
	runs := allRuns(sides)
	for _, r := range runs {
		switch r.Result.Verdict {
		case "valid":
		case "invalid":
			invalid = append(invalid, filepath.Base(r.Dir))
		default:
			unknown = append(unknown, filepath.Base(r.Dir))
		}
	}
	of := counted(uint64(len(runs)), "run")
	switch {
	case len(invalid) > 0:
		return "invalid", fmt.Sprintf("A check found a violation in %d of %s: %s.", len(invalid), of, some(invalid, 10))
	case len(unknown) > 0:
		return "unknown", fmt.Sprintf("A check could not be decided, or none was made, in %d of %s: %s.", len(unknown), of, some(unknown, 10))
	}
	return "valid", fmt.Sprintf("No check found a violation in any of %s.", of)
}

func comparisonNotes(sides []Side) []PageNote {
	n := &noted{}
	alone := false
	for i := range sides {
		var verdicts, unsteady []string
		for _, r := range sides[i].Runs {
			if r.Result.Verdict != "valid" {
				verdicts = append(verdicts, filepath.Base(r.Dir)+" is "+orNotKnown(r.Result.Verdict))
			}
			if s := r.Result.Drive.Steady; s != nil && s.State == stats.Unsteady {
				unsteady = append(unsteady, filepath.Base(r.Dir))
			}
		}
		if len(verdicts) > 0 {
			n.warn(fmt.Sprintf("%s: %s. Its measurements are not those of a database that keeps its promise.", letter(i), some(verdicts, 10)))
		}
		if len(unsteady) > 0 {
			n.warn(fmt.Sprintf("%s: no steady state in %s.", letter(i), some(unsteady, 10)))
		}
		alone = alone || len(sides[i].Runs) == 1
	}
	if alone {
		n.note("One run of a side does not show the variation between runs. `stroppy compare --repeat` makes several, alternately.")
	}
	if len(sides) > 2 {
		n.note("Each interval holds at 95 % by itself: of twenty, one leaves out the true ratio by chance.")
	}
	return n.all()
}

// comparisonTimeline lays the runs over each other, from the start of each.
func comparisonTimeline(sides []Side) ComparisonTimeline {
	c := ComparisonTimeline{At: []float64{}, Lines: []ComparisonLine{}}
	longest, left := 0, 0
	for _, r := range allRuns(sides) {
		longest = max(longest, drivenSeconds(r))
	}
	c.Bucket = max(1, (longest+mostPoints-1)/mostPoints)
	for from := 0; from < longest; from += c.Bucket {
		c.At = append(c.At, float64(from)+float64(c.Bucket-1)/2)
	}
	rounds := len(slices.MaxFunc(sides, func(a, b Side) int { return cmp.Compare(len(a.Runs), len(b.Runs)) }).Runs)
	for round := range rounds {
		for i, s := range sides {
			switch {
			case round >= len(s.Runs):
			case len(c.Lines) == mostRuns:
				left++
			default:
				label := letter(i)
				if len(s.Runs) > 1 {
					label += fmt.Sprintf(" %d", round+1)
				}
				c.Lines = append(c.Lines, ComparisonLine{Side: i, Label: label, TPS: bucketed(s.Runs[round], c.Bucket, len(c.At))})
			}
		}
	}
	if c.Bucket > 1 {
		c.Note = fmt.Sprintf("Each point is the mean of %d seconds. ", c.Bucket)
	}
	if left > 0 {
		c.Note += fmt.Sprintf("Only the first %d runs are drawn; %d more are in the table.", mostRuns, left)
	}
	return c
}

// drivenSeconds is how many whole seconds of its series a run drove, the warm-up
// among them.
func drivenSeconds(r Recorded) int {
	whole := math.Floor(r.Result.Drive.WarmupSeconds + r.Result.Drive.Seconds)
	return int(math.Max(0, math.Min(whole, float64(len(r.Series)))))
}

func bucketed(r Recorded, width, n int) []*float64 {
	means := make([]*float64, n)
	counts := make([]float64, n)
	until := drivenSeconds(r)
	for _, s := range r.Series[:until] {
		if b := s.Second / width; s.Second < until && b < n {
			if means[b] == nil {
				means[b] = new(float64)
			}
			*means[b] += float64(s.Committed)
			counts[b]++
		}
	}
	for i, m := range means {
		if m != nil {
			*m = math.Round(*m / counts[i])
		}
	}
	return means
}

func runsTable(sides []Side, dir string) PageTable {
	t := table("", "The first column leads to the report of the run.", []int{0, 1, 2}, "run", "side", "verdict", "TPS mean", "p50 ms", "p99 ms", "max ms")
	for i := range sides {
		for _, run := range sides[i].Runs {
			d := run.Result.Drive
			r := cellsOf(filepath.Base(run.Dir), letter(i), orNotKnown(run.Result.Verdict),
				perhaps(d.throughput().Mean, RateText),
				perhaps(d.Latency.of("p50"), LatencyText),
				perhaps(d.Latency.of("p99"), LatencyText),
				perhaps(d.Latency.of("max"), LatencyText))
			r.Page = pageFrom(dir, run.Dir)
			switch run.Result.Verdict {
			case "valid":
			case "invalid":
				r.Mark = "invalid"
			default:
				r.Mark = "unknown"
			}
			t.Rows = append(t.Rows, r)
		}
	}
	slices.SortStableFunc(t.Rows, func(a, b PageRow) int { return cmp.Compare(a.Cells[0], b.Cells[0]) })
	return t
}

// pageFrom is the address of a run's page, seen from a page in dir; empty where
// there is no way from one to the other.
func pageFrom(dir, run string) string {
	rel, err := filepath.Rel(dir, run)
	if err != nil {
		return ""
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "./" + strings.Join(parts, "/") + "/" + PageName
}
