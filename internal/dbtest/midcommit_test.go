package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	etcdcluster "stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/mariadb"
	"stroppy/internal/cluster/patroni"
	rediscluster "stroppy/internal/cluster/redis"
	"stroppy/internal/db"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/mysql"
	"stroppy/internal/db/postgres"
	"stroppy/internal/db/redis"
	"stroppy/internal/nemesis"
)

// failingOver is a kind of cluster that fails over, and what its commits meet.
type failingOver struct {
	engine string
	params url.Values
	start  func(context.Context, cluster.Options) (cluster.Local, error)
	more   string // for the URL of its clients, so that they do not wait long for a silent server
	open   func(context.Context, string) (db.Database, error)
	faults []metFault
}

// metFault is a fault that comes while commits are under way.
type metFault struct {
	fault   string
	unknown bool // some of the commits that were under way must have an unknown outcome
	loses   bool // what was acknowledged may be lost: see docs/track-record.md
}

func failingOvers() []failingOver {
	return []failingOver{
		{"postgres-patroni", url.Values{"synchronous": {"strict"}}, patroni.Start, "answer_timeout=3s", opens(postgres.Open), []metFault{
			{fault: "kill primary at 1s for 4s", unknown: true}, {fault: "pause primary at 1s for 2s"}, {fault: "partition primary at 1s for 6s", unknown: true},
			{fault: "move leader at 1s"}, {fault: "kill-agent primary at 1s for 6s"}, {fault: "kill-store at 1s for 5s"},
		}},
		{"redis-sentinel", url.Values{"wait": {"1"}, "min-replicas-to-write": {"1"}}, rediscluster.Start, "timeout=2s", opens(redis.Open), []metFault{
			{fault: "kill primary at 1s for 5s", unknown: true}, {fault: "pause primary at 1s for 5s", unknown: true, loses: true},
			{fault: "partition primary at 1s for 5s", unknown: true, loses: true}, {fault: "move leader at 1s", loses: true}, {fault: "kill-agent primary at 1s for 2s"},
		}},
		{"galera", nil, clustertest.Launcher(mariadb.StartGalera), "answer_timeout=3s", opens(mysql.Open), []metFault{
			{fault: "kill n0 at 1s for 3s", unknown: true}, {fault: "pause n0 at 1s for 8s", unknown: true}, {fault: "partition n0 at 1s for 9s", unknown: true}, {fault: "stop n0 at 1s for 2s"},
		}},
		{"etcd", nil, clustertest.Launcher(etcdcluster.Start), "timeout=1s", opens(etcd.Open), []metFault{
			{fault: "kill leader at 1s for 3s", unknown: true}, {fault: "pause leader at 1s for 4s", unknown: true}, {fault: "partition leader at 1s for 4s", unknown: true}, {fault: "move leader at 1s"},
		}},
	}
}

func opens[D db.Database](open func(context.Context, string) (D, error)) func(context.Context, string) (db.Database, error) {
	return func(ctx context.Context, url string) (db.Database, error) {
		d, err := open(ctx, url)
		if err != nil {
			return nil, err
		}
		return d, nil
	}
}

// allFaults is the variable of the environment that asks for more than a kill.
const allFaults = "STROPPY_TEST_FAULTS"

// TestCommitsMeetFailOver injects each fault while each of several sessions has a commit
// under way, and compares the class of every outcome with what is there in the end: what
// was acknowledged is there, and what was surely not applied is not.
func TestCommitsMeetFailOver(t *testing.T) {
	needsTime(t)
	t.Parallel()
	for _, f := range failingOvers() {
		t.Run(f.engine, func(t *testing.T) {
			t.Parallel()
			c, err := f.start(t.Context(), cluster.Options{Nodes: 3, InMemory: true, Params: f.params})
			c = served(t, f.engine, c, err)
			if why := c.Network().Loopback(); why != "" {
				t.Skip("skipped engine: network namespaces: run as root: " + why)
			}
			between := "?"
			if strings.Contains(c.URL(), "?") {
				between = "&"
			}
			d, err := f.open(t.Context(), c.URL()+between+f.more)
			d = opened(t, d, err)
			if sql, ok := d.(db.SQL); ok {
				if err := sql.Exec(t.Context(), "CREATE TABLE kept (id BIGINT PRIMARY KEY)"); err != nil {
					t.Fatal(err)
				}
			}
			var ids atomic.Int64
			if os.Getenv(allFaults) == "" {
				f.faults = f.faults[:1]
			}
			for _, fault := range f.faults {
				if !t.Run(fault.fault, func(t *testing.T) { meetOnce(t, c, d, fault, &ids) }) {
					break // the cluster may not be as the next one needs it
				}
			}
		})
	}
}

// writer writes an id in a transaction of its own.
type writer interface {
	// write says also whether the commit was begun.
	write(ctx context.Context, id int64) (committing bool, err error)
	Reset(ctx context.Context) error
	Close() error
}

type sqlWriter struct {
	db.SQLSession
	insert *db.Statement
}

func (s sqlWriter) write(ctx context.Context, id int64) (bool, error) {
	if err := s.Begin(ctx, false); err != nil {
		return false, err
	}
	if _, err := s.Do(ctx, s.insert, []db.Value{{Int: id}}); err != nil {
		return false, err
	}
	return true, s.Commit(ctx)
}

type kvWriter struct{ db.KVSession }

func (s kvWriter) write(ctx context.Context, id int64) (bool, error) {
	if err := s.Begin(ctx, false); err != nil {
		return false, err
	}
	key := keptKey(id)
	if err := s.Read(ctx, [][]byte{key}, make([]db.Entry, 1)); err != nil {
		return false, err
	}
	s.Set(key, []byte("x"))
	return true, s.Commit(ctx)
}

func keptKey(id int64) []byte { return fmt.Appendf(nil, "kept/%012d", id) }

// metWrite is what became of one id.
type metWrite struct {
	id         int64
	err        error
	committing bool
	from, to   int64 // nanoseconds of the nemesis's clock
}

// writers are as many as have a commit under way at any time; of SQL every second one sends
// each statement by itself.
const writers = 12

func openWriter(t *testing.T, d db.Database, i int) writer {
	t.Helper()
	if sql, ok := d.(db.SQL); ok {
		s, err := sql.Session(t.Context(), db.SessionOptions{Mode: []db.Mode{db.Pipelined, db.Interactive}[i%2]})
		return opened(t, sqlWriter{s, &db.Statement{SQL: "INSERT INTO kept VALUES (" + sql.Dialect().Placeholder(1) + ")", Params: []db.Type{db.Integer}}}, err)
	}
	s, err := d.(db.KV).KVSession(t.Context(), db.SessionOptions{})
	return opened(t, kvWriter{s}, err)
}

// meetOnce carries a fault out until it has met commits as it must. It may not at once: on a
// busy machine a cluster fails over by itself, and the fault then finds no leader, or a node
// that the clients have left.
func meetOnce(t *testing.T, c cluster.Local, d db.Database, fault metFault, ids *atomic.Int64) {
	const tries = 4
	for range tries {
		if meet(t, c, d, fault, ids) || t.Failed() {
			return
		}
	}
	t.Errorf("in %d tries the fault did not meet commits as it must", tries)
}

// meet carries a fault out, and says whether it has met commits as it must.
func meet(t *testing.T, c cluster.Local, d db.Database, fault metFault, ids *atomic.Int64) bool {
	t.Helper()
	f, err := nemesis.Parse(fault.fault)
	if err != nil {
		t.Fatal(err)
	}
	n, err := nemesis.New(c, c.Network(), nemesis.Script{f}, 1)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	clock := func() int64 { return int64(time.Since(began)) }
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	var mu sync.Mutex // of all
	var all []metWrite
	var group sync.WaitGroup
	for i := range writers {
		w := openWriter(t, d, i)
		group.Go(func() {
			for ctx.Err() == nil {
				one := metWrite{id: ids.Add(1), from: clock()}
				one.committing, one.err = w.write(t.Context(), one.id)
				one.to = clock()
				mu.Lock()
				all = append(all, one)
				mu.Unlock()
				if class := db.ClassOf(one.err); one.err != nil && (class == db.Unknown || class == db.Unavailable) {
					_ = w.Reset(t.Context()) // the next write says why it failed
				}
			}
		})
	}
	var met nemesis.Injection
	n.Run(ctx, clock, func(i nemesis.Injection) {
		if met = i; i.Over {
			time.AfterFunc(time.Second, stop) // of writes behind it
		}
	})
	group.Wait()
	healthy, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := c.WaitHealthy(healthy); err != nil {
		t.Fatal(err)
	}
	injected := met.Over && met.Skipped == "" && !met.Failed()
	if !injected {
		t.Logf("the fault was not what it should be: %+v", met)
	}
	commits, unknown := judge(t, all, kept(t, d), fault, met)
	return injected && commits > 0 && (unknown > 0 || !fault.unknown)
}

// kept are the ids that are there.
func kept(t *testing.T, d db.Database) map[int64]bool {
	t.Helper()
	there := map[int64]bool{}
	var err error
	switch d := d.(type) {
	case db.SQL:
		var s db.SQLSession
		if s, err = d.Session(t.Context(), db.SessionOptions{Mode: db.Interactive}); err == nil {
			defer s.Close()
			err = s.Query(t.Context(), &db.Statement{SQL: "SELECT id FROM kept", Columns: []db.Type{db.Integer}}, nil, func(row []db.Value) error {
				there[row[0].Int] = true
				return nil
			})
		}
	case db.KV:
		var s db.KVSession
		if s, err = d.KVSession(t.Context(), db.SessionOptions{}); err == nil {
			defer s.Close()
			err = s.Scan(t.Context(), []byte("kept/"), []byte("kept0"), func(key, _ []byte) error {
				id, err := strconv.ParseInt(strings.TrimPrefix(string(key), "kept/"), 10, 64)
				there[id] = true
				return err
			})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// judge compares every outcome with what is there, and logs and counts what the commits came
// to that were under way during the fault.
func judge(t *testing.T, all []metWrite, there map[int64]bool, fault metFault, met nemesis.Injection) (commits, unknown int) {
	t.Helper()
	classes := map[string]int{}
	lost, acknowledged := 0, 0
	ended := max(met.InEffect, met.Healing)
	for _, w := range all {
		class := db.ClassOf(w.err)
		if w.err == nil {
			acknowledged++
		}
		switch applied := there[w.id]; {
		case w.err == nil && !applied:
			lost++
		case w.err == nil, class == db.Unknown && w.committing:
		case class == db.Fatal, class == db.Unknown, class == db.Constraint:
			t.Errorf("a write ended with class %v: %v", class, w.err)
		case applied:
			t.Errorf("a write that was surely not applied is there: %v", w.err)
		}
		if w.from > ended || w.to < met.Injected || !w.committing {
			continue
		}
		commits++
		name := "committed"
		if e, ok := errors.AsType[*db.Error](w.err); ok {
			name = strings.TrimSpace(class.String() + " " + e.Code)
			if class == db.Unknown {
				unknown++
				name += map[bool]string{true: " (applied)", false: " (not applied)"}[there[w.id]]
			}
		}
		classes[name]++
	}
	t.Logf("%d commits met the fault: %v; %d of all %d acknowledged are lost", commits, classes, lost, acknowledged)
	if lost > 0 && !fault.loses {
		t.Errorf("%d acknowledged writes are lost", lost)
	}
	return commits, unknown
}
