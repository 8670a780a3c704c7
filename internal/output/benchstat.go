package output

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"stroppy/internal/report"
)

// benchUnits are the measurements of a run in Go's benchmark format, and which way is better.
// benchstat gives times in seconds their usual prefixes.
var benchUnits = []struct {
	unit, better, figure string
	scale                float64
}{
	{"tx/s", "higher", "tps.mean", 1},
	{"mean-sec", "lower", "latency_ms.mean", 1e-3},
	{"p50-sec", "lower", "latency_ms.p50", 1e-3},
	{"p99-sec", "lower", "latency_ms.p99", 1e-3},
	{"p99.9-sec", "lower", "latency_ms.p999", 1e-3},
	{"client-cpu-sec", "lower", "client.cpu_seconds", 1},
}

// writeBenchstat writes each run as one line of a benchmark, below lines that say what was run
// (https://golang.org/design/14313-benchmark-format). Runs of one side have one value of the
// key side, so that `benchstat -col side` compares the sides; a line with # is no key to it.
func writeBenchstat(w io.Writer, runs []Run, _ *report.ComparisonData) error {
	var out strings.Builder
	for _, u := range benchUnits {
		fmt.Fprintf(&out, "Unit %s better=%s\n", u.unit, u.better)
	}
	for _, r := range runs {
		fmt.Fprintf(&out, "\n# %s: %s\n", line(r.Dir), r.Result.Verdict)
		for _, c := range [][2]string{
			{"stroppy", r.Result.Stroppy}, {"workload", r.Result.Workload},
			{"database", strings.TrimSpace(r.Result.Database + " " + r.Result.DatabaseVersion)},
			{"side", r.Side},
		} {
			if c[1] != "" {
				fmt.Fprintf(&out, "%s: %s\n", c[0], line(c[1]))
			}
		}
		d := r.Result.Drive
		if d == nil || d.Committed == 0 {
			continue // there is no measurement
		}
		fmt.Fprintf(&out, "Benchmark%s/clients=%d %d", benchName(r.Result.Workload), d.Clients, d.Committed)
		for _, u := range benchUnits {
			if x, ok := r.Result.Figure(u.figure); ok {
				fmt.Fprintf(&out, " %.6g %s", x*u.scale, u.unit)
			}
		}
		out.WriteString("\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// benchName is a workload's name as that of a benchmark, which begins with a capital letter.
func benchName(workload string) string {
	letters := []rune(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, workload))
	if len(letters) == 0 {
		return "Run"
	}
	letters[0] = unicode.ToUpper(letters[0])
	return string(letters)
}
