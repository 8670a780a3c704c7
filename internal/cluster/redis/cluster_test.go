package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/db"
	driver "stroppy/internal/db/redis"
)

// startCluster starts a cluster whose events are logged when the test has ended.
func startCluster(t *testing.T, nodes int, query string) *Cluster {
	t.Helper()
	return startOn(t, cluster.Options{Nodes: nodes}, query)
}

func startOn(t *testing.T, o cluster.Options, query string) *Cluster {
	t.Helper()
	if _, err := cluster.Find("redis-server", "redis-server"); err != nil {
		t.Skip("skipped engine: redis: install the Debian package redis-server")
	}
	params, err := url.ParseQuery(query)
	must(t, err)
	began := time.Now()
	o.InMemory, o.Params = true, params
	c, err := StartCluster(within(t, time.Minute), o)
	must(t, err)
	t.Logf("%d nodes up in %v", o.Nodes, time.Since(began).Round(time.Millisecond))
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

// payments are clients that move money between two accounts of their own and note
// each transfer under a number, in one transaction. No number is sent twice.
type payments struct {
	t    *testing.T
	c    *Cluster
	d    *driver.Database
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	next  int
	acked map[string]bool
	last  time.Time
	gap   time.Duration // the longest time without an acknowledgement
}

const clients = 4

// pay begins. The accounts are empty together: what one has too much the other
// has too little.
func pay(t *testing.T, c *Cluster) *payments {
	t.Helper()
	d, err := driver.Open(within(t, 10*time.Second), c.URL())
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	p := &payments{t: t, c: c, d: d, stop: stop, acked: map[string]bool{}, last: time.Now(), next: int(time.Now().UnixMilli()) * 1000}
	t.Cleanup(func() {
		stop()
		p.done.Wait()
		must(t, d.Close())
	})
	for i := range clients {
		p.done.Go(func() { p.client(ctx, fmt.Sprint("account", i)) })
	}
	p.goOn(20)
	return p
}

func (p *payments) client(ctx context.Context, account string) {
	var s db.KVSession
	for ctx.Err() == nil {
		var err error
		if s == nil {
			s, err = p.d.KVSession(ctx, db.SessionOptions{})
		} else if err = s.Begin(ctx, false); err == nil {
			err = p.transfer(ctx, s, account)
		}
		if err != nil && s != nil && db.ClassOf(err) != db.Aborted {
			_ = s.Reset(ctx) // tried again if it fails
		}
		if err != nil {
			_ = pause(ctx, 5*time.Millisecond)
		}
	}
	if s != nil {
		_ = s.Close()
	}
}

func (p *payments) transfer(ctx context.Context, s db.KVSession, account string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	p.mu.Lock()
	p.next++
	id := fmt.Sprint("payment", p.next)
	p.mu.Unlock()
	names := [][]byte{[]byte(account + "a"), []byte(account + "b")}
	out := make([]db.Entry, 2)
	if err := s.Read(ctx, names, out); err != nil {
		return err
	}
	for i, change := range []int{-1, 1} {
		n, _ := strconv.Atoi(string(out[i].Value)) // nothing is 0
		s.Set(names[i], []byte(fmt.Sprint(n+change)))
	}
	s.Set([]byte(id), []byte("1"))
	if err := s.Commit(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked[id] = true
	p.gap, p.last = max(p.gap, time.Since(p.last)), time.Now()
	return nil
}

func (p *payments) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acked)
}

// goOn waits until so many more payments are acknowledged.
func (p *payments) goOn(more int) {
	p.t.Helper()
	goal := p.count() + more
	must(p.t, persist(within(p.t, 30*time.Second), func() error {
		if n := p.count(); n < goal {
			return fmt.Errorf("%d payments are acknowledged, %d are waited for", n, goal)
		}
		return nil
	}))
}

// holds returns all that a node holds.
func holds(t *testing.T, c *Cluster, number int) map[string]string {
	t.Helper()
	ctx := within(t, 10*time.Second)
	d, err := driver.Open(ctx, c.NodeURL(number))
	must(t, err)
	s, err := d.KVSession(ctx, db.SessionOptions{})
	must(t, err)
	found := map[string]string{}
	must(t, s.Scan(ctx, nil, nil, func(key, value []byte) error {
		found[string(key)] = string(value)
		return nil
	}))
	must(t, errors.Join(s.Close(), d.Close()))
	return found
}

// end stops the clients, waits until the cluster is whole, and returns how many
// acknowledged payments are lost. All nodes must hold the same, and the total must
// be right.
func (p *payments) end(what string) (lost int) {
	p.t.Helper()
	p.stop()
	p.done.Wait()
	began := time.Now()
	must(p.t, p.c.Whole(within(p.t, 30*time.Second)))
	whole := time.Since(began)
	leader, err := p.c.Leader(within(p.t, 5*time.Second))
	must(p.t, err)
	there := holds(p.t, p.c, leader)
	total, primaries := 0, 0
	for name, value := range there {
		if strings.HasPrefix(name, "account") {
			n, err := strconv.Atoi(value)
			must(p.t, err)
			total += n
		}
	}
	if total != 0 {
		p.t.Errorf("%s: the total is wrong by %d", what, total)
	}
	for id := range p.acked {
		if there[id] == "" {
			lost++
		}
	}
	for _, m := range p.c.list() {
		if got := holds(p.t, p.c, m.Number()); !maps.Equal(got, there) {
			p.t.Errorf("%s holds %d keys, the primary %d, and they differ", m.Name(), len(got), len(there))
		}
		if _, err := m.leads(p.t.Context()); err == nil {
			primaries++
		}
	}
	if primaries != 1 {
		p.t.Errorf("%d nodes say that they lead", primaries)
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
func roles(t *testing.T, c *Cluster) (primary, replica *member) {
	t.Helper()
	i, err := c.Leader(within(t, 20*time.Second))
	must(t, err)
	for _, m := range c.list() {
		if m.Number() == i {
			primary = m
		} else {
			replica = m
		}
	}
	return primary, replica
}

// succeeds waits until another node than m leads.
func succeeds(t *testing.T, c *Cluster, m *member) *member {
	t.Helper()
	must(t, c.awaitPrimary(within(t, 20*time.Second), m))
	return c.leader()
}

func TestParams(t *testing.T) {
	for _, test := range []struct{ query, problem string }{
		{"appendfsync=everysec&wait=1&failover=off&timeout=2s&set.maxmemory=1gb", ""},
		{"set.save=60%201000", ""},
		{"apendfsync=no", "the nearest is appendfsync"},
		{"failovr=on", "the nearest is failover"},
		{"waits=1", "the nearest is wait"},
		{"appendfsync=on", "none of always"},
		{"failover=yes", "neither on nor off"},
		{"wait=3", "from 0 to 2"},
		{"wait=-1", "from 0 to 2"},
		{"timeout=1", "from 200ms to 1m0s"},
		{"set.Port=1", "not for you to set"},
		{"set.replicaof=x", "not for you to set"},
		{"set.=1", "no name of a setting"},
		{"set.a'b=1", "no name of a setting"},
		{"set.maxmemory=1%0Aport 1", "one line"},
		{"set.appendfsync=no&appendfsync=no", "leave one of them out"},
	} {
		values, err := url.ParseQuery(test.query)
		must(t, err)
		_, err = parseParams(values, 3)
		var param *cluster.ParamError
		switch {
		case test.problem == "" && err != nil:
			t.Errorf("%s: %v", test.query, err)
		case test.problem != "" && (!errors.As(err, &param) || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%s: %v, want %q", test.query, err, test.problem)
		}
	}
}

func TestNoNodes(t *testing.T) {
	if _, err := StartCluster(t.Context(), cluster.Options{}); err == nil {
		t.Error("a cluster of no nodes was started")
	}
}

func TestParseView(t *testing.T) {
	v, err := parseView("# Replication\r\nrole:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:up\r\n" +
		"master_sync_in_progress:0\r\nslave_repl_offset:70\r\nmaster_replid:abc\r\nmaster_repl_offset:70\r\n")
	if want := (view{history: "abc", offset: 70, source: "10.0.0.1:6379", up: true}); err != nil || v != want {
		t.Errorf("%+v, %v", v, err)
	}
	for _, text := range []string{"", "role:sentinel\r\n", "role:master\r\nmaster_replid:a\r\nmaster_repl_offset:x\r\n", "role:master\r\nmaster_repl_offset:1\r\n"} {
		if v, err := parseView(text); err == nil {
			t.Errorf("%q gives %+v", text, v)
		}
	}
	old, fresh := view{history: "old", offset: 9}, view{history: "new", offset: 1}
	if !old.before(fresh, "new") || fresh.before(old, "new") || !fresh.before(old, "") {
		t.Error("offsets of two histories were compared")
	}
}

func TestClusterOfOne(t *testing.T) {
	c := startCluster(t, 1, "set.maxmemory=100mb&appendfsync=everysec")
	primary, _ := roles(t, c)
	ctx := within(t, 30*time.Second)
	for name, want := range map[string]string{"maxmemory": "104857600", "appendfsync": "everysec", "appendonly": "yes"} {
		if got, err := primary.orders.ask(ctx, "CONFIG", "GET", name); err != nil || got != name+"\n"+want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	p := pay(t, c)
	must(t, primary.Kill())
	must(t, pause(ctx, 300*time.Millisecond))
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
	if !primary.Running() {
		t.Error("a primary without a replica was ended because it was silent")
	}
	must(t, primary.Resume())
	if err := primary.Replace(ctx); err == nil || !strings.Contains(err.Error(), "nobody to take its data from") {
		t.Errorf("the only node was replaced: %v", err)
	}
	p.endWell("kill, crash and pause one node")
}

func TestStopLeavesNothing(t *testing.T) {
	c := startCluster(t, 2, "")
	dir := c.dir
	pids := append(c.list()[0].PIDs(), c.list()[1].PIDs()...)
	if len(pids) < 2 {
		t.Errorf("2 nodes have the processes %v", pids)
	}
	must(t, c.list()[0].Pause())
	must(t, c.Stop())
	must(t, c.Stop())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stop left the folder %s", dir)
	}
	for _, pid := range pids {
		// A child that was rewriting a file is there until somebody has asked how it ended.
		must(t, persist(within(t, 10*time.Second), func() error {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(text), ") Z ") {
				return fmt.Errorf("Stop left the process %d", pid)
			}
			return nil
		}))
	}
	if _, err := c.Add(t.Context()); !errors.Is(err, errStopped) {
		t.Errorf("a node was added to a stopped cluster: %v", err)
	}
	if err := c.list()[0].Restart(t.Context()); !errors.Is(err, errStopped) {
		t.Errorf("a node of a stopped cluster was restarted: %v", err)
	}
	kept := t.TempDir()
	_, err := StartCluster(within(t, time.Minute), cluster.Options{Nodes: 2, Dir: kept, Params: url.Values{"set.no-such-setting": {"1"}}})
	if err == nil || !strings.Contains(err.Error(), "Bad directive") {
		t.Errorf("a setting that does not exist: %v", err)
	}
	if entries, err := os.ReadDir(kept); err != nil || len(entries) > 0 {
		t.Errorf("a failed start left %v, %v", entries, err)
	}
}
