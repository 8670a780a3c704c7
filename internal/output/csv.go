package output

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
)

// column is one column of the CSV: its name, and its value of a run; empty if it is not known.
type column struct {
	name string
	of   func(Run) string
}

// columns returns the columns of the CSV behind those in which the runs differ. Measurements have
// their names in result.json, with the unit.
func columns() []column {
	list := []column{
		{"dir", func(r Run) string { return r.Dir }},
		{"started_at", func(r Run) string { return r.Result.StartedAt }},
		{"workload", func(r Run) string { return r.Result.Workload }},
		{"database", func(r Run) string { return r.Result.Database }},
		{"database_version", func(r Run) string { return r.Result.DatabaseVersion }},
		{"verdict", func(r Run) string { return r.Result.Verdict }},
		{"objectives", func(r Run) string { return r.Result.ObjectivesStatus() }},
	}
	for _, figure := range []string{
		"clients", "seconds", "rate", "committed", "aborted", "unknown", "retries", "conflicts",
		"tps.mean", "tps.median", "tps.max",
		"latency_ms.mean", "latency_ms.p50", "latency_ms.p90", "latency_ms.p95", "latency_ms.p99", "latency_ms.p999", "latency_ms.max",
		"service_ms.mean", "service_ms.p50", "service_ms.p99", "service_ms.p999",
		"client.cpu_seconds", "client.max_rss_bytes", "footprint_bytes",
		"tps_interval.low", "tps_interval.high", "backlog", "shed",
	} {
		list = append(list, column{figure, func(r Run) string { return number(r, figure) }})
	}
	return append(list, column{"reason", func(r Run) string { return line(r.Result.Reason) }})
}

// number returns the exact value of a figure of a run; empty if it is not known.
func number(r Run, figure string) string {
	x, ok := r.figure(figure)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// writeCSV writes a line of column names and then a line for each run. The form is RFC 4180, but lines end in a
// single newline.
func writeCSV(w io.Writer, s *Set) error {
	out, cells := csv.NewWriter(w), slices.Clone(s.Lead)
	for _, c := range columns() {
		cells = append(cells, c.name)
	}
	if err := out.Write(cells); err != nil {
		return err
	}
	for _, r := range s.Runs {
		cells = append(cells[:0], r.Lead...)
		for _, c := range columns() {
			cells = append(cells, c.of(r))
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
