package mariadb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
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

func launchOrSkip(t *testing.T, start func(context.Context, cluster.Options) (*Cluster, error), o cluster.Options) *Cluster {
	t.Helper()
	began := time.Now()
	c, err := start(within(t, time.Minute), o)
	if missing, ok := errors.AsType[cluster.MissingError](err); ok {
		t.Skip("skipped engine: mariadb: install the Debian package " + missing.Package)
	}
	must(t, err)
	t.Logf("%s up in %v (loopback: %q)", c.kind, time.Since(began), c.Network().Loopback())
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		for _, path := range []string{c.dir} {
			if _, err := os.Stat(path); c.temporary && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("Stop left %s", path)
			}
		}
	})
	return c
}

// exec runs a statement on a node.
func (n *node) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := n.db.ExecContext(within(t, 20*time.Second), statement); err != nil {
		t.Fatalf("%s: %s: %v", n.Name(), statement, err)
	}
}

// value asks a node for one value.
func (n *node) value(t *testing.T, query string) (value string) {
	t.Helper()
	if err := n.db.QueryRowContext(within(t, 20*time.Second), query).Scan(&value); err != nil {
		t.Fatalf("%s: %s: %v", n.Name(), query, err)
	}
	return value
}

// marks counts the rows that a test has written, and every node must have.
type marks int

func (m *marks) write(t *testing.T, n *node) {
	t.Helper()
	*m++
	// Nobody commits while the group finds out who is dead, and a write may fail
	// then; one that was done nevertheless may be done again.
	const patience = 20 * time.Second
	db, err := open(n.address, patience)
	must(t, err)
	defer db.Close()
	ctx := within(t, patience)
	must(t, persist(ctx, func() error {
		_, err := db.ExecContext(ctx, fmt.Sprintf("INSERT IGNORE INTO bank.marks VALUES (%d)", *m))
		return err
	}))
}

func (m *marks) verify(t *testing.T, c *Cluster) {
	t.Helper()
	must(t, c.Whole(within(t, time.Minute)))
	for _, n := range c.nodes {
		if got, want := n.value(t, "SELECT CONCAT(COUNT(*), ' ', MAX(id)) FROM bank.marks"), fmt.Sprintf("%d %d", *m, *m); got != want {
			t.Errorf("%s has %s marks, want %s", n.Name(), got, want)
		}
	}
}

func TestOneServer(t *testing.T) {
	c := launchOrSkip(t, StartCluster, cluster.Options{Nodes: 1, InMemory: true, Clock: true,
		Params: url.Values{"snapshot": {"on"}, "flush": {"2"}, "set.sync_binlog": {"7"}}})
	ctx, n := within(t, time.Minute), c.nodes[0]
	if got := n.value(t, "SELECT CONCAT_WS(' ', @@innodb_snapshot_isolation, @@innodb_flush_log_at_trx_commit, @@sync_binlog)"); got != "ON 2 7" {
		t.Errorf("the settings are %s", got)
	}
	if want := "mysql://root@" + n.address + "/bank"; c.URL() != want || c.NodeURL(0) != want || c.NodeURL(1) != "" {
		t.Errorf("the URL is %s, want %s", c.URL(), want)
	}
	if _, err := c.Leader(ctx); !errors.Is(err, cluster.ErrNoLeader) {
		t.Errorf("the leader: %v", err)
	}
	n.exec(t, "CREATE TABLE bank.marks (id int PRIMARY KEY)")
	var m marks
	m.write(t, n)
	must(t, n.Kill())
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := c.Whole(short); err == nil || !strings.Contains(err.Error(), "n0 is down") {
		t.Errorf("a dead server is whole: %v", err)
	}
	must(t, n.Restart(ctx))
	m.verify(t, c)
	must(t, n.Pause())
	if n.ping(within(t, 100*time.Millisecond)) == nil {
		t.Error("a paused server answers")
	}
	must(t, n.Resume())
	must(t, n.Terminate(ctx))
	must(t, n.Restart(ctx))
	m.verify(t, c)
	if err := n.Replace(ctx); err == nil || !n.Running() {
		t.Errorf("the only server was replaced: %v", err)
	}
	if why := n.Steered(); why != nil {
		t.Logf("the clock is not steered: %v", why)
		return
	}
	heal, err := n.Jump(ctx, time.Hour)
	must(t, err)
	now, err := n.Now(ctx)
	must(t, err)
	if ahead := time.Until(now); ahead < 59*time.Minute || ahead > 61*time.Minute {
		t.Errorf("after a jump of an hour the server's clock is %v ahead", ahead)
	}
	must(t, heal())
}

// TestGalera hurts one cluster in every way, in its own network where the user
// may have one.
func TestGalera(t *testing.T) {
	c := launchOrSkip(t, StartGalera, cluster.Options{Nodes: 3, InMemory: true, Params: url.Values{"timeout": {"3s"}, "snapshot": {"on"}}})
	if len(c.Nodes()) != 3 || !strings.HasSuffix(c.URL(), ","+c.nodes[2].address+"/bank?spread=true") {
		t.Errorf("the URL is %s", c.URL())
	}
	c.nodes[0].exec(t, "CREATE TABLE bank.marks (id int PRIMARY KEY)")
	var m marks
	for i, n := range c.nodes {
		must(t, c.Whole(within(t, time.Minute)))
		m.write(t, n)
		if got := n.value(t, "SELECT @@innodb_snapshot_isolation"); got != "1" {
			t.Errorf("node %d has innodb_snapshot_isolation %s", i, got)
		}
	}
	m.verify(t, c)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *Cluster, *marks)
	}{
		{"rejoin", testRejoin}, {"replace", testReplace},
		{"kill all", testKillAll}, {"majority", testMajority},
	} {
		if !t.Run(test.name, func(t *testing.T) {
			began := time.Now()
			test.run(t, c, &m)
			t.Logf("done in %v", time.Since(began))
			m.verify(t, c)
		}) {
			break // the cluster is not as the next one needs it
		}
	}
}

// testRejoin kills a node and lets it rejoin what has gone on without it.
func testRejoin(t *testing.T, c *Cluster, m *marks) {
	ctx, dead, other := within(t, time.Minute), c.nodes[1], c.nodes[2]
	must(t, dead.Kill())
	must(t, dead.Kill()) // of a dead node
	if dead.Running() || len(dead.PIDs()) > 0 {
		t.Error("the killed node runs")
	}
	m.write(t, other)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := c.Whole(short); err == nil || !strings.Contains(err.Error(), "n1 is down") {
		t.Errorf("with a dead node the cluster is whole: %v", err)
	}
	must(t, dead.Restart(ctx))
	s, err := dead.status(ctx)
	must(t, errors.Join(err, s.synced()))
	must(t, dead.Terminate(ctx))
	m.write(t, other)
	must(t, dead.Restart(ctx))
}

// testReplace replaces two nodes at once, which must not take the data of all
// away.
func testReplace(t *testing.T, c *Cluster, m *marks) {
	ctx := within(t, time.Minute)
	var wg sync.WaitGroup
	for _, n := range c.nodes[:2] {
		mark := filepath.Join(n.Dir(), "mark")
		must(t, os.WriteFile(mark, nil, 0o600))
		wg.Go(func() {
			if err := n.Replace(ctx); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the old data are there")
			}
		})
	}
	wg.Wait()
	m.write(t, c.nodes[0])
}

func testKillAll(t *testing.T, c *Cluster, m *marks) {
	must(t, c.nodes[0].Kill())
	m.write(t, c.nodes[1]) // which node 0 does not have
	must(t, c.each((*node).Kill))
	short, cancel := context.WithCancel(within(t, 30*time.Second))
	defer cancel()
	go func() { // until it has looked at the others' data
		defer cancel()
		_ = persist(short, func() error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.nodes[1].known == nil || c.nodes[2].known == nil {
				return errors.New("not yet")
			}
			return nil
		})
		time.Sleep(4 * pollEvery)
	}()
	if err := c.nodes[0].Restart(short); err == nil || !strings.Contains(err.Error(), "as well") {
		t.Errorf("a node with old data formed a group: %v", err)
	}
	ctx := within(t, time.Minute)
	must(t, c.each(func(n *node) error { return n.Restart(ctx) }))
	m.write(t, c.nodes[0])
}

// testMajority kills two nodes of three: the third alone takes no writes until
// they are restarted.
func testMajority(t *testing.T, c *Cluster, m *marks) {
	ctx := within(t, time.Minute)
	two := &Cluster{nodes: c.nodes[:2]}
	must(t, two.each((*node).Kill))
	must(t, persist(ctx, func() error {
		if s, err := c.nodes[2].status(ctx); err != nil || s.primary() {
			return fmt.Errorf("one node of three is in a primary component: %w", err)
		}
		return nil
	}))
	if err := c.nodes[2].Replace(within(t, 200*time.Millisecond)); err == nil || !c.nodes[2].Running() {
		t.Errorf("the last node that has the data was replaced: %v", err)
	}
	must(t, two.each(func(n *node) error { return n.Restart(ctx) }))
	m.write(t, c.nodes[0])
}

func TestStopLeavesNothing(t *testing.T) {
	dir := openDir(t)
	c := launchOrSkip(t, StartGalera, cluster.Options{Nodes: 2, Dir: dir, Loopback: true})
	n := c.nodes[0]
	pids := append(n.PIDs(), c.nodes[1].PIDs()...)
	must(t, n.Pause()) // a paused node must go too
	must(t, c.Stop())
	must(t, c.Stop())
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
	if len(pids) < 2 {
		t.Fatal("found no process: this test would prove nothing")
	}
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			t.Errorf("the process %d is there", pid)
		}
	}
	for _, address := range []string{n.address, n.group, n.ist, n.sst} {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			t.Errorf("something still listens on %s", address)
		}
	}
	if err := n.Restart(t.Context()); !errors.Is(err, errStopped) {
		t.Errorf("restart a node of a stopped cluster: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	used := openDir(t)
	must(t, os.Mkdir(filepath.Join(used, "n0"), 0o700))
	var missing cluster.MissingError
	for _, test := range []struct {
		start func(context.Context, cluster.Options) (*Cluster, error)
		o     cluster.Options
		want  string
	}{
		{StartCluster, cluster.Options{Nodes: 2}, "always 1"},
		{StartGalera, cluster.Options{}, "at least 1"},
		{StartCluster, cluster.Options{Nodes: 1, Params: url.Values{"timeout": {"1s"}}}, "parameter timeout: MariaDB has none"},
		{StartGalera, cluster.Options{Nodes: 3, Params: url.Values{"timeout": {"1"}}}, "parameter timeout: it must be a time"},
		{StartGalera, cluster.Options{Nodes: 3, Params: url.Values{"snapshot": {"yes"}}}, "parameter snapshot: it must be one of on, off"},
		{StartGalera, cluster.Options{Nodes: 3, Params: url.Values{"flush": {"3"}}}, "parameter flush: it must be one of 0, 1, 2"},
		{StartGalera, cluster.Options{Nodes: 3, Params: url.Values{"flush": {"1", "2"}}}, "given 2 times"},
		{StartGalera, cluster.Options{Nodes: 3, Params: url.Values{"set.wsrep_provider_opt": {"x"}}}, "sets wsrep-provider-options itself"},
		{StartCluster, cluster.Options{Nodes: 1, Params: url.Values{"set.loose-datadir": {"/"}}}, "sets datadir itself"},
		{StartCluster, cluster.Options{Nodes: 1, Params: url.Values{"set.a b": {"/"}}}, "small letters"},
		{StartCluster, cluster.Options{Nodes: 1, Layer: true}, "disk faults"},
		{StartCluster, cluster.Options{Nodes: 1, Dir: used, Loopback: true}, "take another folder"},
		{StartCluster, cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Params: url.Values{"set.no-such-setting": {"1"}}}, "no-such-setting"},
	} {
		c, err := test.start(within(t, time.Minute), test.o)
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
	if _, err := StartGalera(t.Context(), cluster.Options{Nodes: 3}); !errors.As(err, &missing) {
		t.Errorf("without rsync on the path: %v", err)
	} else if missing.Package != "rsync" && missing.Package != "mariadb-server" && missing.Package != "galera-4" {
		t.Errorf("without rsync, the package %s is missing", missing.Package)
	}
}
