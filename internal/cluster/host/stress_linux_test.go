package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster/cgroup"
	"stroppy/internal/cluster/wait"
)

// userVariable makes the test binary report why a user cannot stress processors.
const userVariable = "STROPPY_HOST_TEST_USER"

func init() {
	if uid := os.Getenv(userVariable); uid != "" {
		fmt.Println(unstressed(uid))
		os.Exit(1)
	}
}

// thisMachine returns this machine as the host of a node; end removes its record.
func thisMachine() (place *Host, end func() error, err error) {
	record, err := NewRecord("test")
	if err != nil {
		return nil, nil, err
	}
	return New(netip.AddrFrom4([4]byte{127, 0, 0, 1}), record, nil), record.Close, nil
}

// busy returns a node with a child that computes.
func busy(t *testing.T) *Server {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	place, end, err := thisMachine()
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
	s := NewServer(context.Background(), 0, place, dir, filepath.Join(dir, "log"), program)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), end()); err != nil {
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
	if err := s.tryGroup(); err != nil {
		t.Skipf("skipped engine: control groups: %v", err)
	}
}

// inGroup checks that all processes of a node are in a group, or that none is.
func inGroup(t *testing.T, s *Server, group cgroup.Group, want bool) {
	t.Helper()
	if err := wait.Until(t.Context(), wait.SeenWithin, func() error {
		if pids := s.PIDs(); len(pids) != 2 {
			return fmt.Errorf("the node has the processes %v", pids)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	for _, pid := range s.PIDs() {
		if is, err := cgroup.ByPID(pid); err != nil || (is == group) != want {
			t.Errorf("process %d is in %s: %v", pid, is.Dir(), err)
		}
	}
}

// TestStressLastsUntilHealDespiteRestart checks that the computing processes share the control group of their node
// until the heal, also when the node is restarted. Nothing may be left of them.
func TestStressLastsUntilHealDespiteRestart(t *testing.T) {
	s := busy(t)
	needGroups(t, s)
	e, err := s.Stress(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(e.Seen)
	x := s.stress.Load()
	inGroup(t, s, x.group, true)
	if _, err := s.Stress(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "they are stressed already") {
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

// starved bounds the time until a node has got less processor time than its neighbour.
const starved = 15 * time.Second

// beside starts a process that computes beside a node. It has its own session. Otherwise autogroup would make it
// share with all other tests: see sched(7).
func beside(t *testing.T) (pid int) {
	t.Helper()
	neighbour := exec.Command("sh", "-c", computes)
	neighbour.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the process would end with this thread
	if err := neighbour.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = neighbour.Process.Kill(), neighbour.Wait()
		runtime.UnlockOSThread()
	})
	return neighbour.Process.Pid
}

// TestStressSlowsOnlyItsNode checks that the node gets less processor time than its neighbour.
func TestStressSlowsOnlyItsNode(t *testing.T) {
	s := busy(t)
	needGroups(t, s)
	neighbour := beside(t)
	e, err := s.Stress(t.Context(), 4*runtime.NumCPU())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(e.Seen)
	own := s.PIDs()
	both := append(slices.Clone(own), neighbour)
	before, err := usageOf(both)
	if err != nil {
		t.Fatal(err)
	}
	if err := wait.Until(t.Context(), starved, func() error {
		time.Sleep(200 * time.Millisecond)
		now, err := usageOf(both)
		if err != nil {
			return err
		}
		node, other := now.since(before, own...), now.since(before, neighbour)
		found := fmt.Sprintf("of %v the node ran for %v and waited for %v, its neighbour ran for %v", now.at.Sub(before.at), node.ran, node.waited, other.ran)
		// The node may not have run at all, and a wait that continues is not counted. The neighbour must have run
		// many times, because few times could be twice as many by chance.
		if other.ran < 200*time.Millisecond || other.ran <= 2*node.ran {
			return errors.New(found)
		}
		t.Log(found)
		return nil
	}); err != nil {
		t.Errorf("the node does not starve, or its neighbour starves too: %v", err)
	}
	if err := s.stress.Load().processes()[3].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := e.Still(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("when one of the processes has ended: %v", err)
	}
	group := s.stress.Load().group
	if err := s.Close(); err != nil { // as for a node that is removed meanwhile
		t.Error(err)
	}
	if _, err := os.Stat(group.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control group of a node that was removed is there yet: %v", err)
	}
	if _, err := e.Heal(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestStressRefusesStoppedNode checks that a node that does not run cannot be stressed.
func TestStressRefusesStoppedNode(t *testing.T) {
	s := busy(t)
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stress(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "stress the processors of n0: it is not running") {
		t.Errorf("of a dead node: %v", err)
	}
}

// unstressed returns why another user cannot stress processors.
func unstressed(uid string) string {
	id, err := strconv.Atoi(uid)
	if err == nil {
		err = syscall.Setuid(id)
	}
	if err != nil {
		return err.Error()
	}
	place, end, err := thisMachine()
	if err != nil {
		return err.Error()
	}
	s := NewServer(context.Background(), 0, place, "/", "/dev/null", Program{})
	return fmt.Sprintf("%v %v", s.tryGroup(), end())
}

// TestStressWithoutRightsIsAnError checks the error for a user without rights.
func TestStressWithoutRightsIsAnError(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can become another user")
	}
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	place, end, err := thisMachine()
	if err != nil {
		t.Fatal(err)
	}
	// If root cannot make a group either, the error is about that.
	needGroups(t, NewServer(context.Background(), 0, place, "/", "/dev/null", Program{}))
	if err := errors.Join(end(), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	// The folder belongs to another user, so the record is in a new folder below it.
	cmd.Env = append(os.Environ(), userVariable+"=65534", "TMPDIR="+dir)
	said, _ := cmd.CombinedOutput() // it ends with status 1
	out := string(said)
	if !strings.HasPrefix(out, "make the control group /") || !strings.HasSuffix(out, "permission denied: run as root, or by `systemd-run --user --scope -p Delegate=cpu` <nil>\n") {
		t.Errorf("a user without rights reads: %s", out)
	}
}
