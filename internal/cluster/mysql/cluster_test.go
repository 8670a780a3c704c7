package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/wait"
)

// teller inserts numbers through one node, on its own connection.
type teller struct{ *sql.DB }

func (t teller) Pay(ctx context.Context, id string) error {
	_, err := t.ExecContext(ctx, "INSERT INTO stroppy.paid VALUES ("+id+")")
	return err
}

func (t teller) Close() { _ = t.DB.Close() }

func kindOf(start func(context.Context, cluster.Options) (*Cluster, error), params url.Values) clustertest.Kind {
	return clustertest.Kind{
		Engine: "mariadb", Params: params,
		Launch: clustertest.Launcher(start),
		Prepare: func(ctx context.Context, c cluster.Local) error {
			_, err := c.(*Cluster).List()[0].db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS stroppy.paid (id bigint PRIMARY KEY)")
			return err
		},
		Teller: func(ctx context.Context, c cluster.Local, i, try int) (clustertest.Teller, error) {
			nodes := c.(*Cluster).List()
			db, err := open(nodes[try%len(nodes)].address.String(), 3*time.Second)
			return teller{db}, err
		},
		Mend: func(ctx context.Context, c cluster.Local) error {
			return retry(ctx, func() error {
				err := c.(*Cluster).checkHealthy(ctx)
				for _, n := range c.(*Cluster).List() {
					if n.hasLeft(ctx) {
						err = errors.Join(err, n.Restart(ctx))
					}
				}
				return err
			})
		},
		Holds: func(ctx context.Context, c cluster.Local, number int) (map[string]string, error) {
			n, err := c.(*Cluster).Node(number)
			if err != nil {
				return nil, err
			}
			return paid(ctx, n.db)
		},
	}
}

// paid returns the payments on a node.
func paid(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT id FROM stroppy.paid")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	held := map[string]string{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		held[id] = ""
	}
	return held, rows.Err()
}

// galera returns a kind that notices a silent node soon.
func galeraKind() clustertest.Kind {
	return kindOf(StartGalera, url.Values{"timeout": {"1s"}, "snapshot": {"on"}})
}

// value asks a node for one value.
func (n *node) value(t *testing.T, query string) (value string) {
	t.Helper()
	if err := n.db.QueryRowContext(clustertest.Within(t, clustertest.WaitLimit), query).Scan(&value); err != nil {
		t.Fatalf("%s: %s: %v", n.Name(), query, err)
	}
	return value
}

func TestSingleNodeUsesSettingsAndRestarts(t *testing.T) {
	k := kindOf(StartMariaDB, url.Values{"snapshot": {"on"}, "flush": {"2"}, "set.sync_binlog": {"7"}})
	k.One(t, func(t *testing.T, c cluster.Local) {
		n := c.Nodes()[0].(*node)
		if got := n.value(t, "SELECT CONCAT_WS(' ', @@innodb_snapshot_isolation, @@innodb_flush_log_at_trx_commit, @@sync_binlog)"); got != "ON 2 7" {
			t.Errorf("the settings are %s", got)
		}
		if want := "mysql://root@" + n.address.String() + "/stroppy"; c.URL() != want || c.NodeURL(0) != want {
			t.Errorf("the URL is %s, want %s", c.URL(), want)
		}
		if _, err := c.Leader(t.Context()); !errors.Is(err, cluster.ErrNoLeader) {
			t.Errorf("the leader: %v", err)
		}
	})
}

func TestClockJumpChangesServerTime(t *testing.T) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	n := kindOf(StartMariaDB, nil).Start(t, cluster.Options{Nodes: 1, Clock: true}).Nodes()[0].(*node)
	if why := n.Steered(); why != nil {
		t.Skipf("skipped engine: faketime: install the Debian package faketime: %v", why)
	}
	effect, err := n.JumpClock(ctx, time.Hour)
	clustertest.Must(t, err)
	now, err := n.Now(ctx)
	clustertest.Must(t, err)
	if ahead := time.Until(now); ahead < 59*time.Minute || ahead > 61*time.Minute {
		t.Errorf("after a jump of an hour the server's clock is %v ahead", ahead)
	}
	_, err = effect.Heal(ctx)
	clustertest.Must(t, err)
}

// TestGaleraKeepsPaymentsUnderAllFaults checks that a Galera cluster keeps all acknowledged payments through each
// kind of fault.
func TestGaleraKeepsPaymentsUnderAllFaults(t *testing.T) {
	c := galeraKind().Start(t, cluster.Options{Nodes: 3}).(*Cluster)
	nodes := c.List()
	if !strings.HasSuffix(c.URL(), ","+nodes[2].address.String()+"/stroppy?spread=true") {
		t.Errorf("the URL is %s", c.URL())
	}
	for i, n := range nodes {
		if got := n.value(t, "SELECT @@innodb_snapshot_isolation"); got != "1" {
			t.Errorf("node %d has innodb_snapshot_isolation %s", i, got)
		}
	}
	galeraKind().Hurt(t, c)
	t.Run("replace two", func(t *testing.T) { testReplaceTwo(t, c) })
	t.Run("newest", func(t *testing.T) { testNewest(t, c) })
	t.Run("majority", func(t *testing.T) { testMajority(t, c) })
	t.Run("left", func(t *testing.T) { testLeft(t, c) })
	t.Run("crash", func(t *testing.T) { testCrash(t, c) })
}

// TestStoppedGaleraLeavesNothing checks that stopped nodes leave nothing, not even of the scripts that copy data
// between nodes. It also runs testLeft on two nodes with clocks that can be changed.
func TestStoppedGaleraLeavesNothing(t *testing.T) {
	began, dir := time.Now(), clustertest.OpenDir(t)
	c := galeraKind().Start(t, cluster.Options{Nodes: 2, Dir: dir, Loopback: true, Clock: true}).(*Cluster)
	testLeft(t, c)
	t.Run("stop leaves nothing", func(t *testing.T) {
		n := c.List()[0]
		galeraKind().Gone(t, c, dir)
		clustertest.NoClockFiles(t, began)
		for _, address := range []string{n.group.String(), n.ist.String(), n.sst.String()} {
			if conn, err := net.Dial("tcp", address); err == nil {
				conn.Close()
				t.Errorf("something still listens on %s", address)
			}
		}
	})
}

// testLeft makes nodes leave their group for good, as they do if they cannot agree with the others. One restart must
// make the cluster healthy again.
func testLeft(t *testing.T, c *Cluster) {
	t.Helper()
	type steps struct{ leave, kill, restart func(node int) }
	tests := map[int]map[string]func(s steps, pay func()){
		2: {
			"one, which is restarted": func(s steps, _ func()) { s.leave(0); s.restart(0) },
		},
		3: {
			"two, and the third is restarted": func(s steps, _ func()) { s.leave(0); s.leave(1); s.kill(2); s.restart(2) },
			"two, of which one is restarted":  func(s steps, _ func()) { s.leave(0); s.leave(1); s.kill(1); s.restart(1) },
			"all that have the newest data":   func(s steps, pay func()) { s.kill(2); pay(); s.leave(1); s.leave(0); s.restart(2) },
		},
	}[len(c.List())]
	if len(tests) == 0 {
		t.Fatalf("nothing is tested of %d nodes", len(c.List()))
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, ctx := galeraKind().Pay(t, c), clustertest.Within(t, clustertest.WaitLimit)
			to := func(do func(*node) error) func(int) {
				return func(i int) { t.Helper(); clustertest.Must(t, do(c.List()[i])) }
			}
			test(steps{
				leave:   to(func(n *node) error { return n.leave(ctx) }),
				kill:    to(func(n *node) error { return n.Kill(ctx) }),
				restart: to(func(n *node) error { return n.Restart(ctx) }),
			}, func() { p.GoOn(20) })
			clustertest.Must(t, c.WaitHealthy(ctx))
			p.GoOn(20)
			p.EndWell(name)
		})
	}
}

// leave makes the node leave its group for good
// (https://galeracluster.com/library/documentation/galera-parameters.html#gmcast-isolate).
func (n *node) leave(ctx context.Context) error {
	if _, err := n.db.ExecContext(ctx, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=2'"); err != nil {
		return err
	}
	return retry(ctx, func() error {
		s, err := n.status(ctx)
		if err == nil && !strings.Contains(fmt.Sprint(s.synced()), n.Name()+" left its group") {
			err = fmt.Errorf("%s is as if it had not left its group: %v", n.Name(), s.synced())
		}
		return err
	})
}

// both calls do for the first two nodes at once.
func both(t *testing.T, c *Cluster, do func(*node) error) {
	t.Helper()
	clustertest.Must(t, c.Each(func(n *node) error {
		if n.Number() > 1 {
			return nil
		}
		return do(n)
	}))
}

// testReplaceTwo replaces two nodes at once, which must not remove the data of all nodes.
func testReplaceTwo(t *testing.T, c *Cluster) {
	p, ctx := galeraKind().Pay(t, c), clustertest.Within(t, clustertest.WaitLimit)
	both(t, c, func(n *node) error { return n.Replace(ctx) })
	p.GoOn(20)
	p.EndWell("replace two at once")
}

// testNewest kills all nodes, of which one lacks data. This node alone must not form a group.
func testNewest(t *testing.T, c *Cluster) {
	p, nodes := galeraKind().Pay(t, c), c.List()
	clustertest.Must(t, nodes[0].Kill(t.Context()))
	p.GoOn(20) // node 0 does not have them
	clustertest.Must(t, c.Each(func(n *node) error { return n.Kill(t.Context()) }))
	short, cancel := context.WithCancel(clustertest.Within(t, clustertest.WaitLimit))
	defer cancel()
	go func() { // until it has looked at the others' data
		defer cancel()
		_ = retry(short, func() error {
			c.Mu.Lock()
			defer c.Mu.Unlock()
			if nodes[1].known == nil || nodes[2].known == nil {
				return errors.New("not yet")
			}
			return nil
		})
		_ = wait.Sleep(short, 4*pollEvery)
	}()
	if err := nodes[0].Restart(short); err == nil || !strings.Contains(err.Error(), "as well") {
		t.Errorf("a node with old data formed a group: %v", err)
	}
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	clustertest.Must(t, c.Each(func(n *node) error { return n.Restart(ctx) }))
	p.GoOn(20)
	p.EndWell("kill one, then all, and restart")
}

// testMajority kills two nodes of three. The third alone must refuse writes until they are restarted.
func testMajority(t *testing.T, c *Cluster) {
	p, ctx, nodes := galeraKind().Pay(t, c), clustertest.Within(t, clustertest.WaitLimit), c.List()
	both(t, c, func(n *node) error { return n.Kill(t.Context()) })
	clustertest.Must(t, retry(ctx, func() error {
		if s, err := nodes[2].status(ctx); err != nil || s.primary() {
			return fmt.Errorf("one node of three is in a primary component: %w", err)
		}
		return nil
	}))
	if err := nodes[2].Replace(clustertest.Within(t, 200*time.Millisecond)); err == nil || !nodes[2].Running() {
		t.Errorf("the last node that has the data was replaced: %v", err)
	}
	both(t, c, func(n *node) error { return n.Restart(ctx) })
	p.GoOn(20)
	p.EndWell("kill two of three")
}

// TestServerRunsFromMovedInstallation checks that a server starts from an installation in another place than it
// was built for.
func TestServerRunsFromMovedInstallation(t *testing.T) {
	if _, err := findMariaDB(t.Context(), cluster.Options{}); err != nil {
		t.Skipf("skipped engine: mariadb: %v", err)
	}
	prefix := clustertest.OpenDir(t)
	for _, folder := range []string{"bin", "sbin", "share", "lib"} {
		clustertest.Must(t, os.Symlink("/usr/"+folder, filepath.Join(prefix, folder)))
	}
	c := kindOf(StartMariaDB, url.Values{"bin": {filepath.Join(prefix, "bin")}}).Start(t, cluster.Options{Nodes: 1})
	if got := c.Nodes()[0].(*node).value(t, "SELECT @@basedir"); filepath.Clean(got) != prefix {
		t.Errorf("the server's basedir is %s, want %s", got, prefix)
	}
}

// TestProgramsAreFoundByOldAndNewNames checks that a folder's programs are found by their present names, and by their
// names before MariaDB 10.5.
func TestProgramsAreFoundByOldAndNewNames(t *testing.T) {
	make := func(names ...string) string {
		prefix := clustertest.OpenDir(t)
		for _, name := range names {
			path := filepath.Join(prefix, name)
			clustertest.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			clustertest.Must(t, os.WriteFile(path, nil, 0o755))
		}
		return prefix
	}
	now, before := make("bin/mariadbd", "scripts/mariadb-install-db"), make("bin/mysqld", "scripts/mysql_install_db")
	t.Setenv("PATH", filepath.Join(now, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for _, c := range []struct {
		prefix, server, install string
		params                  url.Values
	}{
		{now, "bin/mariadbd", "scripts/mariadb-install-db", nil},
		{before, "bin/mysqld", "scripts/mysql_install_db", url.Values{"bin": {filepath.Join(before, "bin")}}},
	} {
		p, err := findMariaDB(t.Context(), cluster.Options{Params: c.params})
		if err != nil || p.server != filepath.Join(c.prefix, c.server) || p.install != filepath.Join(c.prefix, c.install) {
			t.Errorf("%v: found %s and %s, %v", c.params, p.server, p.install, err)
		}
	}
}

func TestStartRejectsInvalidOptions(t *testing.T) {
	one := kindOf(StartMariaDB, nil).Launch
	galeraKind().Refuses(t, []string{"rsync", "mariadb-server", "galera-4"},
		clustertest.Refusal{Launch: one, Options: cluster.Options{Nodes: 2}, Says: "has one node"},
		clustertest.Refusal{Launch: one, Query: "timeout=1s", Says: "parameter timeout: MariaDB has no such parameter"},
		clustertest.Refusal{Query: "timeout=1", Says: "parameter timeout: it must be a time"},
		clustertest.Refusal{Query: "snapshot=yes", Says: "parameter snapshot: it must be one of on, off"},
		clustertest.Refusal{Query: "flush=3", Says: "parameter flush: it must be one of 0, 1, 2"},
		clustertest.Refusal{Query: "flush=1&flush=2", Says: "given 2 times"},
		clustertest.Refusal{Query: "set.wsrep_provider_opt=x", Says: "sets wsrep-provider-options itself"},
		clustertest.Refusal{Launch: one, Query: "set.loose-datadir=/", Says: "sets datadir itself"},
		clustertest.Refusal{Launch: one, Query: "set.a b=/", Says: "small letters"},
		clustertest.Refusal{Options: cluster.Options{Nodes: 3, FaultFS: true}, Says: "disk faults"},
		clustertest.Refusal{Launch: one, Query: "set.no-such-setting=1", Says: "no-such-setting"})
}

// testCrash makes a server end like a Galera server that has missed too much.
func testCrash(t *testing.T, c *Cluster) {
	p, n := galeraKind().Pay(t, c), c.List()[1]
	ended := n.PIDs()[0]
	clustertest.Must(t, syscall.Kill(ended, syscall.SIGABRT))
	clustertest.Must(t, c.WaitHealthy(clustertest.Within(t, clustertest.WaitLimit)))
	p.GoOn(20)
	p.EndWell("a crash")
	if pids := n.PIDs(); len(pids) == 0 || pids[0] == ended {
		t.Errorf("the processes are %v, and that of before was %d", pids, ended)
	}
	var said []string
	for _, e := range c.Events() {
		said = append(said, e.Text)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "n1 has crashed (signal: aborted") || !strings.HasSuffix(text, "n1 is back") {
		t.Errorf("the events are:\n%s", text)
	}
}
