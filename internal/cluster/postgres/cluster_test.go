package postgres

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

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/cluster"
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func needPostgres(t *testing.T) {
	t.Helper()
	_, err := findPrograms()
	if missing, ok := errors.AsType[cluster.MissingError](err); ok {
		t.Skip("skipped engine: postgres: install the Debian package " + missing.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startCluster starts a cluster whose events are logged when the test has ended.
func startCluster(t *testing.T, nodes int, query string) *Cluster {
	t.Helper()
	needPostgres(t)
	params, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c, err := StartCluster(within(t, time.Minute), cluster.Options{Nodes: nodes, InMemory: true, Params: params})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes up in %v", nodes, time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		for _, e := range c.Events() {
			t.Logf("%8.3fs %s", e.Time.Sub(began).Seconds(), e.Text)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// execute runs statements at a URL and returns the rows of the last.
func execute(ctx context.Context, url, sql string) ([][]byte, error) {
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var column [][]byte
	for _, row := range results[len(results)-1].Rows {
		column = append(column, row[0])
	}
	return column, nil
}

func mustExecute(t *testing.T, url, sql string) [][]byte {
	t.Helper()
	rows, err := execute(within(t, 10*time.Second), url, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

// payments are clients that insert numbers, one a transaction, each on a
// connection of its own that it makes anew when something fails. No number is
// sent twice.
type payments struct {
	t    *testing.T
	c    *Cluster
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	next  int
	acked map[string]bool
	last  time.Time
	gap   time.Duration // the longest time without an acknowledgement
}

const table = "CREATE TABLE IF NOT EXISTS paid (id bigint PRIMARY KEY)"

// pay begins with four clients. ids begin above those of earlier payments.
func pay(t *testing.T, c *Cluster) *payments {
	t.Helper()
	mustExecute(t, c.URL(), table)
	ctx, stop := context.WithCancel(t.Context())
	p := &payments{t: t, c: c, stop: stop, acked: map[string]bool{}, last: time.Now()}
	p.next = int(time.Now().UnixMilli()) * 1000
	t.Cleanup(func() { stop(); p.done.Wait() })
	for range 4 {
		p.done.Go(func() { p.client(ctx) })
	}
	p.goOn(20)
	return p
}

func (p *payments) client(ctx context.Context) {
	var conn *pgconn.PgConn
	for ctx.Err() == nil {
		if conn == nil {
			limited, cancel := context.WithTimeout(ctx, 5*time.Second)
			var err error
			if conn, err = pgconn.Connect(limited, p.c.URL()); err != nil {
				conn = nil
				_ = pause(ctx, 5*time.Millisecond)
			}
			cancel()
			continue
		}
		p.mu.Lock()
		p.next++
		id := fmt.Sprint(p.next)
		p.mu.Unlock()
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := conn.Exec(limited, "INSERT INTO paid VALUES ("+id+")").ReadAll()
		cancel()
		if err != nil {
			_ = conn.Close(context.WithoutCancel(limited))
			conn = nil
			continue
		}
		p.mu.Lock()
		p.acked[id] = true
		p.gap, p.last = max(p.gap, time.Since(p.last)), time.Now()
		p.mu.Unlock()
	}
	if conn != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
	}
}

// goOn waits until so many more payments are acknowledged.
func (p *payments) goOn(more int) {
	p.t.Helper()
	goal := p.count() + more
	if err := persist(within(p.t, 30*time.Second), func() error {
		if n := p.count(); n < goal {
			return fmt.Errorf("%d payments are acknowledged, %d are waited for", n, goal)
		}
		return nil
	}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *payments) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acked)
}

// end stops the clients, waits until the cluster is whole, and returns how many
// acknowledged payments are lost. All nodes must hold the same.
func (p *payments) end(what string) (lost int) {
	p.t.Helper()
	p.stop()
	p.done.Wait()
	ctx := within(p.t, 30*time.Second)
	began := time.Now()
	if err := p.c.Whole(ctx); err != nil {
		p.t.Fatal(err)
	}
	whole := time.Since(began)
	leader, err := p.c.Leader(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, id := range mustExecute(p.t, p.c.NodeURL(leader), "SELECT id FROM paid") {
		there[string(id)] = true
	}
	for id := range p.acked {
		if !there[id] {
			lost++
		}
	}
	const digest = "SELECT count(*) || ' ' || sum(id) FROM paid"
	want := string(mustExecute(p.t, p.c.NodeURL(leader), digest)[0])
	for _, n := range p.c.Nodes() {
		if got := string(mustExecute(p.t, p.c.NodeURL(n.Number()), digest)[0]); got != want {
			p.t.Errorf("%s holds %s, the primary %s", n.Name(), got, want)
		}
	}
	p.t.Logf("%s: %d acknowledged, %d lost, no success for %v, whole after %v", what, len(p.acked), lost,
		p.gap.Round(time.Millisecond), whole.Round(time.Millisecond))
	return lost
}

// endWell is end when nothing may be lost.
func (p *payments) endWell(what string) {
	p.t.Helper()
	if lost := p.end(what); lost > 0 {
		p.t.Errorf("%s: %d acknowledged payments are lost", what, lost)
	}
}

// roles returns the primary and another node.
func roles(t *testing.T, c *Cluster) (primary, standby *node) {
	t.Helper()
	i, err := c.Leader(within(t, 20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.list() {
		if n.Number() == i {
			primary = n
		} else {
			standby = n
		}
	}
	return primary, standby
}

// succeeds waits until another node than n leads.
func succeeds(t *testing.T, c *Cluster, n *node) *node {
	t.Helper()
	if err := c.awaitPrimary(within(t, 20*time.Second), n); err != nil {
		t.Fatal(err)
	}
	return c.leading()
}

// told waits for an event after another.
func told(t *testing.T, c *Cluster, from int, part string) {
	t.Helper()
	err := persist(within(t, 20*time.Second), func() error {
		for _, e := range c.Events()[from:] {
			if strings.Contains(e.Text, part) {
				return nil
			}
		}
		return fmt.Errorf("no event says %q: %v", part, c.Events()[from:])
	})
	if err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestParams(t *testing.T) {
	for _, test := range []struct{ query, problem string }{
		{"sync=off&fsync=off&set.work_mem=8MB&timeout=2s", ""},
		{"strict=on", ""},
		{"snyc=off", "the nearest is sync"},
		{"fsink=off", "the nearest is fsync"},
		{"sync=0", `"0" is neither on nor off`},
		{"fsync=no", `"no" is neither on nor off`},
		{"strict=on&sync=off", "leave out sync=off"},
		{"timeout=1", "from 200ms to 1m0s"},
		{"timeout=1ms", "from 200ms to 1m0s"},
		{"set.Port=1", "not for you to set"},
		{"set.synchronous_standby_names=x", "not for you to set"},
		{"set.=1", "no name of a setting"},
		{"set.a'b=1", "no name of a setting"},
		{"set.work_mem=8MB%0Aport=1", "one line"},
	} {
		values, err := url.ParseQuery(test.query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parseParams(values)
		var param *cluster.ParamError
		switch {
		case test.problem == "" && err != nil:
			t.Errorf("%s: %v", test.query, err)
		case test.problem != "" && (!errors.As(err, &param) || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%s: %v, want %q", test.query, err, test.problem)
		}
	}
	p, err := parseParams(url.Values{"sync": {"off"}, "set.Work_Mem": {"8MB"}, "fsync": {"off"}})
	if err != nil || p.synchronous || p.settings["work_mem"] != "8MB" || p.settings["fsync"] != "off" || p.patience != time.Second {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestClusterOfOne(t *testing.T) {
	c := startCluster(t, 1, "fsync=off&set.work_mem=5MB")
	primary, _ := roles(t, c)
	ctx := within(t, 30*time.Second)
	if got := mustExecute(t, c.URL(), "SELECT current_setting('fsync') || current_setting('work_mem')"); string(got[0]) != "off5MB" {
		t.Errorf("settings: %s", got[0])
	}
	p := pay(t, c)
	must(t, primary.Kill())
	must(t, pause(ctx, 200*time.Millisecond))
	if primary.Running() {
		t.Error("a node that was killed on purpose was started")
	}
	must(t, primary.Restart(ctx))
	p.goOn(20)
	// A crash is not a fault of anybody's: the supervisor starts it again.
	before := primary.PIDs()
	must(t, primary.Server.Kill())
	p.goOn(20)
	if after := primary.PIDs(); len(before) == 0 || len(after) == 0 || before[0] == after[0] {
		t.Errorf("processes before %v, after %v", before, after)
	}
	must(t, primary.Pause())
	must(t, pause(ctx, 1500*time.Millisecond))
	if !primary.Running() || primary.Fenced() {
		t.Error("the only node was fenced")
	}
	must(t, primary.Resume())
	p.goOn(20)
	p.endWell("kill, crash and pause the only node")
	if err := primary.Replace(ctx); err == nil || !strings.Contains(err.Error(), "nobody to take its data from") {
		t.Errorf("replace the only node: %v", err)
	}
	if !primary.Running() {
		t.Error("the refused replacement ended the node")
	}
	if err := c.Remove(ctx, 0); err == nil || !primary.Running() {
		t.Errorf("remove the only node: %v", err)
	}
}

func TestClusterStopLeavesNothing(t *testing.T) {
	needPostgres(t)
	dir := filepath.Join(openDir(t), "cluster")
	c, err := StartCluster(within(t, time.Minute), cluster.Options{Nodes: 2, Dir: dir, Loopback: true})
	must(t, err)
	if c.Network().Loopback() == "" || !strings.Contains(c.URL(), "@127.0.0.1:") {
		t.Errorf("on loopback: %s, %s", c.URL(), c.Network().Loopback())
	}
	must(t, c.list()[0].Pause()) // a paused node must go too
	if pids := processesIn(t, dir); len(pids) < 10 {
		t.Fatalf("found only the processes %v: this test would prove nothing", pids)
	}
	segments := sharedMemory(t, dir)
	if len(segments) != 2 {
		t.Fatalf("found the shared memory segments %v of two servers", segments)
	}
	must(t, c.Stop())
	must(t, c.Stop())
	table, err := os.ReadFile("/proc/sysvipc/shm")
	must(t, err)
	for _, id := range segments {
		if strings.Contains(string(table), " "+id+" ") {
			t.Errorf("the shared memory segment %s is there yet", id)
		}
	}
	if pids := processesIn(t, dir); len(pids) > 0 {
		t.Errorf("the processes %v are there yet", pids)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
	u, err := url.Parse(c.NodeURL(0))
	must(t, err)
	if conn, err := net.Dial("tcp", u.Host); err == nil {
		conn.Close()
		t.Error("something still listens on the node's port")
	}
	if err := c.list()[0].Restart(within(t, 5*time.Second)); err == nil {
		t.Error("a node of a stopped cluster was restarted")
	}
	if _, err := c.Add(within(t, 5*time.Second)); err == nil {
		t.Error("a stopped cluster has grown")
	}
}

// sharedMemory returns the numbers of the segments that the servers below a
// folder name as theirs.
func sharedMemory(t *testing.T, dir string) (ids []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "data", "postmaster.pid"))
	must(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(t, err)
		ids = append(ids, strings.Fields(strings.Split(string(text), "\n")[6])[1])
	}
	return ids
}

func TestStartClusterRefuses(t *testing.T) {
	needPostgres(t)
	ctx := within(t, time.Minute)
	if _, err := StartCluster(ctx, cluster.Options{}); err == nil {
		t.Error("a cluster of no nodes was started")
	}
	dir := openDir(t)
	must(t, os.Mkdir(filepath.Join(dir, "n0"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "n0", "precious"), nil, 0o600))
	if _, err := StartCluster(ctx, cluster.Options{Nodes: 1, Dir: dir}); err == nil || !strings.Contains(err.Error(), "take another folder") {
		t.Errorf("a used folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "n0", "precious")); err != nil {
		t.Error("what was in the folder is gone")
	}
	_, err := StartCluster(ctx, cluster.Options{Nodes: 2, InMemory: true, Params: url.Values{"set.no_such_setting": {"1"}}})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("a setting that does not exist: %v", err)
	}
}
