//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// called runs stroppy with its own state folder. It returns the exit code and the output.
func called(t *testing.T, state string, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.Command("stroppy", args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + state}
	text, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(text)
}

// TestLeftoversAreReportedAndCleared checks that `cluster status` reports the leftovers of a killed run and that the
// next run clears them. A run whose terminal is closed leaves nothing.
func TestLeftoversAreReportedAndCleared(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("skipped engine: etcd: install the Debian package etcd-server")
	}
	for _, c := range []struct {
		name   string
		signal os.Signal
		left   bool
	}{{"killed", os.Kill, true}, {"terminal closed", syscall.SIGHUP, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir() // no other test's stroppy clears what is left here
			p := startIn(t, state, "run", "--cluster", "etcd:1", "--accounts", "100", "--clients", "2", "--duration", "30s", "--out", "r")
			p.drives(t, "r")
			p.signal(t, c.signal)
			p.wait(t)
			_, reported := called(t, state, "cluster", "status")
			if left := strings.Contains(reported, "left") && strings.Contains(reported, "etcd:1"); left != c.left {
				t.Errorf("something is left: %v, want %v: %s", left, c.left, reported)
			}
			code, out := called(t, state, "run", "--db", "noop:", "--count", "10", "--clients", "1", "--no-check", "--out", filepath.Join(t.TempDir(), "r"))
			if code != 0 || strings.Contains(out, "cleared:") != c.left {
				t.Errorf("the next run ended with %d: %s", code, out)
			}
			if _, reported := called(t, state, "cluster", "status"); strings.Contains(reported, "etcd:1") {
				t.Errorf("after the next run, this is left: %s", reported)
			}
		})
	}
}
