//go:build linux

package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// of returns the processes with this temporary folder and the nodes with data in it.
func of(t *testing.T, state string) (found []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no process is seen in /proc: %v", err)
	}
	for _, path := range paths {
		// It may be gone; then both are empty.
		data, _ := os.ReadFile(path)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if bytes.Contains(data, []byte("TMPDIR="+state+"\x00")) || bytes.Contains(line, []byte(state+"/")) {
			found = append(found, filepath.Dir(path)+": "+string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}

// TestInterruptedClusterUpLeavesNothing checks that nothing of a cluster stays if `cluster up` ends before it has
// printed the URL.
func TestInterruptedClusterUpLeavesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("skipped engine: etcd: install the Debian package etcd-server")
	}
	etcd := func(found []string) bool { return strings.Contains(strings.Join(found, "\n"), "data-dir") }
	for _, c := range []struct {
		name   string
		signal os.Signal
		when   func(found []string) bool
	}{
		{"at once", os.Interrupt, func([]string) bool { return true }},
		{"while the holder begins", os.Interrupt, func(found []string) bool { return len(found) > 1 }},
		{"while the node begins", os.Interrupt, etcd},
		{"terminated while the node begins", syscall.SIGTERM, etcd},
		{"killed while the node begins", os.Kill, etcd},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var state string
			var p *process
			for tries := 5; ; tries-- {
				folder := t.TempDir()
				state, p = folder, startIn(t, folder, "cluster", "up", "etcd:1?loopback=on")
				t.Cleanup(func() { called(t, folder, "cluster", "down", "etcd:1?loopback=on") })
				p.goesOn(t, func() bool { return c.when(of(t, state)) })
				if err := p.cmd.Process.Signal(c.signal); err == nil {
					break
				} else if !errors.Is(err, os.ErrProcessDone) || tries == 0 { // on a busy machine it may be over before it is looked at
					t.Fatal(err)
				}
			}
			code, stdout, stderr := p.wait(t)
			if code == 0 || stdout != "" {
				t.Fatalf("it ended with %d and printed %q: %s", code, stdout, stderr)
			}
			left := of(t, state)
			if c.signal == os.Kill { // the holder finds out by itself
				for deadline := time.Now().Add(waitLimit); len(left) > 0 && time.Now().Before(deadline); left = of(t, state) {
					time.Sleep(20 * time.Millisecond)
				}
			}
			if len(left) > 0 {
				t.Errorf("these processes are left: %s", strings.Join(left, "\n"))
			}
			if _, reported := called(t, state, "cluster", "status"); reported != fmt.Sprintln("No cluster is up.") {
				t.Errorf("this is left: %s", reported)
			}
		})
	}
}
