package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/report"
)

// TestServerMetricsAreRecorded checks that a run on each available engine records the metrics of the server and the
// environment.
func TestServerMetricsAreRecorded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	for kind, want := range map[string]string{"postgres": "wal_bytes_per_s", "mariadb": "redo_bytes_per_s", "redis": "commands_per_s", "etcd": "wal_syncs_per_s"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			code, stdout, stderr := call(t, "run", "bank", "--cluster", kind, "--accounts", "500", "--clients", "4", "--rate", "200", "--duration", "3s", "--json", "--out", dir)
			if code == 3 && strings.Contains(stderr, "install the Debian package") {
				t.Skip("skipped engine: " + kind + ": " + stderr)
			}
			r := new(report.Result)
			if err := json.Unmarshal([]byte(stdout), r); err != nil || code != 0 {
				t.Fatalf("code %d, %v: %s", code, err, stderr)
			}
			m := r.ServerMetrics
			if m == nil || m.Asked < 2 || m.Missed > 0 || m.Error != "" {
				t.Fatalf("the result has %+v", m)
			}
			file, err := os.Open(filepath.Join(dir, "server.csv"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			rows, err := report.ReadServer(file, m.Columns)
			column := slices.IndexFunc(m.Columns, func(c report.ServerColumn) bool { return c.Name == want })
			if err != nil || column < 0 || !slices.ContainsFunc(rows, func(row report.ServerRow) bool { return row.Values[column] > 0 }) {
				t.Errorf("%s was never above 0: %v, %v", want, rows, err)
			}
			page, err := os.ReadFile(filepath.Join(dir, report.PageName))
			if err != nil || !strings.Contains(string(page), m.Columns[column].Chart) {
				t.Errorf("the page does not show %q: %v", m.Columns[column].Chart, err)
			}
			if e := r.Environment; e == nil || e.Servers != report.OnThisMachine || len(e.ServerData) != 1 || e.RunDirectory == nil || e.MemoryBytes == 0 || e.Build.Go == "" {
				t.Errorf("the environment is %+v", e)
			}
		})
	}
}
