package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

// teller writes keys through one node.
type teller struct{ *node }

func (t teller) Pay(ctx context.Context, id string) error {
	_, err := ask(ctx, t.node, 2*time.Second, func(ctx context.Context, c *clientv3.Client) (*clientv3.PutResponse, error) {
		return c.Put(ctx, "paid/"+id, "x")
	})
	return err
}

func (teller) Close() {}

func kind() clustertest.Kind {
	return clustertest.Kind{
		Engine: "etcd",
		Launch: clustertest.Launcher(Start),
		Teller: func(ctx context.Context, c cluster.Local, i, try int) (clustertest.Teller, error) {
			nodes := c.(*Cluster).List()
			if n := nodes[try%len(nodes)]; n.Awake() {
				return teller{n}, nil
			}
			return nil, errors.New("the node does not run")
		},
		Holds: func(ctx context.Context, c cluster.Local, number int) (map[string]string, error) {
			n, err := c.(*Cluster).Node(number)
			if err != nil {
				return nil, err
			}
			held := map[string]string{}
			answer, err := ask(ctx, n, 10*time.Second, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
				return c.Get(ctx, "paid/", clientv3.WithPrefix())
			})
			if err != nil {
				return nil, err
			}
			for _, kv := range answer.Kvs {
				held[strings.TrimPrefix(string(kv.Key), "paid/")] = string(kv.Value)
			}
			return held, nil
		},
	}
}

// leaderOf returns the node that leads, and the others.
func leaderOf(t *testing.T, c *Cluster) (leader *node, followers []*node) {
	t.Helper()
	n, _ := clustertest.Leader(t, c)
	return n.(*node), c.Others(n.(*node))
}

// TestClusterKeepsPaymentsUnderAllFaults checks that a cluster keeps all acknowledged payments through each kind
// of fault.
func TestClusterKeepsPaymentsUnderAllFaults(t *testing.T) {
	c := kind().Start(t, cluster.Options{Nodes: 3}).(*Cluster)
	if want := "etcd://" + strings.Join(c.Endpoints(), ","); c.URL() != want || c.NodeURL(2) != "etcd://"+c.Endpoints()[2] {
		t.Errorf("the URLs are %s and %s, want %s", c.URL(), c.NodeURL(2), want)
	}
	kind().Hurt(t, c)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *Cluster)
	}{
		{"linearizable", testLinearizable}, {"replace two", testReplaceTwo}, {"majority", testMajority},
		{"resize and replace", testResizeAndReplace}, {"resize", func(t *testing.T, c *Cluster) { kind().Resize(t, c) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, c)
			if !t.Failed() {
				clustertest.Must(t, c.WaitHealthy(clustertest.Within(t, clustertest.WaitLimit)))
			}
		})
	}
}

// testLinearizable checks that a leader that is cut off answers no linearizable read and does not lead.
func testLinearizable(t *testing.T, c *Cluster) {
	old, followers := leaderOf(t, c)
	heal := clustertest.Cut(t, c, old.Number(), followers[0].Number(), followers[1].Number())
	clustertest.Succeeds(t, c, old)
	if old.read(clustertest.Within(t, clustertest.WaitLimit)) == nil {
		t.Error("a node that is cut off answers a linearizable read")
	}
	heal()
	dead, _ := leaderOf(t, c)
	clustertest.Must(t, dead.Kill(t.Context()))
	if c.MoveLeader(clustertest.Within(t, clustertest.WaitLimit), dead.Number()) == nil {
		t.Error("a dead node leads")
	}
	clustertest.Must(t, dead.Restart(clustertest.Within(t, clustertest.WaitLimit)))
}

// testReplaceTwo replaces the leader and a follower at once. The data of both must not be removed before one of them
// is back.
func testReplaceTwo(t *testing.T, c *Cluster) {
	p := kind().Pay(t, c)
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	leader, followers := leaderOf(t, c)
	var wg sync.WaitGroup
	for _, n := range []*node{leader, followers[0]} {
		old, address := n.id.Load(), n.client
		wg.Go(func() {
			if err := n.Replace(ctx); err != nil {
				t.Error(err)
			}
			if n.id.Load() == old || n.client != address {
				t.Errorf("the node is member %x, was %x, at %s, was %s", n.id.Load(), old, n.client, address)
			}
		})
	}
	wg.Wait()
	p.GoOn(20)
	p.EndWell("replace two at once")
}

// testMajority checks that data which may be the only copy are not removed. It also checks that a node whose
// replacement failed after the loss of its data joins later.
func testMajority(t *testing.T, c *Cluster) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	_, followers := leaderOf(t, c)
	n, other := followers[0], followers[1]
	p := kind().Pay(t, c)
	clustertest.Must(t, other.Kill(ctx))
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	// Whether the third node answers in this time depends on the machine.
	if err := n.Replace(short); err == nil || !strings.Contains(err.Error(), " nodes answer without it, and 2 of 3 are needed") {
		t.Errorf("replace a node of two that run: %v", err)
	}
	if !n.Running() {
		t.Error("the replacement that was refused has killed the node")
	}
	clustertest.Must(t, other.Restart(ctx))

	// The data are removed, and the replacement stops there.
	n.joined.Store(false)
	clustertest.Must(t, n.Kill(ctx))
	clustertest.Must(t, os.RemoveAll(filepath.Join(n.Dir(), "member")))
	clustertest.Must(t, n.Restart(ctx))
	p.GoOn(20)
	p.EndWell("lose a node's data in vain")
}

// testResizeAndReplace adds a node while another one is replaced.
func testResizeAndReplace(t *testing.T, c *Cluster) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	_, followers := leaderOf(t, c)
	p, replaced := kind().Pay(t, c), make(chan error, 1)
	go func() { replaced <- followers[0].Replace(ctx) }()
	number, err := c.Add(ctx)
	clustertest.Must(t, errors.Join(err, <-replaced))
	clustertest.Must(t, c.Remove(ctx, followers[1].Number()))
	dead, err := c.Node(number)
	clustertest.Must(t, err)
	clustertest.Must(t, dead.Kill(ctx))
	clustertest.Must(t, c.Remove(ctx, number))
	if number, err = c.Add(ctx); err != nil {
		t.Errorf("no node was added in place of %d: %v", number, err)
	}
	p.EndWell("add and replace at once, remove a dead one")
}

// TestSingleNodeUsesSettingsAndRestarts checks that a cluster of one node uses its parameters, and keeps all
// payments when it is killed, paused and restarted.
func TestSingleNodeUsesSettingsAndRestarts(t *testing.T) {
	k := kind()
	k.Params = url.Values{"set.snapshot-count": {"1000"}}
	k.One(t, func(t *testing.T, c cluster.Local) {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cluster.LocalNodes(c)[0].PIDs()[0])); err != nil || !strings.Contains(string(line), "--snapshot-count=1000") {
			t.Errorf("the server runs as %q, %v", line, err)
		}
	})
}

// TestStopEndsWaitForMajority checks that a cluster can be stopped while a node waits for a majority that never
// comes.
func TestStopEndsWaitForMajority(t *testing.T) {
	c := kind().Start(t, cluster.Options{Nodes: 3, Loopback: true}).(*Cluster)
	nodes, dir := c.List(), c.Dir
	for _, n := range nodes {
		clustertest.Must(t, n.Kill(t.Context()))
	}
	waiting := make(chan error)
	go func() { waiting <- nodes[0].Restart(t.Context()) }()
	clustertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error {
		if !nodes[0].Running() {
			return errors.New("the node was not started")
		}
		return nil
	}))
	clustertest.Must(t, c.Stop())
	if err := <-waiting; !errors.Is(err, cluster.ErrStopped) {
		t.Errorf("a node that was waited for when the cluster was stopped: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is there", dir)
	}
}

func TestStartRejectsInvalidOptions(t *testing.T) {
	kind().Refuses(t, []string{"etcd-server"}, []clustertest.Refusal{
		{Query: "sync=off", Says: "parameter sync: etcd has no such parameter"},
		{Query: "set.data-dir=/", Says: "parameter set.data-dir: "},
		{Query: "set.initial-cluster=x", Says: "parameter set.initial-cluster: "},
		{Query: "set.heartbeat-interval=1000", Says: "should be at least as 5 times"},
	}...)
}

func TestProgramComesFromBinOrPath(t *testing.T) {
	found, err := host.Find("etcd", "etcd-server")
	clustertest.Need(t, "etcd", err)
	kind().Programs(t, found)
}

// TestNodesEndWithKilledParent checks that the nodes end when the process that started them is killed.
func TestNodesEndWithKilledParent(t *testing.T) {
	const marker = "STROPPY_ETCD_CLUSTER_CHILD"
	place := func(dir string) string { return filepath.Join(dir, "endpoint") }
	if dir := os.Getenv(marker); dir != "" {
		c, err := Start(t.Context(), cluster.Options{Nodes: 1, Dir: dir, Loopback: true})
		clustertest.Must(t, err)
		clustertest.Must(t, os.WriteFile(place(dir), []byte(c.Endpoints()[0]), 0o600))
		clustertest.Must(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("skipped engine: etcd: install the Debian package etcd-server")
	}
	dir := t.TempDir()
	clustertest.Orphan(t, marker+"="+dir)
	endpoint, err := os.ReadFile(place(dir))
	clustertest.Must(t, err)
	clustertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error {
		conn, err := net.Dial("tcp", string(endpoint))
		if err != nil {
			return nil
		}
		conn.Close()
		return errors.New("etcd outlived the process that started it")
	}))
}
