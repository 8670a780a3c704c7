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
			return fmt.Errorf("compare the runs: %s ran %s and %s ran %s, whose measurements mean different things",
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
	var values []string
	for _, r := range runs {
		values = append(values, of(r.Result))
	}
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
	var values []string
	for i := range sides {
		values = append(values, clean(distinct(sides[i].Runs, of)))
	}
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
			if v := d.Latency.of(l.key); v != nil {
				sample.Latency[l.key] = *v
			}
		}
		list = append(list, sample)
	}
	return list
}

var comparedFigures = []struct {
	name  string
	count bool
	of    func(*Drive) *float64
}{
	{"TPS mean", false, func(d *Drive) *float64 { return d.throughput().Mean }},
	{"TPS median", false, func(d *Drive) *float64 { return d.throughput().Median }},
	{"TPS best second", false, func(d *Drive) *float64 { return d.throughput().Max }},
	{"latency mean ms", false, func(d *Drive) *float64 { return d.Latency.of("mean") }},
	{"latency p50 ms", false, func(d *Drive) *float64 { return d.Latency.of("p50") }},
	{"latency p99 ms", false, func(d *Drive) *float64 { return d.Latency.of("p99") }},
	{"latency p99.9 ms", false, func(d *Drive) *float64 { return d.Latency.of("p999") }},
	{"latency max ms", false, func(d *Drive) *float64 { return d.Latency.of("max") }},
	{"committed", true, func(d *Drive) *float64 { return new(float64(d.Committed)) }},
	{"aborted or unknown", true, func(d *Drive) *float64 { return new(float64(d.Aborted + d.Unknown)) }},
	{"due and never sent", true, func(d *Drive) *float64 { return new(float64(d.Backlog + d.Shed)) }},
	// All that was due; work that never ended has at least the time that it waited. So a side that does
	// less of its work is not faster.
	{"all due: p99 ms", false, func(d *Drive) *float64 { return d.Outcomes[allDue].of("p99") }},
}

// throughput returns the throughput; its values are unknown if there is none.
func (d *Drive) throughput() Throughput {
	if d.TPS == nil {
		return Throughput{}
	}
	return *d.TPS
}

// meanOf returns the mean over the runs of a side. It is known only if the value of each run is.
// A count that is the same in all runs has no decimals.
func meanOf(s *Side, count bool, of func(*Drive) *float64) string {
	sum := 0.0
	for _, r := range s.Runs {
		v := of(r.Result.Drive)
		if v == nil {
			return NotKnown
		}
		sum += *v
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
