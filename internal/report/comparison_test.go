package report

import (
	"bytes"
	"strings"
	"testing"

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

func side(name string, runs ...Recorded) Side { return Side{Name: name, Runs: runs} }

func compared(t *testing.T, sides ...Side) string {
	t.Helper()
	var out bytes.Buffer
	if err := data(t, sides, "").WriteText(&out); err != nil {
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

func TestCompare(t *testing.T) {
	same := compared(t, side("a", recorded("a", "bank", "valid", about(1000)...)), side("b", recorded("b", "bank", "valid", about(1000)...)))
	if !strings.Contains(same, "no difference shown") || strings.Contains(same, "Not the same") {
		t.Errorf("two equal runs:\n%s", same)
	}
	other := recorded("b", "bank", "invalid", about(2000)...)
	other.Result.Load.Accounts = 5000
	other.Result.Scenario = []Setting{{Name: "update", Value: "rmw"}, {Name: "seed", Value: "7"}}
	text := compared(t, side("a", recorded("a", "bank", "valid", about(1000)...)), side("b", other))
	for _, want := range []string{"verdict: valid | invalid", "accounts: 1,000 | 5,000", "update: default | rmw", "2.0", "higher"} {
		if !strings.Contains(text, want) {
			t.Errorf("the comparison has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "seed") || strings.Index(text, "Not the same") > strings.Index(text, "TPS mean") {
		t.Errorf("the differences do not stand first, or the seed is one:\n%s", text)
	}
}

// TestCompareRepeats: with repeats the percentiles have intervals too.
func TestCompareRepeats(t *testing.T) {
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

func TestCompareRefuses(t *testing.T) {
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
