package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stroppy/internal/cluster"
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func startOrSkip(t *testing.T, o cluster.Options) *Cluster {
	t.Helper()
	began := time.Now()
	c, err := Start(within(t, time.Minute), o)
	if missing, ok := errors.AsType[cluster.MissingError](err); ok {
		t.Skip("skipped engine: etcd: install the Debian package " + missing.Package)
	}
	must(t, err)
	t.Logf("%d nodes up in %v (loopback: %q)", o.Nodes, time.Since(began), c.Network().Loopback())
	t.Cleanup(func() {
		began := time.Now()
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("gone in %v", time.Since(began))
	})
	return c
}

func leaderOf(t *testing.T, c *Cluster) *node {
	t.Helper()
	number, err := c.Leader(within(t, time.Minute))
	must(t, err)
	n, err := c.node(number)
	must(t, err)
	return n
}

func followersOf(t *testing.T, c *Cluster) []*node {
	t.Helper()
	leader := leaderOf(t, c)
	return slices.DeleteFunc(c.list(), func(n *node) bool { return n == leader })
}

// TestCluster hurts one cluster in every way, in its own network where the user
// may have one.
func TestCluster(t *testing.T) {
	c := startOrSkip(t, cluster.Options{Nodes: 3, InMemory: true})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *Cluster)
	}{
		{"life", testLife}, {"partition", testPartition}, {"move leader", testMoveLeader}, {"kill all", testKillAll},
		{"replace", testReplace},
		{"majority", testMajority}, {"resize", testResize},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, c)
			if !t.Failed() {
				must(t, c.Whole(within(t, time.Minute)))
			}
		})
	}
}

func testLife(t *testing.T, c *Cluster) {
	ctx := within(t, time.Minute)
	if want := "etcd://" + strings.Join(c.Endpoints(), ","); c.URL() != want || len(c.Nodes()) != 3 {
		t.Errorf("URL is %s, want %s", c.URL(), want)
	}
	if want := "etcd://" + c.Endpoints()[2]; c.NodeURL(2) != want || c.NodeURL(3) != "" {
		t.Errorf("NodeURL(2) is %s, want %s", c.NodeURL(2), want)
	}
	l := startLoad(t, c)
	first := leaderOf(t, c)
	must(t, first.Kill())
	must(t, first.Kill()) // of a dead node
	if first.Running() || len(first.PIDs()) > 0 {
		t.Error("the killed node runs")
	}
	if first.Pause() == nil {
		t.Error("a dead node was paused")
	}
	second := leaderOf(t, c)
	if second == first {
		t.Errorf("the dead node %s leads", first.Name())
	}
	l.goesOn(t)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := c.Whole(short); err == nil || !strings.Contains(err.Error(), first.Name()) {
		t.Errorf("with %s dead the cluster is whole: %v", first.Name(), err)
	}
	must(t, first.Restart(ctx))
	must(t, first.read(ctx))

	must(t, second.Pause())
	if third := leaderOf(t, c); third == second {
		t.Errorf("the paused node %s leads", second.Name())
	}
	l.goesOn(t)
	must(t, second.Resume())
	must(t, second.Terminate(ctx))
	l.goesOn(t)
	must(t, second.Restart(ctx))
	l.verify(t)
}

// testPartition cuts the leader off from the others; the client reaches all.
func testPartition(t *testing.T, c *Cluster) {
	ctx := within(t, time.Minute)
	old := leaderOf(t, c)
	var cuts []cluster.Cut
	for _, n := range c.list() {
		if n != old {
			cuts = append(cuts, cluster.Cut{From: old.Number(), To: n.Number()}, cluster.Cut{From: n.Number(), To: old.Number()})
		}
	}
	l := startLoad(t, c)
	heal, err := c.Network().Cut(ctx, cuts)
	if c.Network().Loopback() != "" {
		if err == nil {
			t.Error("the loopback network was cut")
		}
		return
	}
	must(t, err)
	must(t, persist(ctx, func() error {
		if leader := leaderOf(t, c); leader == old {
			return fmt.Errorf("%s leads although it is cut off", old.Name())
		}
		return nil
	}))
	l.goesOn(t)
	if old.read(ctx) == nil {
		t.Error("a node that is cut off answers a linearizable read")
	}
	must(t, heal())
	l.verify(t)
}

func testMoveLeader(t *testing.T, c *Cluster) {
	ctx := within(t, time.Minute)
	for _, n := range []int{0, 2, 2, 1} {
		must(t, c.MoveLeader(ctx, n))
		if leader := leaderOf(t, c); leader.Number() != n {
			t.Errorf("%s leads, not n%d", leader.Name(), n)
		}
	}
	if c.MoveLeader(ctx, 3) == nil {
		t.Error("a node that is not there leads")
	}
	n := followersOf(t, c)[0]
	must(t, n.Kill())
	if c.MoveLeader(ctx, n.Number()) == nil {
		t.Error("a dead node leads")
	}
	must(t, n.Restart(ctx))
}

func testKillAll(t *testing.T, c *Cluster) {
	l := startLoad(t, c)
	var wg sync.WaitGroup
	for _, n := range c.list() {
		wg.Go(func() {
			if err := n.Kill(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	must(t, c.restartAll(within(t, time.Minute)))
	l.goesOn(t)
	l.verify(t)
}

// testReplace replaces the leader and a follower at once, which must not take
// the data of both away before one of them is back.
func testReplace(t *testing.T, c *Cluster) {
	l := startLoad(t, c)
	ctx := within(t, time.Minute)
	began := time.Now()
	var wg sync.WaitGroup
	for _, n := range []*node{leaderOf(t, c), followersOf(t, c)[0]} {
		old, address := n.id.Load(), n.client
		mark := filepath.Join(n.Dir(), "mark")
		must(t, os.WriteFile(mark, nil, 0o600))
		wg.Go(func() {
			if err := n.Replace(ctx); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the old data are there")
			}
			if n.id.Load() == old || n.client != address {
				t.Errorf("the node is member %x, was %x, at %s, was %s", n.id.Load(), old, n.client, address)
			}
		})
	}
	wg.Wait()
	t.Logf("replaced in %v", time.Since(began))
	l.goesOn(t)
	l.verify(t)
}

// testMajority holds that no data are taken away that may be the only copy, and
// that a node that lost its data in vain joins when it can.
func testMajority(t *testing.T, c *Cluster) {
	ctx := within(t, time.Minute)
	followers := followersOf(t, c)
	n, other := followers[0], followers[1]
	l := startLoad(t, c)
	must(t, other.Kill())
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := n.Replace(short); err == nil || !strings.Contains(err.Error(), "1 nodes answer without it, and 2 of 3 are needed") {
		t.Errorf("replace a node of two that run: %v", err)
	}
	if !n.Running() {
		t.Error("the replacement that was refused has killed the node")
	}
	must(t, other.Restart(ctx))

	// The data are gone, and the replacement stops there.
	n.joined.Store(false)
	must(t, n.Kill())
	must(t, os.RemoveAll(filepath.Join(n.Dir(), "member")))
	must(t, n.Restart(ctx))
	l.goesOn(t)
	l.verify(t)
}

func testResize(t *testing.T, c *Cluster) {
	ctx := within(t, time.Minute)
	l := startLoad(t, c)
	began := time.Now()
	other, replaced := followersOf(t, c)[0], make(chan error, 1)
	go func() { replaced <- other.Replace(ctx) }()
	number, err := c.Add(ctx)
	must(t, errors.Join(err, <-replaced))
	t.Logf("a node added and another replaced in %v", time.Since(began))
	if number != 3 || len(c.Nodes()) != 4 || c.Nodes()[3].Name() != "n3" || !strings.HasSuffix(c.URL(), ","+strings.TrimPrefix(c.NodeURL(3), "etcd://")) {
		t.Errorf("the new node has the number %d; the cluster is %s", number, c.URL())
	}
	must(t, c.Whole(ctx))
	must(t, c.MoveLeader(ctx, number))
	leader := leaderOf(t, c)
	began = time.Now()
	must(t, c.Remove(ctx, number))
	t.Logf("the leader removed in %v", time.Since(began))
	if _, err := os.Stat(leader.Dir()); err == nil || leader.Running() {
		t.Error("the removed node is there")
	}
	if err := leader.Restart(ctx); !errors.Is(err, errRemoved) {
		t.Errorf("restart a removed node: %v", err)
	}
	if c.Remove(ctx, number) == nil {
		t.Error("a node was removed twice")
	}
	dead := followersOf(t, c)[0]
	must(t, dead.Kill())
	must(t, c.Remove(ctx, dead.Number()))
	if number, err = c.Add(ctx); err != nil || number != 4 {
		t.Errorf("the next node has the number %d: %v", number, err)
	}
	l.goesOn(t)
	l.verify(t)
}

func TestStopLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	c := startOrSkip(t, cluster.Options{Nodes: 1, Dir: dir, Loopback: true, Params: url.Values{"set.snapshot-count": {"1000"}}})
	n := c.list()[0]
	ctx := within(t, time.Minute)
	if err := n.Replace(ctx); err == nil || !n.Running() {
		t.Errorf("the only node was replaced: %v", err)
	}
	if c.Remove(ctx, 0) == nil {
		t.Error("the only node was removed")
	}
	pids := n.PIDs()
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pids[0])); err != nil || !strings.Contains(string(line), "--snapshot-count=1000") {
		t.Errorf("the server runs as %q, %v", line, err)
	}
	must(t, n.Pause()) // a paused node must go too
	must(t, c.Stop())
	must(t, c.Stop())
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pids[0])); err == nil {
		t.Error("the process is there")
	}
	if conn, err := net.Dial("tcp", n.client); err == nil {
		conn.Close()
		t.Error("something still listens on the node's port")
	}
	if err := n.Restart(ctx); !errors.Is(err, errStopped) {
		t.Errorf("restart a node of a stopped cluster: %v", err)
	}
	if _, err := c.Add(ctx); !errors.Is(err, errStopped) {
		t.Errorf("add a node to a stopped cluster: %v", err)
	}
}

// TestStopEndsWaiting stops a cluster while a node waits for a majority that
// never comes.
func TestStopEndsWaiting(t *testing.T) {
	c := startOrSkip(t, cluster.Options{Nodes: 3, InMemory: true, Loopback: true})
	nodes, dir := c.list(), c.dir
	for _, n := range nodes {
		must(t, n.Kill())
	}
	waiting := make(chan error)
	go func() { waiting <- nodes[0].Restart(t.Context()) }()
	must(t, persist(within(t, time.Minute), func() error {
		if !nodes[0].Running() {
			return errors.New("the node was not started")
		}
		return nil
	}))
	must(t, c.Stop())
	if err := <-waiting; !errors.Is(err, errStopped) {
		t.Errorf("a node that was waited for when the cluster was stopped: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is there", dir)
	}
}

func TestStartRefuses(t *testing.T) {
	used := t.TempDir()
	must(t, os.Mkdir(filepath.Join(used, "n0"), 0o700))
	var missing cluster.MissingError
	for _, test := range []struct {
		o    cluster.Options
		want string
	}{
		{cluster.Options{}, "at least 1"},
		{cluster.Options{Nodes: 1, Params: url.Values{"sync": {"off"}}}, "parameter sync: etcd has none"},
		{cluster.Options{Nodes: 1, Params: url.Values{"set.data-dir": {"/"}}}, "parameter set.data-dir: "},
		{cluster.Options{Nodes: 1, Params: url.Values{"set.initial-cluster": {"x"}}}, "parameter set.initial-cluster: "},
		{cluster.Options{Nodes: 1, Dir: used, Loopback: true}, "take another folder"},
		{cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Params: url.Values{"set.heartbeat-interval": {"1000"}}}, "should be at least as 5 times"},
	} {
		c, err := Start(within(t, time.Minute), test.o)
		if err == nil {
			must(t, c.Stop())
		}
		if !errors.As(err, &missing) && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v gives %v, want %q", test.o, err, test.want)
		}
	}
	if _, err := os.Stat(filepath.Join(used, "n0")); err != nil {
		t.Errorf("the folder of somebody else was removed: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Start(t.Context(), cluster.Options{Nodes: 1}); !errors.As(err, &missing) || missing.Package != "etcd-server" {
		t.Errorf("without the binary: %v", err)
	}
}

// TestParentDeath runs itself as a child that starts a cluster and is then
// killed: the nodes must die with it.
func TestParentDeath(t *testing.T) {
	const marker = "STROPPY_ETCD_CLUSTER_CHILD"
	if os.Getenv(marker) != "" {
		c, err := Start(t.Context(), cluster.Options{Nodes: 1, Dir: os.Getenv(marker), Loopback: true})
		must(t, err)
		fmt.Println("endpoint", c.Endpoints()[0])
		select {}
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("skipped engine: etcd: install the Debian package etcd-server")
	}
	child := exec.CommandContext(within(t, time.Minute), os.Args[0], "-test.run=^TestParentDeath$", "-test.timeout=1m")
	// The record that the child cannot remove stays in the test's own folder.
	child.Env = append(os.Environ(), marker+"="+t.TempDir(), "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	var endpoint string
	for lines := bufio.NewScanner(out); endpoint == "" && lines.Scan(); {
		endpoint, _ = strings.CutPrefix(lines.Text(), "endpoint ")
	}
	if endpoint == "" {
		t.Fatal("the child started no cluster")
	}
	must(t, child.Process.Kill())
	_ = child.Wait()
	must(t, persist(within(t, 10*time.Second), func() error {
		conn, err := net.Dial("tcp", endpoint)
		if err != nil {
			return nil
		}
		conn.Close()
		return errors.New("etcd outlived the process that started it")
	}))
}
