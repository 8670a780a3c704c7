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
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/voltdb"
)

// tally counts in one partition, and in all of them.
var tally = []*db.Procedure{
	procedure("tally_one", "PARTITION ON TABLE tally COLUMN id PARAMETER 1 AS UPDATE tally SET n = n + ? WHERE id = ?", db.Integer, db.Integer),
	procedure("tally_all", "AS UPDATE tally SET n = n + ? WHERE id = ?", db.Integer, db.Integer),
}

type counter struct {
	db.ProcedureSession
	client int
}

func (c counter) Count(ctx context.Context) error {
	_, err := c.Call(ctx, tally[c.client%2], []db.Value{{Int: 1}, {Int: int64(c.client)}})
	return err
}

// TestFailOver kills nodes while calls are under way: what was acknowledged is there, and of
// the rest no more than is unknown.
func TestFailOver(t *testing.T) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	c, err := voltdbcluster.Starter(voltdb.Hosts)(ctx, cluster.Options{
		Nodes: 3, InMemory: true, Loopback: true, Params: url.Values{"jars": {os.Getenv(voltdbcluster.Variable)}},
	})
	clustertest.Need(t, "voltdb", err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	d := drivertest.Open(t, voltdb.Open, c.URL())
	const clients = 8
	drivertest.Must(t, d.Exec(ctx, "CREATE TABLE tally (id BIGINT NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (id))", "PARTITION TABLE tally ON COLUMN id"))
	drivertest.Must(t, d.Define(ctx, tally...))
	for i := range clients {
		drivertest.Must(t, d.Query(ctx, "INSERT INTO tally VALUES (?, 0)", []db.Type{db.Integer}, []db.Value{{Int: int64(i)}}, nil))
	}
	counted := drivertest.Count(t, clients, func(ctx context.Context, i int) (drivertest.Counter, error) {
		s, err := d.ProcedureSession(ctx, db.SessionOptions{})
		return counter{s, i}, err
	}, func() {
		for _, n := range cluster.LocalNodes(c)[:2] {
			drivertest.Must(t, cluster.Sleep(ctx, time.Second))
			drivertest.Must(t, n.Kill(ctx))
			drivertest.Must(t, cluster.Sleep(ctx, time.Second))
			drivertest.Must(t, n.Restart(ctx))
			drivertest.Must(t, c.WaitHealthy(ctx))
		}
	})
	var there int64
	drivertest.Must(t, d.Query(ctx, "SELECT SUM(n) FROM tally", nil, nil, func(row []db.Value) error { there = row[0].Int; return nil }))
	counted.Hold(t, there)
	if counted.Unknown == 0 {
		t.Error("no outcome was unknown")
	}
}
