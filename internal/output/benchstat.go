package output

import (
	"cmp"
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
}

// clientCPU is the unit of the client's processor time per transaction. The time of a whole run would grow with its
// transactions.
const clientCPU = "client-cpu-sec/tx"

// unsent is the unit of what was due at a rate and never sent, without which latencies of an
// open loop say little.
const unsent = "unsent-tx"

// writeBenchstat writes each run as one line of a benchmark, below lines that describe the run
// (https://golang.org/design/14313-benchmark-format). The key side names the difference between the sides, so that
// `benchstat -col side` compares them. Repeats of one step have one name. benchstat makes a table for each verdict,
// so that no invalid run is beside a valid one.
func writeBenchstat(w io.Writer, s *Set) error {
	var out strings.Builder
	for _, u := range benchUnits {
		fmt.Fprintf(&out, "Unit %s better=%s\n", u.unit, u.better)
	}
	fmt.Fprintf(&out, "Unit %s better=lower\nUnit %s better=lower\n", clientCPU, unsent)
	differ := sidesDiffer(s.Runs)
	given := map[string]bool{} // keys that have a value, which later lines have too
	for _, r := range s.Runs {
		fmt.Fprintf(&out, "\n# %s: %s\n", line(cmp.Or(r.Dir, strings.Join(r.Lead, " "))), line(cmp.Or(r.Result.Verdict, "unknown")))
		measured := benchLine(r, differ[clientsKey])
		if measured == "" {
			continue
		}
		var keys []report.Setting
		for _, key := range benchKeys(r) {
			if differ[key.Name] {
				r.Key.Value += ", " + cmp.Or(key.Value, "unknown")
			} else {
				keys = append(keys, key)
			}
		}
		if differ[clientsKey] {
			r.Key.Value += ", " + r.clients()
		}
		for _, key := range append(keys, r.Key, report.Setting{Name: "verdict", Value: cmp.Or(r.Result.Verdict, "unknown")}) {
			if key.Value != "" || given[key.Name] {
				fmt.Fprintln(&out, strings.TrimSpace(key.Name+": "+line(key.Value)))
				given[key.Name] = key.Value != ""
			}
		}
		out.WriteString(measured)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

const (
	sideKey    = "side"    // of a run of a comparison
	clientsKey = "clients" // a part of a benchmark's name
)

// benchKeys returns the keys that describe a run.
func benchKeys(r Run) []report.Setting {
	return []report.Setting{
		{Name: "stroppy", Value: r.Result.Stroppy}, {Name: "workload", Value: r.Result.Workload},
		{Name: "database", Value: strings.TrimSpace(r.Result.Database + " " + r.Result.DatabaseVersion)},
	}
}

// sidesDiffer returns the keys in which the sides of a comparison differ. As keys of their own they
// would keep benchstat from putting the sides into one row.
func sidesDiffer(runs []Run) map[string]bool {
	differ, first := map[string]bool{}, map[string]string{}
	for _, r := range runs {
		if r.Key.Name != sideKey {
			continue
		}
		for _, key := range append(benchKeys(r), report.Setting{Name: clientsKey, Value: r.clients()}) {
			if was, ok := first[key.Name]; ok && was != key.Value {
				differ[key.Name] = true
			}
			first[key.Name] = key.Value
		}
	}
	delete(differ, "workload") // which is the benchmark's name
	return differ
}

// benchLine returns the measurements of a run; empty if there are none.
func benchLine(r Run, unnamed bool) string {
	count := r.figure("committed")
	if count == nil || *count == 0 {
		return ""
	}
	text := "Benchmark" + benchName(r.Result.Workload)
	if r.Step != "" {
		text += "/" + r.Step
	}
	if clients := r.clients(); clients != "" && !unnamed {
		text += "/" + clients
	}
	text += fmt.Sprintf(" %.0f", *count)
	for _, u := range benchUnits {
		if x := r.figure(u.figure); x != nil {
			text += fmt.Sprintf(" %.6g %s", *x*u.scale, u.unit)
		}
	}
	if seconds, ok := r.Result.ClientSeconds(); ok {
		text += fmt.Sprintf(" %.6g %s", seconds, clientCPU)
	}
	if rate := r.figure("rate"); rate != nil && *rate > 0 {
		text += r.unsent()
	}
	return text + "\n"
}

// unsent writes how many due transactions were never sent, if that is known.
func (r Run) unsent() string {
	n, known := r.Figs[unsent]
	if waiting, shed := r.figure("backlog"), r.figure("shed"); waiting != nil && shed != nil {
		n, known = *waiting+*shed, true
	}
	if !known {
		return ""
	}
	return fmt.Sprintf(" %.0f %s", n, unsent)
}

// clients returns the number of clients as a part of a benchmark's name; empty if the step has it.
func (r Run) clients() string {
	if n := r.figure(clientsKey); n != nil && !strings.HasPrefix(r.Step, clientsKey+"=") {
		return fmt.Sprintf("%s=%.0f", clientsKey, *n)
	}
	return ""
}

// benchName returns the name of a workload's benchmark, which begins with a capital letter.
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
