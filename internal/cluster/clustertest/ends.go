package clustertest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/system"
	"stroppy/internal/cluster/wait"
)

// NoClockFiles checks that no process with a changed clock has left files of libfaketime in /dev/shm since a time.
// Processes of other tests that are just ending get some time.
func NoClockFiles(t *testing.T, since time.Time) {
	t.Helper()
	clock := regexp.MustCompile(`faketime_(?:shm|sem)_(\d+)$`)
	left := func() (list []string) {
		all, err := filepath.Glob("/dev/shm/*faketime*")
		Must(t, err)
		for _, path := range all {
			pid := clock.FindStringSubmatch(path)
			if info, err := os.Stat(path); pid == nil || err != nil || info.ModTime().Before(since) {
				continue
			}
			if _, err := os.Stat("/proc/" + pid[1]); err != nil {
				list = append(list, path)
			}
		}
		return list
	}
	for range 50 {
		if len(left()) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("left of steered clocks: %v", left())
}

// One checks the requirements on a cluster of one node, and stops it. check is called first unless it is nil.
func (k Kind) One(t *testing.T, check func(t *testing.T, c cluster.Local)) {
	dir := OpenDir(t)
	c := k.Start(t, cluster.Options{Nodes: 1, Dir: dir, Loopback: true, Params: k.Params})
	n, ctx := cluster.LocalNodes(c)[0], Within(t, WaitLimit)
	if n.Number() != 0 || n.Name() != "n0" || !strings.HasPrefix(n.Dir(), dir) || c.Network().Loopback() == "" || !strings.HasPrefix(k.address(t, c), "127.0.0.1:") {
		t.Errorf("%s is node %d in %s of %s", n.Name(), n.Number(), n.Dir(), c.URL())
	}
	if c.NodeURL(0) == "" || c.NodeURL(1) != "" {
		t.Errorf("the URLs of node 0 and 1 are %q and %q", c.NodeURL(0), c.NodeURL(1))
	}
	if check != nil {
		check(t, c)
	}
	p := k.Pay(t, c)
	if err := n.Replace(ctx); err == nil || !n.Running() {
		t.Errorf("the only node was replaced: %v", err)
	}
	if r, ok := c.(cluster.Resizer); ok {
		if err := r.Remove(ctx, 0); err == nil || !n.Running() {
			t.Errorf("the only node was removed: %v", err)
		}
	}
	Must(t, n.Kill(ctx))
	(&scene{TB: t, c: c, ctx: ctx}).down(n)
	Must(t, n.Restart(ctx))
	pause := 300 * time.Millisecond
	if k.Supervised {
		p.GoOn(20)
		crash(t, c, n)
		pause = 3 * time.Second / 2
	}
	Must(t, n.Pause(ctx))
	Must(t, wait.Sleep(ctx, pause))
	if !n.Running() {
		t.Error("the only node was ended because it was paused")
	}
	Must(t, n.Resume(ctx))
	Must(t, n.Terminate(ctx))
	Must(t, n.Restart(ctx))
	p.GoOn(20)
	p.EndWell("kill, pause and stop the only node")
	k.Gone(t, c, dir)
}

// crash kills the processes of a node although nobody asked for it. A supervisor must start it again.
func crash(t *testing.T, c cluster.Local, n cluster.LocalNode) {
	t.Helper()
	before := n.PIDs()
	for _, pid := range before {
		Must(t, system.Kill(pid, syscall.SIGKILL)) // it may have ended with the first
	}
	ctx := Within(t, WaitLimit)
	Must(t, wait.Retry(ctx, func() error {
		if after := n.PIDs(); len(after) == 0 || after[0] == before[0] {
			return fmt.Errorf("%s has the processes %v, and had %v when it crashed", n.Name(), after, before)
		}
		return c.WaitHealthy(ctx)
	}))
}

// address returns the HOST:PORT of the first node.
func (k Kind) address(t *testing.T, c cluster.Local) string {
	t.Helper()
	if k.Address != nil {
		return k.Address(c)
	}
	u, err := url.Parse(c.NodeURL(0))
	Must(t, err)
	return u.Host
}

// Gone stops a cluster in a folder, with one node paused, and checks that nothing is left of it.
func (k Kind) Gone(t *testing.T, c cluster.Local, dir string) {
	n, ctx := cluster.LocalNodes(c)[0], Within(t, WaitLimit)
	var pids []int
	for _, n := range cluster.LocalNodes(c) {
		pids = append(pids, n.PIDs()...)
	}
	address := k.address(t, c)
	if len(pids) == 0 || address == "" {
		t.Fatalf("found the processes %v at %q: this test would prove nothing", pids, address)
	}
	Must(t, n.Pause(ctx)) // Stop must end a paused node too
	Must(t, c.Stop())
	Must(t, c.Stop())
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	for _, pid := range pids {
		// A zombie exists until its parent has waited for it.
		Must(t, wait.Retry(ctx, func() error {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(text), ") Z ") {
				return fmt.Errorf("the process %d is there after Stop", pid)
			}
			return nil
		}))
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("something still listens on the node's port")
	}
	if err := n.Restart(ctx); !errors.Is(err, cluster.ErrStopped) {
		t.Errorf("a node of a stopped cluster was restarted: %v", err)
	}
	if r, ok := c.(cluster.Resizer); ok {
		if _, err := r.Add(ctx); !errors.Is(err, cluster.ErrStopped) {
			t.Errorf("a node was added to a stopped cluster: %v", err)
		}
	}
}

func logs(t testing.TB, c cluster.Local) {
	for _, n := range cluster.LocalNodes(c) {
		text, err := os.ReadFile(n.(interface{ Log() string }).Log())
		lines := strings.SplitAfter(string(text), "\n")
		t.Logf("the log of %s ends, %v:\n%s", n.Name(), err, strings.Join(lines[max(0, len(lines)-40):], ""))
	}
}

// Orphan runs the calling test as another process with one more environment variable, and returns when this process
// has killed itself. Cleanup records are in a folder of the test.
func Orphan(t *testing.T, variable string) {
	t.Helper()
	cmd := exec.CommandContext(Within(t, WaitLimit), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable, "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the other process was not killed: %v: %s", err, out)
	}
}
