package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	driver "stroppy/internal/db/redis"
)

// teller moves money between two accounts and records each transfer under a number, in one transaction. Both accounts
// start at 0, so their sum must stay 0.
type teller struct {
	database *driver.Database
	session  db.KVSession
	account  string
}

func (t teller) Pay(ctx context.Context, id string) error {
	if err := t.session.Begin(ctx, false); err != nil {
		return err
	}
	names := [][]byte{[]byte(t.account + "a"), []byte(t.account + "b")}
	out := make([]db.Entry, 2)
	if err := t.session.Read(ctx, names, out); err != nil {
		return err
	}
	for i, change := range []int{-1, 1} {
		n, _ := strconv.Atoi(string(out[i].Value)) // a missing value is 0
		t.session.Set(names[i], []byte(fmt.Sprint(n+change)))
	}
	t.session.Set([]byte(id), []byte("1"))
	return t.session.Commit(ctx)
}

func (t teller) Close() {
	_ = t.session.Close()
	_ = t.database.Close()
}

// open opens a session at a URL.
func open(ctx context.Context, address string) (t teller, err error) {
	if t.database, err = driver.Open(ctx, address); err != nil {
		return t, err
	}
	if t.session, err = t.database.KVSession(ctx, db.SessionOptions{}); err != nil {
		err = errors.Join(err, t.database.Close())
	}
	return t, err
}

func kind() clustertest.Kind {
	return clustertest.Kind{
		Engine: "redis", Supervised: true,
		Launch: clustertest.Launcher(StartCluster),
		Teller: func(ctx context.Context, c cluster.Local, i, try int) (clustertest.Teller, error) {
			t, err := open(ctx, c.URL())
			t.account = fmt.Sprint("account", i)
			return t, err
		},
		Holds: func(ctx context.Context, c cluster.Local, node int) (map[string]string, error) {
			t, err := open(ctx, c.NodeURL(node))
			if err != nil {
				return nil, err
			}
			defer t.Close()
			held := map[string]string{}
			return held, t.session.Scan(ctx, nil, nil, func(key, value []byte) error {
				held[string(key)] = string(value)
				return nil
			})
		},
		Sound: func(held map[string]string) error {
			total := 0
			for name, value := range held {
				if strings.HasPrefix(name, "account") {
					n, err := strconv.Atoi(value)
					if err != nil {
						return err
					}
					total += n
				}
			}
			if total != 0 {
				return fmt.Errorf("the total is wrong by %d", total)
			}
			return nil
		},
	}
}

// startCluster starts a cluster with parameters.
func startCluster(t *testing.T, nodes int, query string) *Cluster {
	t.Helper()
	return startOn(t, cluster.Options{Nodes: nodes}, query)
}

func startOn(t *testing.T, o cluster.Options, query string) *Cluster {
	t.Helper()
	params, err := url.ParseQuery(query)
	clustertest.Must(t, err)
	o.Params = params
	return kind().Start(t, o).(*Cluster)
}

// TestLostPrimaryIsNotReplacedWithoutFailOver checks that no replica takes over from a lost primary without
// fail-over, and that a server that ends by itself is restarted.
func TestLostPrimaryIsNotReplacedWithoutFailOver(t *testing.T) {
	c := startCluster(t, 2, "failover=off&wait=1")
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	primary, replica := c.List()[0], c.List()[1]
	if u := c.URL(); strings.Contains(u, "sentinel") || !strings.Contains(u, primary.address()+","+replica.address()) || !strings.HasSuffix(u, "?wait=1") {
		t.Errorf("the URL is %s", u)
	}
	p := kind().Pay(t, c)
	clustertest.Must(t, primary.Kill(ctx))
	clustertest.Must(t, wait.Sleep(ctx, time.Second))
	if v, err := look(ctx, replica.orders); err != nil || v.primary || primary.Running() {
		t.Errorf("the replica was promoted, or the primary is started: %v", err)
	}
	if err := primary.Replace(ctx); err == nil || !strings.Contains(err.Error(), "no other node takes over") {
		t.Errorf("the data that lead were taken away: %v", err)
	}
	clustertest.Must(t, primary.Restart(ctx))
	p.GoOn(20)
	clustertest.Must(t, replica.Replace(ctx))
	p.GoOn(20)
	for _, pid := range replica.PIDs() {
		clustertest.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	p.GoOn(20)
	p.EndWell("without fail-over")
}

func TestParamsRejectInvalidValues(t *testing.T) {
	clustertest.Params(t, func(values url.Values) (params, error) { return parseParams(values, 3, byNobody) }, map[string]string{
		"appendfsync=everysec&wait=1&failover=off&set.maxmemory=1gb":                                                  "",
		"failover=sentinel&down-after=1s&failover-timeout=5s&wait=2":                                                  "",
		"appendonly=no&save=60%201000%20300%201&min-replicas-to-write=1&min-replicas-max-lag=1&repl-diskless-sync=no": "",
		"save=":                             "",
		"save=60":                           "seconds and changes",
		"save=60%20many":                    "seconds and changes",
		"appendonly=on":                     "one of yes, no",
		"min-replicas-to-write=3":           "from 0 to 2",
		"min-replicas-max-lag=-1":           "from 0 to 3600",
		"timeout=2s":                        "use Sentinel's down-after",
		"failover=ideal":                    "use failover=sentinel",
		"failover=off&down-after=1s":        "it is for failover=sentinel",
		"failover=sentinel&down-after=10ms": "from 200ms to 1m0s",
		"failover=sentinel&failover-timeout=500ms": "from 1s to 1h0m0s",
		"down-aftr=1s":                      "the nearest is down-after",
		"set.replica-priority=0":            "cannot be changed",
		"set.save=&save=":                   "leave one of them out",
		"set.save=60%201000":                "",
		"apendfsync=no":                     "the nearest is appendfsync",
		"failovr=on":                        "the nearest is failover",
		"waits=1":                           "the nearest is wait",
		"appendfsync=on":                    "one of always, everysec, no",
		"failover=yes":                      "one of sentinel, off",
		"wait=3":                            "from 0 to 2",
		"wait=-1":                           "from 0 to 2",
		"set.Port=1":                        "cannot be changed",
		"set.replicaof=x":                   "cannot be changed",
		"set.=1":                            "not the name of a setting",
		"set.a'b=1":                         "not the name of a setting",
		"set.maxmemory=1%0Aport 1":          "one line",
		"set.appendfsync=no&appendfsync=no": "leave one of them out",
	})
}

// TestSingleServerRejectsParamsOfReplication checks the parameters that a single server refuses, because it has no
// replica.
func TestSingleServerRejectsParamsOfReplication(t *testing.T) {
	clustertest.Params(t, func(values url.Values) (params, error) { return parseParams(values, 1, byNobody) }, map[string]string{
		"wait=0&min-replicas-to-write=0": "",
		"wait=1":                         "one server has no replica: use at least 2 nodes",
		"min-replicas-to-write=1":        "one server has no replica: use at least 2 nodes",
		"min-replicas-to-write=-1":       "from 0 to 0",
	})
}

func TestParseReplicationInfo(t *testing.T) {
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
	v, err = parseView("role:master\r\nmin_slaves_good_slaves:2\r\nmaster_replid:abc\r\nmaster_repl_offset:70\r\n")
	if want := (view{primary: true, history: "abc", offset: 70, replicas: 2}); err != nil || v != want {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestSingleNodeUsesSettingsAndRestarts(t *testing.T) {
	k := kind()
	// With everysec a server with a slow disk answers before it writes, and a kill loses such writes.
	k.Params = url.Values{"set.maxmemory": {"100mb"}, "appendfsync": {"no"}}
	k.One(t, func(t *testing.T, c cluster.Local) {
		client := goredis.NewClient(&goredis.Options{Addr: c.Nodes()[0].(*server).address()})
		defer client.Close()
		for name, want := range map[string]string{"maxmemory": "104857600", "appendfsync": "no", "appendonly": "yes"} {
			if got, err := client.ConfigGet(t.Context(), name).Result(); err != nil || got[name] != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
	})
}

func TestStartRejectsInvalidOptions(t *testing.T) {
	kind().Refuses(t, []string{"redis-server"},
		clustertest.Refusal{Query: "set.no-such-setting=1", Options: cluster.Options{Nodes: 2}, Says: "Bad directive"},
		clustertest.Refusal{Query: "wait=1", Says: "parameter wait: "})
}

func TestProgramComesFromBinOrPath(t *testing.T) {
	found, err := findServer(cluster.Options{})
	clustertest.Need(t, "redis", err)
	kind().Programs(t, found)
}

// TestFirstServerOnPathIsUsed checks that the first folder on PATH is used, whichever product it has.
func TestFirstServerOnPathIsUsed(t *testing.T) {
	own := t.TempDir()
	valkey := filepath.Join(own, "valkey-server")
	clustertest.Must(t, os.WriteFile(valkey, nil, 0o755))
	t.Setenv("PATH", own+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for _, o := range []cluster.Options{{}, {Params: url.Values{"bin": {own}}}} {
		if found, err := findServer(o); err != nil || found != valkey {
			t.Errorf("%v: found %s, %v, want %s", o.Params, found, err, valkey)
		}
	}
}

// TestPausedServerGivesTimeout checks that a query to a paused server returns a time-out, and not a closed
// connection. So the caller knows that nothing was answered.
func TestPausedServerGivesTimeout(t *testing.T) {
	m := startCluster(t, 1, "").List()[0]
	s := newSession(m.address(), 100*time.Millisecond)
	t.Cleanup(s.close)
	_, err := look(t.Context(), s)
	clustertest.Must(t, err)
	clustertest.Must(t, m.Pause(t.Context()))
	for range 10 {
		if _, err := look(t.Context(), s); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a server that does not answer: %v", err)
		}
	}
	clustertest.Must(t, m.Resume(t.Context()))
}
