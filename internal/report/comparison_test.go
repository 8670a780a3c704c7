package report

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stroppy/internal/stats"
)

// recorded is a run of so many transactions each second.
func recorded(dir, workload, verdict string, tps ...uint64) Recorded {
	mean := 0.0
	r := Recorded{Dir: dir}
	for i, n := range tps {
		r.Series = append(r.Series, stats.Second{Second: i, Committed: n})
		mean += float64(n) / float64(len(tps))
	}
	r.Result = &Result{
		Workload: workload, Verdict: verdict, Database: "PostgreSQL", Load: &Load{Accounts: 1000},
		Drive: &Drive{Seconds: float64(len(tps)), TPS: &Throughput{Mean: &mean}, Latency: &Latency{P50: 1, P99: 2}},
	}
	return r
}

var unwrapped = Options{Width: Unwrapped, Detail: Full}

func side(name string, runs ...Recorded) Side { return Side{Name: name, Runs: runs} }

func compared(t *testing.T, sides ...Side) string {
	t.Helper()
	var out bytes.Buffer
	if err := data(t, sides, "").WriteText(&out, unwrapped); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// series of twenty seconds about a mean.
func about(mean uint64) []uint64 {
	var list []uint64
	for i := range uint64(20) {
		list = append(list, mean-10+(i*7)%21)
	}
	return list
}

func TestComparisonShowsOnlyCertainDifferences(t *testing.T) {
	same := compared(t, side("a", recorded("a", "bank", "valid", about(1000)...)), side("b", recorded("b", "bank", "valid", about(1000)...)))
	if !strings.Contains(same, "no difference shown") || strings.Contains(same, "Not the same") {
		t.Errorf("two equal runs:\n%s", same)
	}
	other := recorded("b", "bank", "invalid", about(2000)...)
	other.Result.Load.Accounts = 5000
	other.Result.Scenario = []Setting{{Name: "update", Value: "rmw"}, {Name: "seed", Value: "7"}}
	text := compared(t, side("a", recorded("a", "bank", "valid", about(1000)...)), side("b", other))
	for _, want := range []string{"verdict           valid | invalid", "accounts          1,000 | 5,000", "update            default | rmw", "2.0", "higher"} {
		if !strings.Contains(text, want) {
			t.Errorf("the comparison has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "seed") || strings.Index(text, "Not the same") > strings.Index(text, "TPS mean") {
		t.Errorf("the differences do not stand first, or the seed is one:\n%s", text)
	}
}

// TestRepeatedRunsGivePercentilesIntervals checks that with repeats the percentiles have intervals too.
func TestRepeatedRunsGivePercentilesIntervals(t *testing.T) {
	var a, b []Recorded
	for i := range uint64(4) {
		a = append(a, recorded("a", "bank", "valid", about(1000+i)...))
		b = append(b, recorded("b", "bank", "valid", about(1500+i)...))
	}
	text := compared(t, side("a", a...), side("b", b...))
	if !strings.Contains(text, "4 runs") || strings.Contains(text, "takes repeated runs") {
		t.Errorf("four runs of each:\n%s", text)
	}
}

// TestComparisonPutsTablesSideBySide checks that the tables of a workload stand side by side, row by row. A table that
// a run lacks is left out.
func TestComparisonPutsTablesSideBySide(t *testing.T) {
	run := func(dir, avg string) Recorded {
		r := recorded(dir, "events", "valid", about(1000)...)
		r.Result.Tables = []Table{
			{Title: "Times", Columns: []string{"", "avg [ms]"}, Rows: [][]string{{"event", avg}, {"commit", "5" + avg}, {}}},
			{Title: "Empty"},
		}
		return r
	}
	text := compared(t, side("a", run("1a", "1.1"), run("2a", "1.2")), side("b", run("b", "1.3")), side("c", recorded("c", "events", "valid", about(1000)...)))
	_, times, found := strings.Cut(text, "\nTimes\n")
	times, _, _ = strings.Cut(times, "  One row a run")
	var rows []string
	for line := range strings.Lines(times) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"run avg [ms]", "event A 1 1.1", "event A 2 1.2", "event B 1.3", "commit A 1 51.1", "commit A 2 51.2", "commit B 51.3"}
	if !found || !slices.Equal(rows, want) || strings.Contains(text, "Empty") {
		t.Errorf("the rows are %q, not %q:\n%s", rows, want, text)
	}
}

func TestComparisonRefusesUnequalRuns(t *testing.T) {
	bank := side("a", recorded("a", "bank", "valid", about(1000)...))
	idle := recorded("b", "bank", "unknown", about(1000)...)
	idle.Result.Drive = nil
	for why, sides := range map[string][]Side{
		"one only":              {bank},
		"mean different things": {bank, side("b", recorded("b", "kv", "valid", about(1000)...))},
		"had no load phase":     {bank, side("b", idle)},
	} {
		if _, err := Compare(sides, "", ""); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want a refusal with %q", err, why)
		}
	}
}

// TestComparisonFitsTheTerminal checks that on a terminal no line is wider than it is; elsewhere a ratio is one line.
func TestComparisonFitsTheTerminal(t *testing.T) {
	other := recorded("b", "bank", "invalid", 1000, 2000)
	other.Result.Scenario = []Setting{{Name: "description", Value: strings.Repeat("a long value ", 12)}}
	c := data(t, []Side{side("a", recorded("a", "bank", "valid", 1000, 1100)), side(strings.Repeat("b", 20), other)}, "")
	for width, wide := range map[int]bool{80: false, 0: true} {
		var out bytes.Buffer
		if err := c.WriteText(&out, Options{Width: cmp.Or(width, Unwrapped), Detail: Full}); err != nil {
			t.Fatal(err)
		}
		found := false
		for line := range strings.Lines(out.String()) {
			found = found || utf8.RuneCountInString(line) > 81
		}
		if found != wide || strings.Contains(out.String(), "that takes repeated runs, or runs of 10 seconds at least\n") != wide {
			t.Errorf("at the width %d:\n%s", width, &out)
		}
	}
}

// TestStarvedSideIsAWarning checks that a comparison warns of runs on a starved host, in its text too.
func TestStarvedSideIsAWarning(t *testing.T) {
	side := func(name string, warnings ...Warning) Side {
		r := driven(base("valid", ""))
		r.Warnings = warnings
		return Side{Name: name, Runs: []Recorded{{Dir: "runs/" + name, Result: r}}}
	}
	d, err := Compare([]Side{side("one"), side("other", Warning{Kind: HostSteal, Seconds: 1, OfSeconds: 2, Share: 0.3})}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := d.WriteText(&out, unwrapped); err != nil {
		t.Fatal(err)
	}
	if want := "warning           B: the host was starved in other."; !strings.Contains(out.String(), want) || strings.Contains(out.String(), "A: the host") {
		t.Errorf("%q is not in\n%s", want, &out)
	}
}
