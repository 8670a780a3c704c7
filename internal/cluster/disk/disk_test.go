//go:build linux

package disk

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/netem"
)

// TestMain lets this test program serve file systems and be the server of a node.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case host.FaultFSCommand:
			if err := Serve(); err != nil {
				os.Stderr.WriteString(err.Error() + "\n")
				os.Exit(1)
			}
			os.Exit(0)
		case writerCommand:
			os.Exit(writer(os.Args[2:]))
		case ownerCommand:
			os.Exit(owner())
		}
	}
	os.Exit(m.Run())
}

// needFUSE skips a test if no file system can be mounted.
func needFUSE(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("skipped engine: fuse: install the Debian package fuse3 and load the kernel's module fuse")
	}
	if _, err := exec.LookPath("fusermount3"); err != nil && os.Geteuid() != 0 {
		t.Skip("skipped engine: fuse: install the Debian package fuse3, or be root")
	}
}

// fast returns a folder in which fsync costs nothing.
func fast(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "stroppy-test-")
	if err != nil {
		dir, err = os.MkdirTemp("", "stroppy-test-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// newNode returns a node with the file system in parent. Its server only sleeps unless another command is given.
func newNode(t testing.TB, parent string, command ...string) *host.Server {
	t.Helper()
	needFUSE(t)
	network, err := netem.New(t.Context(), 1, true)
	if err != nil {
		t.Fatal(err)
	}
	if command == nil {
		command = []string{"sleep", "3600"}
	}
	dir := filepath.Join(parent, "n0")
	n := host.NewServer(context.Background(), 0, network.Host(0), dir, dir+".log", host.Program{
		Command: func(context.Context) (*exec.Cmd, error) { return exec.Command(command[0], command[1:]...), nil },
		Ready:   func(context.Context) error { return nil },
		Join:    func(context.Context) error { return nil },
		Death:   syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: time.Second, FaultFS: true,
	})
	t.Cleanup(func() {
		silent(t, n)
		if err := errors.Join(n.Close(), network.Close()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(parent, ".n0.disk")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the store after Close: %v", err)
		}
		if mounts := mountsIn(t, parent); len(mounts) > 0 {
			t.Errorf("mounts after Close: %v", mounts)
		}
	})
	if err := n.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// silent checks that the process that serves a node's file system has logged nothing, such as a data race.
func silent(t testing.TB, n cluster.LocalNode) {
	t.Helper()
	log := filepath.Join(filepath.Dir(n.Dir()), "."+filepath.Base(n.Dir())+".disk", "log")
	if text, err := os.ReadFile(log); err == nil && len(text) > 0 {
		t.Errorf("the process that serves the file system of %s says: %s", n.Name(), text)
	}
}

func mountsIn(t testing.TB, folder string) (found []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[4], folder) {
			found = append(found, fields[4])
		}
	}
	return found
}

// powerCut kills the node, loses its unsynced writes, and starts it again.
func powerCut(t testing.TB, n *host.Server) {
	t.Helper()
	if err := errors.Join(n.Kill(t.Context()), n.LoseUnsynced(), n.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// TestUnmountLeavesData checks that only the data stay behind, unchanged.
func TestUnmountLeavesData(t *testing.T) {
	needFUSE(t)
	parent := fast(t)
	if err := os.MkdirAll(filepath.Join(parent, "n0", "below"), 0o750); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, parent)
	path := filepath.Join(n.Dir(), "below", "file")
	if err := os.WriteFile(path, []byte("data"), 0o640); err != nil {
		t.Fatal(err)
	}
	if mounts := mountsIn(t, parent); len(mounts) != 1 || mounts[0] != n.Dir() {
		t.Errorf("mounts: %v", mounts)
	}
	if err := n.DiskFaults(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(n.Close(), n.Close()); err != nil {
		t.Error(err)
	}
	if err := n.DiskFaults(); err == nil {
		t.Error("a node that was closed has a layer yet")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "data" {
		t.Errorf("after Close: %q, %v", text, err)
	}
}

// TestEndOfFileSystemProcessIsAnError checks that the node reports an error when the process that serves its file
// system ends. The end must leave nothing behind.
func TestEndOfFileSystemProcessIsAnError(t *testing.T) {
	n := newNode(t, fast(t))
	layer := layerOf(t, n)
	if err := syscall.Kill(layer, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(time.Minute); n.DiskFaults() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("the end of the process is not noticed")
		}
	}
	for what, err := range map[string]error{
		"DiskFaults": n.DiskFaults(), "Sync": n.Sync(), "LoseUnsynced": errors.Join(n.Kill(t.Context()), n.LoseUnsynced()), "Restart": n.Restart(t.Context()),
	} {
		if err == nil || !strings.Contains(err.Error(), "is gone because its process has ended") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := os.ReadDir(n.Dir()); !errors.Is(err, unix.ENOTCONN) {
		t.Errorf("the folder: %v", err)
	}
}

// layerOf finds the process that serves a node's file system.
func layerOf(t testing.TB, n *host.Server) int {
	t.Helper()
	records, err := host.Records()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.PID != os.Getpid() {
			continue
		}
		mounted := false
		for _, l := range r.Made {
			mounted = mounted || l.Kind == host.LeftMount && l.Name == n.Dir()
			if mounted && l.Kind == host.LeftProcess {
				return l.PID
			}
		}
	}
	t.Fatalf("no record names the process: %+v", records)
	return 0
}

// TestLoseUnsyncedRejectsRunningServer checks that LoseUnsynced fails for a running server and for a file that is
// open for writing.
func TestLoseUnsyncedRejectsRunningServer(t *testing.T) {
	t.Parallel() // it waits
	n := newNode(t, fast(t))
	if err := n.LoseUnsynced(); err == nil || !strings.Contains(err.Error(), "it is running") {
		t.Errorf("while it runs: %v", err)
	}
	path := filepath.Join(n.Dir(), "open")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.LoseUnsynced(); err == nil || !strings.Contains(err.Error(), "has open open for writing") {
		t.Errorf("while a file is open: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a refused loss lost: %v", err)
	}
	if err := errors.Join(f.Close(), n.LoseUnsynced()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that was not synced: %v", err)
	}
}
