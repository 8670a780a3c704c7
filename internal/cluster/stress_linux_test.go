package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster/cgroup"
)

// busy is a node with a child that computes.
func busy(t *testing.T) *Server {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	network, err := NewNetwork(t.Context(), 1, true)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := Program{
		Command: func(context.Context) (*exec.Cmd, error) {
			return exec.Command("sh", "-c", "(while :; do :; done) & wait"), nil
		},
		Ready: func(ctx context.Context) error { return nil },
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: time.Second,
	}
	s := NewServer(0, network.Host(0), dir, filepath.Join(dir, "log"), program)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), network.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func needGroups(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stressable(); err != nil {
		t.Skipf("skipped engine: control groups: %v", err)
	}
}

// inGroup holds that all processes of a node are in a group, or that none is.
func inGroup(t *testing.T, s *Server, group cgroup.Group, want bool) {
	t.Helper()
	if err := Until(t.Context(), SeenWithin, func() error {
		if pids := s.PIDs(); len(pids) != 2 {
			return fmt.Errorf("the node has the processes %v", pids)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	for _, pid := range s.PIDs() {
		if is, err := cgroup.Of(pid); err != nil || (is == group) != want {
			t.Errorf("process %d is in %s: %v", pid, is.Dir(), err)
		}
	}
}

// TestStress holds that processes get as much of the processors as the node's own, which is started
// again among them, and that nothing is left of them.
func TestStress(t *testing.T) {
	s := busy(t)
	needGroups(t, s)
	e, err := s.Stress(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(e.Seen)
	x := s.stress.Load()
	inGroup(t, s, x.group, true)
	if _, err := s.Stress(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "other processes take them up already") {
		t.Errorf("once more: %v", err)
	}
	if err := errors.Join(s.Kill(t.Context()), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	inGroup(t, s, x.group, true)
	if err := e.Still(t.Context()); err != nil {
		t.Error(err)
	}
	seen, err := e.Heal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(seen)
	inGroup(t, s, x.group, false)
	if _, err := os.Stat(x.group.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control group is there yet: %v", err)
	}
	for _, p := range x.processes() {
		if _, err := os.Stat("/proc/" + strconv.Itoa(p.PID())); err == nil {
			t.Errorf("process %d computes yet", p.PID())
		}
	}
	if _, err := e.Heal(t.Context()); err != nil {
		t.Errorf("a second heal: %v", err)
	}
}

// TestStressStarves holds that the node gets less of the processors than its neighbour.
func TestStressStarves(t *testing.T) {
	s := busy(t)
	needGroups(t, s)
	neighbour, err := s.host.Start(exec.Command("sh", "-c", computes), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = neighbour.Kill() }()
	e, err := s.Stress(t.Context(), 8)
	if err != nil {
		t.Fatal(err)
	}
	own, beside := s.PIDs(), neighbour.PID()
	before, err := usageOf(append(own, beside))
	if err == nil {
		time.Sleep(600 * time.Millisecond)
	}
	now, errNow := usageOf(append(own, beside))
	if err := errors.Join(err, errNow); err != nil {
		t.Fatal(err)
	}
	node, other := now.since(before, own...), now.since(before, beside)
	t.Logf("%s; of %v the node ran for %v and waited for %v, its neighbour ran for %v", e.Seen, now.at.Sub(before.at), node.ran, node.waited, other.ran)
	if other.ran <= 2*node.ran { // it may not have run at all, and of a wait that goes on nothing is known
		t.Error("the node does not starve, or its neighbour starves too")
	}
	if err := s.stress.Load().processes()[3].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := e.Still(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("when one of the processes has ended: %v", err)
	}
	group := s.stress.Load().group
	if err := s.Close(); err != nil { // of a node that is removed meanwhile
		t.Error(err)
	}
	if _, err := os.Stat(group.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control group of a node that was removed is there yet: %v", err)
	}
	if _, err := e.Heal(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestStressOfTheDead holds that a node which does not run has no processors to share.
func TestStressOfTheDead(t *testing.T) {
	s := busy(t)
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stress(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "take up the processors of n0: it is not running") {
		t.Errorf("of a dead node: %v", err)
	}
}

// unstressed is why another user cannot take up processors.
func unstressed(uid string) string {
	id, err := strconv.Atoi(uid)
	if err == nil {
		err = syscall.Setuid(id)
	}
	if err != nil {
		return err.Error()
	}
	n, err := NewNetwork(context.Background(), 1, true)
	if err != nil {
		return err.Error()
	}
	s := NewServer(0, n.Host(0), "/", "/dev/null", Program{})
	return fmt.Sprintf("%v %v", s.Stressable(), n.Close())
}

// TestStressNeedsRights holds what a user without rights reads.
func TestStressNeedsRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can become another user")
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir) // which is not that user's
	t.Setenv("TMPDIR", dir)
	out, _ := inRole(t.Context(), "unstressed 65534").CombinedOutput() // every part ends with status 1
	if !strings.HasPrefix(string(out), "make the control group /") || !strings.HasSuffix(string(out), "permission denied: run as root, or by `systemd-run --user --scope -p Delegate=cpu` <nil>\n") {
		t.Errorf("a user without rights reads: %s", out)
	}
}
