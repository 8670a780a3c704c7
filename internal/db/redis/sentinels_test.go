package redis_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/db/redis"
)

// sentinel is a server that imitates a Sentinel with one primary.
type sentinel struct {
	mu       sync.Mutex
	primary  string
	epoch    int
	replicas int
	flags    string // of each replica; empty: the replica is up
	priority string // of each replica
	password string // the required password; empty: none
}

func (s *sentinel) say(primary string, epoch int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.primary, s.epoch = primary, epoch
}

// serve answers until the test ends, and returns the address.
func (s *sentinel) serve(t *testing.T) string {
	bulks := func(words ...string) string {
		text := fmt.Sprintf("*%d", len(words))
		for _, w := range words {
			text += fmt.Sprintf("\r\n$%d\r\n%s", len(w), w)
		}
		return text
	}
	return fake(t, func(words []string) (string, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if words[0] == "hello" && s.password != "" && words[len(words)-1] != s.password {
			return "-NOAUTH HELLO must be called with the client already authenticated", false
		}
		host, port, _ := net.SplitHostPort(s.primary)
		switch strings.Join(words, " ") {
		case "sentinel get-master-addr-by-name bank":
			return bulks(host, port), false
		case "sentinel get-master-addr-by-name shop":
			return "*-1", false
		case "sentinel master bank":
			return bulks("config-epoch", fmt.Sprint(s.epoch), "num-slaves", fmt.Sprint(s.replicas)), false
		case "sentinel replicas bank":
			list := fmt.Sprintf("*%d", s.replicas)
			for i := range s.replicas {
				list += "\r\n" + bulks("name", fmt.Sprintf("replica%d:6379", i), "flags", strings.TrimSuffix("slave,"+s.flags, ","), "slave-priority", s.priority)
			}
			return list, false
		case "sentinel master shop":
			return "-ERR No such master with that name", false
		case "sentinel masters":
			return "*1\r\n" + bulks("name", "bank"), false
		}
		if words[0] == "hello" {
			return bulks("version", "7.0.15", "mode", "sentinel"), false
		}
		return "", false
	})
}

// TestSessionsFollowTheSentinelsPrimary checks that sessions leave the old primary after a fail-over. Two
// Sentinels watch a pair in which both servers take writes. Sessions do not return for a Sentinel that missed the
// fail-over.
func TestSessionsFollowTheSentinelsPrimary(t *testing.T) {
	c := start(t, serverOptions{Nodes: 2})
	first, second := c.Endpoints()[0], c.Endpoints()[1]
	behind, ahead := &sentinel{primary: first, epoch: 1, replicas: 1}, &sentinel{primary: first, epoch: 1, replicas: 1}
	url := "redis://" + behind.serve(t) + "," + ahead.serve(t) + "/0?sentinel=bank"
	d := drivertest.Open(t, redis.Open, url)
	s, idle := newSession(t, d), newSession(t, d)
	kvtest.Put(t, d, "a", "1")
	kvtest.Begin(t, idle)
	kvtest.ExpectRead(t, idle, "1", "a")

	answer(t, c, 1, "replicaof", "no", "one")
	ahead.say(second, 2)
	drivertest.Must(t, wait.Retry(within(t, 10*time.Second), func() error {
		drivertest.Must(t, s.Begin(t.Context(), false))
		if err := s.Read(t.Context(), kvtest.Keys("a"), make([]db.Entry, 1)); err != nil {
			return nil
		}
		s.Rollback()
		return errors.New("the session reads the old primary yet")
	}))
	expect(t, "a session that was idle", idle.Read(t.Context(), kvtest.Keys("a"), make([]db.Entry, 1)), db.Unavailable, first, "the Sentinels name another primary")
	for _, s := range []db.KVSession{s, idle} {
		drivertest.Must(t, s.Reset(t.Context()))
	}
	kvtest.Begin(t, s)
	s.Set([]byte("a"), []byte("2"))
	kvtest.Commit(t, s)
	if old, now := answer(t, c, 0, "get", "a"), answer(t, c, 1, "get", "a"); old != "1" || now != "2" {
		t.Errorf("the old primary has %q, the new one %q", old, now)
	}
	// behind still names the first server.
	time.Sleep(300 * time.Millisecond)
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "2", "a")
	drivertest.Must(t, drivertest.Open(t, redis.Open, url).Close())
}

// TestUselessSentinelsAreExplained checks the errors for Sentinels that know no usable primary, and that Sentinels
// that require a password get it.
func TestUselessSentinelsAreExplained(t *testing.T) {
	c := start(t, serverOptions{})
	watching := &sentinel{primary: c.Endpoints()[0], replicas: 1}
	address := watching.serve(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	drivertest.Must(t, err)
	gone := listener.Addr().String()
	drivertest.Must(t, listener.Close())
	for query, want := range map[string]struct {
		class db.Class
		says  string
	}{
		address + "?sentinel=shop":                 {db.Fatal, "watches no primary called shop: it watches bank"},
		address + "?sentinel=bank&wait=2":          {db.Fatal, "knows 1 replicas of bank, and wait=2 asks for more"},
		c.Endpoints()[0] + "?sentinel=bank":        {db.Fatal, "is no Sentinel"},
		gone + "?sentinel=bank":                    {db.Unavailable, "none of the 1 Sentinels answers"},
		address + "?timeout=1s":                    {db.Fatal, "add sentinel=NAME to the URL"},
		"me:hunter2@" + address + "?sentinel=bank": {db.Fatal, "the user and the password"}, // for the server, which has no user me
	} {
		_, err := redis.Open(t.Context(), "redis://"+query)
		expect(t, query, err, want.class, want.says)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v has the password", err)
		}
	}
	drivertest.Open(t, redis.Open, "redis://"+gone+","+address+"?sentinel=bank")

	guarded := start(t, serverOptions{Password: "hunter2"})
	asks := &sentinel{primary: guarded.Endpoints()[0], password: "hunter2"}
	d := drivertest.Open(t, redis.Open, "redis://:hunter2@"+asks.serve(t)+"?sentinel=bank")
	kvtest.Put(t, d, "a", "1")
	_, err = redis.Open(t.Context(), "redis://"+asks.serve(t)+"?sentinel=bank")
	expect(t, "without a password", err, db.Fatal, "the server asks for a user and a password")
}

// TestSentinelsReportMissingSuccessor checks that Sentinels have no successor if none of them knows a replica that
// it would promote.
func TestSentinelsReportMissingSuccessor(t *testing.T) {
	c := start(t, serverOptions{})
	node := c.Endpoints()[0]
	watching := func(replicas int, flags, priority string) string {
		return (&sentinel{primary: node, replicas: replicas, flags: flags, priority: priority}).serve(t)
	}
	none, down, cut, up := watching(0, "", ""), watching(2, "s_down", "100"), watching(1, "s_down,disconnected", "100"), watching(1, "", "100")
	never := watching(1, "", "0")
	for urls, says := range map[string]string{
		none:              "the Sentinel " + none + " knows no replica of bank, so that none can take over from the Redis server " + node + ": start replicas of it",
		none + "," + down: "the Sentinel " + down + " knows no replica of bank that it would promote (replica0:6379 is down, replica1:6379 is down), so that none can take over from the Redis server " + node + ": start one, raise its replica-priority from 0, or name that server itself without sentinel=bank",
		cut:               "the Sentinel " + cut + " knows no replica of bank that it would promote (replica0:6379 is down)",
		never:             "the Sentinel " + never + " knows no replica of bank that it would promote (replica0:6379 has the priority 0)",
		none + "," + up:   "",
	} {
		t.Run(urls, func(t *testing.T) {
			t.Parallel()
			d := drivertest.Open(t, redis.Open, "redis://"+urls+"?sentinel=bank")
			if err := d.CheckSuccessors(t.Context()); says != "" {
				expect(t, urls, err, db.Fatal, says)
			} else {
				drivertest.Must(t, err)
			}
		})
	}
	drivertest.Must(t, drivertest.Open(t, redis.Open, "redis://"+node).CheckSuccessors(t.Context())) // no Sentinel watches it
}

// TestRealSentinelReportsKilledReplica checks the answers of a Sentinel that watches a pair, before and after the
// replica is killed.
func TestRealSentinelReportsKilledReplica(t *testing.T) {
	c := start(t, serverOptions{Nodes: 2})
	program, err := host.Find("redis-server", "redis-server")
	drivertest.Must(t, err)
	port, err := host.FreePort(t.Context())
	drivertest.Must(t, err)
	name, at, _ := net.SplitHostPort(c.Endpoints()[0])
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	drivertest.Must(t, os.WriteFile(conf, fmt.Appendf(nil, "bind 127.0.0.1\nport %d\nsentinel monitor bank %s %s 1\nsentinel down-after-milliseconds bank 700\n", port, name, at), 0o600))
	process, err := host.StartProcess(exec.Command(program, conf, "--sentinel"), syscall.SIGKILL)
	drivertest.Must(t, err)
	t.Cleanup(func() { drivertest.Must(t, process.Kill()) })
	var d *redis.Database
	drivertest.Must(t, wait.Retry(within(t, 10*time.Second), func() (err error) {
		d, err = redis.Open(t.Context(), fmt.Sprintf("redis://127.0.0.1:%d?sentinel=bank&wait=1", port))
		return err
	}))
	defer d.Close()
	kvtest.Put(t, d, "a", "1")
	info, err := d.Info(t.Context())
	drivertest.Must(t, err)
	if text := fmt.Sprint(info); !strings.Contains(text, "by Redis Sentinel 7") || !strings.Contains(text, "quorum 1, down-after-milliseconds 700") {
		t.Errorf("the settings are %v", text)
	}
	drivertest.Must(t, d.CheckSuccessors(t.Context()))
	drivertest.Must(t, c.Kill(1))
	drivertest.Must(t, wait.Retry(within(t, 10*time.Second), func() error {
		if err := d.CheckSuccessors(t.Context()); err == nil || !strings.Contains(err.Error(), "that it would promote ("+c.Endpoints()[1]+" is down)") {
			return fmt.Errorf("the replica is dead: %v", err)
		}
		return nil
	}))
	kvtest.Put(t, drivertest.Open(t, redis.Open, fmt.Sprintf("redis://127.0.0.1:%d?sentinel=bank", port)), "a", "2") // without a run, sessions still work
}
