package cli_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/cluster/clustertest"
)

// TestFailoverInput holds what is said, and with which exit code, of a cluster that fails over
// and cannot be started as it was asked for.
func TestFailoverInput(t *testing.T) {
	if testing.Short() {
		t.Skip("looks for the programs of clusters")
	}
	empty := clustertest.OpenDir(t)
	own, err := exec.LookPath("stroppy")
	clustertest.Must(t, err)
	for cluster, want := range map[string]struct {
		path string // where programs are looked for; empty: where they are
		code int
		says string
	}{
		"postgres:3?ttl=1s":           {"", 2, "the cluster's parameter ttl: it must be a time from 3s to 1h0m0s"},
		"postgres:3?retry_timeout=1s": {"", 2, "the cluster's parameter retry_timeout: it must be a time from 2s"},
		"postgres:3?bin=" + empty:     {"", 2, empty + " has no initdb"},
		"redis:3?bin=" + empty:        {"", 2, empty + " has no redis-server"},
		"redis:3?down-after=0s":       {"", 2, "the cluster's parameter down-after: "},
		"redis:3":                     {filepath.Dir(own), 3, "the program redis-server is not on this machine: install the Debian package redis-server"},
		"postgres:3":                  {filepath.Dir(own), 3, "install the Debian packages patroni, python3-etcd and etcd-server"},
	} {
		t.Run(cluster, func(t *testing.T) {
			if want.path != "" {
				t.Setenv("PATH", want.path)
			}
			code, out := called(t, clustertest.OpenDir(t), "run", "--cluster", cluster, "--duration", "1s", "--out", filepath.Join(t.TempDir(), "r"))
			lines := strings.Split(strings.TrimSpace(out), "\n")
			last := lines[len(lines)-1]
			if strings.Contains(last, "the Debian package postgresql") {
				t.Skip("skipped engine: postgres: install the Debian package postgresql")
			}
			if code != want.code || !strings.Contains(last, want.says) {
				t.Errorf("exit code %d and %q, want %d and %q", code, last, want.code, want.says)
			}
		})
	}
}
