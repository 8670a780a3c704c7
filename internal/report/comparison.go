package report

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/internal/stats"
)

// ComparisonPageName is the name of a comparison's page in its directory.
const ComparisonPageName = "comparison.html"

// Bounds of the chart of a comparison.
const (
	mostRuns   = 24
	mostPoints = 600
)

// ComparisonRatio is one measurement of a side, divided by the same measurement of the first side. An
// unknown value is null.
type ComparisonRatio struct {
	Against    string   `json:"against"` // such as B against A
	Name       string   `json:"name"`
	Ratio      *float64 `json:"ratio"`
	Low        *float64 `json:"low"` // of the 95 % interval
	High       *float64 `json:"high"`
	Difference string   `json:"difference"`
	Text       string   `json:"text"`
	Shown      bool     `json:"shown"` // there is a difference
}

// RunLines is the throughput of all runs of a comparison over time.
type RunLines struct {
	timeAxis
	Lines []Line `json:"lines"` // a line has null from the end of its run on
}

// Compare compares sides. dir is the directory of the page, from which the runs are linked,
// and command repeats the comparison. It returns an error for runs of different workloads, and
// for runs without a load phase.
func Compare(sides []Side, dir, command string) (*Document, error) {
	if err := sameKind(sides); err != nil {
		return nil, err
	}
	first, runs := sides[0].Runs[0].Result, allRuns(sides)
	d := NewDocument(first.Workload, distinct(runs, databaseOf), first.StartedAt, first.Stroppy)
	d.Notes, d.Answer = comparisonNotes(sides), []string{}
	d.Subject = fmt.Sprintf("comparison of %s on %s", d.Workload, d.Database)
	verdict, reason := CombinedVerdict("run", runs, func(r Recorded) (name, verdict string) { return filepath.Base(r.Dir), r.Result.Verdict })
	d.Judge(verdict, reason, fmt.Sprintf("comparison of %d sides, %s", len(sides), OrNotKnown(d.Workload)))
	means := NewTable("", "Means over the runs of each side.", []int{0}, "")
	var names []string
	var facts []Setting
	for i := range sides {
		names = append(names, SideName(i))
		facts = append(facts, Setting{Name: SideName(i), Value: describe(&sides[i])})
	}
	means.Columns = append(means.Columns, names...)
	for _, f := range comparedFigures {
		cells := []string{f.name}
		for i := range sides {
			cells = append(cells, meanOf(&sides[i], f.count, f.figures...))
		}
		means.Add(cells...)
	}
	var figures []Figure
	var list []ComparisonRatio
	ratios := NewTable("", "95 % intervals, each by itself.", []int{0, 1, 3}, "", "measurement", "ratio (95 % interval)", "difference")
	for i := 1; i < len(sides); i++ {
		c := stats.Compare(samples(&sides[0]), samples(&sides[i]))
		d.Answer = append(d.Answer, answer(SideName(0), SideName(i), c))
		names := SideName(i) + " against " + SideName(0)
		figures = append(figures, throughputRatio(names, c.TPS))
		list = append(list, ratioRow(names, "throughput", c.TPS))
		for _, l := range comparedLatencies {
			if r, ok := c.Latency[l.key]; ok {
				list = append(list, ratioRow(names, "latency "+l.name, r))
			}
		}
	}
	for _, r := range list {
		ratios.Add(r.Against, r.Name, r.Text, r.Difference)
	}
	d.Add(Section{ID: failedID, Title: "What is wrong", Checks: wrongRuns(runs, dir)})
	d.Add(Section{ID: "sides", Title: "What was compared", Facts: facts})
	d.Add(Section{ID: "differs", Title: "Not the same on all sides", Facts: differences(sides)})
	if s := d.Section("differs"); len(s.Facts) > 0 {
		s.Text = []string{fmt.Sprintf("The values are for %s. Read the ratios with that in mind.", strings.Join(names, " | "))}
	}
	d.Add(Section{ID: "figures", Title: "Measurements", Figures: figures, In: InPage})
	d.Add(Section{ID: "ratios", Title: "Ratios", Chart: &Chart{"ratios", list}, In: InPage,
		Note: "Dots: the ratio; bars: its 95 % interval, on a logarithmic scale. If the bar holds 1, no difference is shown, which does not prove that there is none."})
	d.Add(Section{ID: "table", Title: "Side by side", Tables: []DataTable{means}})
	d.Add(Section{ID: "tables", Title: "The workload's own", Tables: comparedTables(sides)})
	d.Add(Section{ID: "ratios-text", Title: "Ratios", Tables: []DataTable{ratios}, In: InText | InMarkdown})
	d.Add(Section{ID: "timeline", Title: "Over time", Chart: &Chart{"runs", comparisonTimeline(sides)}, In: InPage})
	d.Add(Section{ID: "runs", Title: "Runs", Tables: []DataTable{runsTable(sides, dir)}, In: InPage})
	d.Add(Section{ID: "again", Title: "To make it again", Command: command, In: InPage | InMarkdown})
	return d, nil
}

// wrongRuns returns the first findings of the invalid runs.
func wrongRuns(runs []Recorded, dir string) []Item {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Recorded) bool {
		return r.Result.Verdict != "invalid" || len(r.Result.Findings(0)) == 0
	})
	return ViolatedRuns("run", runs, func(r Recorded) Item {
		found := r.Result.Findings(0)
		return Violated(filepath.Base(r.Dir)+": "+found[0].Check, found[0].Detail, PageFrom(dir, r.Dir))
	})
}

// comparedTables returns the workload's own tables. Tables with the same title and columns become
// one, with a row for each run.
func comparedTables(sides []Side) []DataTable {
	tables := []DataTable{}
	var order [][]string // of the names of the rows of each table
	for i := range sides {
		for round, run := range sides[i].Runs {
			who := sides[i].runName(i, round)
			for _, own := range run.Result.Tables {
				if len(own.Columns) == 0 {
					continue
				}
				columns := append([]string{"", "run"}, own.Columns[1:]...)
				at := slices.IndexFunc(tables, func(t DataTable) bool { return t.Title == own.Title && slices.Equal(t.Columns, columns) })
				if at < 0 {
					at = len(tables)
					tables = append(tables, NewTable(own.Title, "One row a run. Its report describes each measurement.", []int{0, 1}, columns...))
					order = append(order, nil)
				}
				for _, row := range own.Rows {
					if len(row) == 0 {
						continue
					}
					tables[at].Add(append([]string{row[0], who}, row[1:]...)...)
					if !slices.Contains(order[at], row[0]) {
						order[at] = append(order[at], row[0])
					}
				}
			}
		}
	}
	for i := range tables {
		slices.SortStableFunc(tables[i].Rows, func(a, b Row) int {
			return cmp.Compare(slices.Index(order[i], a.Cells[0]), slices.Index(order[i], b.Cells[0]))
		})
	}
	return tables
}

// throughputRatio returns the ratio of two throughputs in large type.
func throughputRatio(names string, r stats.Ratio) Figure {
	f, ratio := NewFigure("Throughput, "+names, NotKnown, ""), r.Ratio
	switch {
	case ratio.Known() && r.Difference != stats.DifferenceNone:
		f = NewFigure(f.Name, fmt.Sprintf("%.3f", ratio.Value), "times", ratioInterval(ratio))
	case ratio.Known():
		f = NewFigure(f.Name, string(r.Difference), "", fmt.Sprintf("ratio %.3f", ratio.Value), ratioInterval(ratio))
	case ratio.Value > 0:
		f.Below = append(f.Below, fmt.Sprintf("ratio %.3f, without an interval", ratio.Value))
	}
	f.Below = append(f.Below, labelled("", r.Detail)...)
	return f
}

// ratioInterval writes the interval of a ratio.
func ratioInterval(i stats.Interval) string {
	return fmt.Sprintf("95 %% interval %.3f to %.3f", i.Low, i.High)
}

// answer returns in words which of two sides is faster, by how much and how surely, and how their
// latencies differ.
func answer(first, other string, c stats.Comparison) string {
	tps, lead := c.TPS.Ratio, map[stats.Difference]string{
		stats.DifferenceHigher: "%s is faster than %s: %.3f times its throughput (%s).",
		stats.DifferenceLower:  "%s is slower than %s: %.3f times its throughput (%s).",
		stats.DifferenceNone:   "The throughput of %s and %s shows no difference: %.3f times (%s).",
	}
	text := fmt.Sprintf("Which of %s and %s is faster is not known", first, other)
	switch {
	case c.TPS.Difference != stats.DifferenceUnknown:
		text = fmt.Sprintf(lead[c.TPS.Difference], other, first, tps.Value, ratioInterval(tps))
	case tps.Value > 0:
		text += fmt.Sprintf(": %.3f times the throughput, without an interval.", tps.Value)
	default:
		text += "."
	}
	l := c.Latency["p99"]
	switch {
	case !l.Ratio.Known():
	case l.Difference == stats.DifferenceNone:
		text += fmt.Sprintf(" Its 99 %% latency shows no difference: %.3f times (%s).", l.Ratio.Value, ratioInterval(l.Ratio))
	default:
		text += fmt.Sprintf(" Its 99 %% latency is %s: %.3f times (%s).", l.Difference, l.Ratio.Value, ratioInterval(l.Ratio))
	}
	return text
}

func ratioRow(against, name string, r stats.Ratio) ComparisonRatio {
	row := ComparisonRatio{Against: against, Name: name, Text: NotKnown, Difference: r.Detail}
	if r.Ratio.Value > 0 {
		row.Ratio, row.Text = &r.Ratio.Value, fmt.Sprintf("%.3f", r.Ratio.Value)
	}
	if r.Ratio.Known() {
		row.Low, row.High = &r.Ratio.Low, &r.Ratio.High
		row.Text += fmt.Sprintf(" (%.3f to %.3f)", r.Ratio.Low, r.Ratio.High)
		row.Difference, row.Shown = string(r.Difference), r.Difference != stats.DifferenceNone
	}
	return row
}

func allRuns(sides []Side) (runs []Recorded) {
	for _, s := range sides {
		runs = append(runs, s.Runs...)
	}
	return runs
}

func comparisonNotes(sides []Side) []Note {
	n := &Notes{}
	alone := false
	for i := range sides {
		var verdicts, unsteady, starved []string
		for _, r := range sides[i].Runs {
			if r.Result.Verdict != "valid" {
				verdicts = append(verdicts, filepath.Base(r.Dir)+" is "+OrNotKnown(r.Result.Verdict))
			}
			if s := r.Result.Drive.Steady; s != nil && s.State == stats.Unsteady {
				unsteady = append(unsteady, filepath.Base(r.Dir))
			}
			if r.Result.Starved() {
				starved = append(starved, filepath.Base(r.Dir))
			}
		}
		if len(verdicts) > 0 {
			n.Warn("%s: %s. Its database does not keep its promise, so its measurements are not comparable.", SideName(i), some(verdicts, 10))
		}
		if len(unsteady) > 0 {
			n.Warn("%s: no steady state in %s.", SideName(i), some(unsteady, 10))
		}
		if len(starved) > 0 {
			n.Warn("%s: the host was starved in %s. Their measurements depend on the host too.", SideName(i), some(starved, 10))
		}
		alone = alone || len(sides[i].Runs) == 1
	}
	if alone {
		n.Note("One run of a side does not show the variation between runs. `stroppy compare --repeat` makes several, alternately.")
	}
	if len(sides) > 2 {
		n.Note("Each interval holds at 95 %% by itself: of twenty, one leaves out the true ratio by chance.")
	}
	return n.All()
}

// comparisonTimeline draws the runs over each other, from the start of each: the first of every side, then
// the second of every side.
func comparisonTimeline(sides []Side) RunLines {
	c := RunLines{Lines: []Line{}}
	longest, runs := 0, allRuns(sides)
	for _, r := range runs {
		longest = max(longest, drivenSeconds(r))
	}
	c.Bin = max(1, (longest+mostPoints-1)/mostPoints)
	c.At = middles(longest, c.Bin)
	for round := range runs {
		for i, s := range sides {
			if round >= len(s.Runs) || len(c.Lines) == mostRuns {
				continue
			}
			run, tps := s.Runs[round], slices.Repeat([]num{num(math.NaN())}, longest)
			until := drivenSeconds(run)
			for _, second := range run.Series[:until] {
				if second.Second < until {
					tps[second.Second] = num(second.Committed)
				}
			}
			mean, _, _ := binned(tps, c.Bin)
			c.Lines = append(c.Lines, Line{Side: i, Label: s.runName(i, round), Column: mean})
		}
	}
	if c.Bin > 1 {
		c.Note = fmt.Sprintf("Each point is the mean of %d seconds. ", c.Bin)
	}
	if left := len(runs) - len(c.Lines); left > 0 {
		c.Note += fmt.Sprintf("Only the first %d runs are drawn; %d more are in the table.", mostRuns, left)
	}
	return c
}

// runName returns the name of a run of the side with a number.
func (s *Side) runName(number, round int) string {
	if len(s.Runs) == 1 {
		return SideName(number)
	}
	return fmt.Sprintf("%s %d", SideName(number), round+1)
}

// drivenSeconds returns the number of whole seconds in the series of a run, including the warm-up.
func drivenSeconds(r Recorded) int {
	whole := math.Floor(r.Result.Drive.WarmupSeconds + r.Result.Drive.Seconds)
	return int(math.Max(0, math.Min(whole, float64(len(r.Series)))))
}

func runsTable(sides []Side, dir string) DataTable {
	t := NewTable("", "The first column leads to the report of the run.", []int{0, 1, 2}, "run", "side", "verdict", "TPS mean", "p50 ms", "p99 ms", "max ms")
	for i, side := range sides {
		for _, run := range side.Runs {
			r, verdict := run.Result, run.Result.Verdict
			cells := []string{filepath.Base(run.Dir), SideName(i), OrNotKnown(verdict), Perhaps(r.Figure("tps.mean"), RateText)}
			for _, key := range []string{"p50", "p99", "max"} {
				cells = append(cells, Perhaps(r.Figure("latency_ms."+key), LatencyText))
			}
			t.Rows = append(t.Rows, Row{Cells: cells, Page: PageFrom(dir, run.Dir), Mark: VerdictMark(verdict)})
		}
	}
	slices.SortStableFunc(t.Rows, func(a, b Row) int { return cmp.Compare(a.Cells[0], b.Cells[0]) })
	return t
}

// Ratios returns the ratios of a comparison.
func Ratios(comparison *Document) []ComparisonRatio {
	list, _ := comparison.Section("ratios").Chart.Data.([]ComparisonRatio)
	return list
}

// Side is one side of a comparison: a run, or repeated runs of one scenario.
type Side struct {
	Name string // for people
	Runs []Recorded
}

// Recorded is a run as a comparison needs it.
type Recorded struct {
	Dir    string
	Result *Result
	Series []stats.Second
}

// ReadRecorded reads a run's result and its series.
func ReadRecorded(dir string) (Recorded, error) {
	r := Recorded{Dir: dir}
	var err error
	if r.Result, err = Read(dir); err != nil {
		return r, err
	}
	file, err := os.Open(filepath.Join(dir, SeriesFile))
	if err != nil {
		return r, fmt.Errorf("read the series of the run in %s: %w", dir, err)
	}
	defer file.Close()
	if r.Series, err = ReadRows[stats.Second](file, SeriesFile); err != nil {
		return r, fmt.Errorf("read the run in %s: %w", dir, err)
	}
	return r, nil
}

// SideName names a side by its place: A, B … and its number beyond Z.
func SideName(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprint(i + 1)
}

// sameKind returns an error if the measurements of the sides cannot be compared.
func sameKind(sides []Side) error {
	if len(sides) < 2 {
		return errors.New("compare the runs: there is one only: name two or more")
	}
	first := sides[0].Runs[0]
	for _, r := range allRuns(sides) {
		switch {
		case r.Result.Workload != first.Result.Workload:
			return fmt.Errorf("compare the runs: %s ran %s and %s ran %s; their measurements mean different things",
				first.Dir, first.Result.Workload, r.Dir, r.Result.Workload)
		case r.Result.Drive == nil:
			return fmt.Errorf("compare the runs: %s had no load phase: it has no measurements", r.Dir)
		}
	}
	return nil
}

func describe(s *Side) string {
	r := s.Runs[0].Result
	text := fmt.Sprintf("%s: %s on %s", clean(s.Name), clean(r.Workload), clean(databaseOf(r)))
	if len(s.Runs) > 1 {
		text += fmt.Sprintf(", %d runs", len(s.Runs))
	}
	return text + ": " + distinct(s.Runs, func(r *Result) string { return r.Verdict })
}

// distinct returns the different values of runs, in alphabetical order.
func distinct(runs []Recorded, of func(*Result) string) string {
	values := Texts(runs, func(r Recorded) string { return of(r.Result) })
	slices.Sort(values)
	return strings.Join(slices.Compact(values), " and ")
}

func databaseOf(r *Result) string { return strings.TrimSpace(r.Database + " " + r.DatabaseVersion) }

// inCommon returns the values that the runs of a comparison should have in common: of the run, of
// its scenario, and of the database.
func inCommon(r *Result) [3][]Setting {
	accounts, expect := "", ""
	if r.Load != nil {
		accounts = Group(r.Load.Accounts)
	}
	if r.Claim != nil {
		expect = r.Claim.Expect
	}
	return [3][]Setting{{
		{"verdict", r.Verdict}, {"accounts", accounts}, {"ended early by the user", fmt.Sprint(r.Drive.Interrupted)},
		{"measured seconds", fmt.Sprintf("%.0f", r.Drive.Seconds)}, {"machine", r.Machine}, {"stroppy", r.Stroppy},
		{"database", databaseOf(r)}, {"checked against", expect}, {"faults", fmt.Sprint(len(r.Faults))},
	}, r.Scenario, r.Settings}
}

// differences returns the values that the sides do not have in common. The seed is left out, because
// it should differ. The accounts come from the load.
func differences(sides []Side) []Setting {
	lines := []Setting{}
	for i, missing := range []string{NotKnown, "default", "default"} {
		var seen []string
		if i > 0 {
			seen = []string{"seed", "accounts"}
		}
		for _, run := range allRuns(sides) {
			for _, s := range inCommon(run.Result)[i] {
				if slices.Contains(seen, s.Name) {
					continue
				}
				seen = append(seen, s.Name)
				if line := across(sides, func(r *Result) string { return cmp.Or(settingOf(inCommon(r)[i], s.Name), missing) }); line != "" {
					lines = append(lines, Setting{s.Name, line})
				}
			}
		}
	}
	return lines
}

// across returns a value of each side, or nothing if all sides have the same.
func across(sides []Side, of func(*Result) string) string {
	values := Texts(sides, func(s Side) string { return clean(distinct(s.Runs, of)) })
	if len(slices.Compact(slices.Clone(values))) == 1 {
		return ""
	}
	return strings.Join(values, " | ")
}

// comparedLatencies are the latencies whose ratio is shown, by key and name.
var comparedLatencies = []struct{ key, name string }{{"mean", "mean"}, {"p50", "50 %"}, {"p99", "99 %"}, {"p999", "99.9 %"}, {stats.Maximum, "max"}}

func samples(s *Side) []stats.Sample {
	var list []stats.Sample
	for _, r := range s.Runs {
		d := r.Result.Drive
		from := int(math.Ceil(d.WarmupSeconds))
		to := int(math.Floor(d.WarmupSeconds + d.Seconds))
		sample := stats.Sample{TPS: stats.Throughput(r.Series, from, to), Latency: map[string]float64{}}
		for _, l := range comparedLatencies {
			if v := r.Result.Figure("latency_ms." + l.key); v != nil {
				sample.Latency[l.key] = *v
			}
		}
		list = append(list, sample)
	}
	return list
}

// comparedFigures are the measurements of each side, as sums of figures by their names in a threshold.
var comparedFigures = []struct {
	name    string
	count   bool
	figures []string
}{
	{"TPS mean", false, []string{"tps.mean"}},
	{"TPS median", false, []string{"tps.median"}},
	{"TPS best second", false, []string{"tps.max"}},
	{"latency mean ms", false, []string{"latency_ms.mean"}},
	{"latency p50 ms", false, []string{"latency_ms.p50"}},
	{"latency p99 ms", false, []string{"latency_ms.p99"}},
	{"latency p99.9 ms", false, []string{"latency_ms.p999"}},
	{"latency max ms", false, []string{"latency_ms.max"}},
	{"committed", true, []string{"committed"}},
	{"aborted or unknown", true, []string{"aborted", "unknown"}},
	{"due and never sent", true, []string{"backlog", "shed"}},
	// All that was due; work that never ended has at least the time that it waited. So a side that does
	// less of its work is not faster.
	{"all due: p99 ms", false, []string{"latency_by_outcome_ms." + allDue + ".p99"}},
}

// throughput returns the throughput; its values are unknown if there is none.
func (d *Drive) throughput() Throughput {
	if d.TPS == nil {
		return Throughput{}
	}
	return *d.TPS
}

// meanOf returns the mean over the runs of a side. It is known only if the figures of each run are.
// A count that is the same in all runs has no decimals.
func meanOf(s *Side, count bool, figures ...string) string {
	sum := 0.0
	for _, r := range s.Runs {
		for _, name := range figures {
			x := r.Result.Figure(name)
			if x == nil {
				return NotKnown
			}
			sum += *x
		}
	}
	mean := sum / float64(len(s.Runs))
	switch {
	case mean >= 1000, count && mean == math.Trunc(mean):
		return Group(uint64(math.Round(mean)))
	case count:
		return fmt.Sprintf("%.1f", mean)
	}
	return fmt.Sprintf("%.3f", mean)
}
