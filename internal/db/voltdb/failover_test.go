package voltdb_test

import (
	"context"
	"net/url"
	"os"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	voltdbcluster "stroppy/internal/cluster/voltdb"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/voltdb"
)

// Each client counts in its own record, in one partition or in all partitions.
var (
	tally = &db.Collection{Name: "tally", ID: db.Integer, Fields: []db.Field{{Name: "n", Type: db.Integer, Additive: true}}}
	count = &db.Update{Collection: tally, Add: []int{1}}
)

type counter struct {
	db.RecordSession
	client int
}

func (c counter) Count(ctx context.Context) error {
	err := c.Begin(ctx, false)
	if err == nil && c.client%2 == 1 {
		_, err = c.Update(ctx, count, []db.Value{{Int: 100}, {Int: 101}}, make([]db.Value, 2))
	}
	if err == nil {
		_, err = c.FindAndUpdate(ctx, count, db.Value{Int: int64(c.client)}, []db.Value{{Int: 1}})
	}
	if err == nil {
		err = c.Commit(ctx)
	}
	return err
}

// TestFailoverLosesNoCommit checks that killed nodes lose no acknowledged call, and that no more calls exist than
// were acknowledged or unknown.
func TestFailoverLosesNoCommit(t *testing.T) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	c, err := voltdbcluster.Starter(voltdb.Hosts)(ctx, cluster.Options{
		Nodes: 3, InMemory: true, Loopback: true, Params: url.Values{"jars": {os.Getenv(voltdbcluster.Variable)}},
	})
	clustertest.Need(t, "voltdb", err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	d := drivertest.Open(t, voltdb.Open, c.URL())
	const clients = 8
	drivertest.Must(t, d.Declare(tally))
	drivertest.Must(t, d.Create(ctx, tally))
	s := session(t, d)
	drivertest.Must(t, transact(t, s, func() error {
		return s.Insert(ctx, tally, []db.Value{{Int: 100}, {}}, []db.Value{{Int: 101}, {}})
	}))
	for i := range clients {
		drivertest.Must(t, transact(t, s, func() error { return s.Insert(ctx, tally, []db.Value{{Int: int64(i)}, {}}) }))
	}
	counted := drivertest.Count(t, clients, func(ctx context.Context, i int) (drivertest.Counter, error) {
		s, err := d.RecordSession(ctx, db.SessionOptions{})
		return counter{s, i}, err
	}, func() {
		for _, n := range cluster.LocalNodes(c)[:2] {
			drivertest.Must(t, wait.Sleep(ctx, time.Second))
			drivertest.Must(t, n.Kill(ctx))
			drivertest.Must(t, wait.Sleep(ctx, time.Second))
			drivertest.Must(t, n.Restart(ctx))
			drivertest.Must(t, c.WaitHealthy(ctx))
		}
	})
	var there int64
	drivertest.Must(t, s.Reset(ctx))
	drivertest.Must(t, s.Scan(ctx, tally, db.Value{Null: true}, 0, func(values []db.Value) error { there += values[1].Int; return nil }))
	counted.Hold(t, there)
	if counted.Unknown == 0 {
		t.Error("no outcome was unknown")
	}
}
