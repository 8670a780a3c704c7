package cockroach

import (
	"context"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	server "stroppy/internal/cluster/cockroach"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// counter adds one cent to an account, in one pipeline.
type counter struct {
	db.SQLSession
	account int64
}

func (c counter) Count(ctx context.Context) error {
	return sqltest.Transact(ctx, c.SQLSession, false, false, bank.Touch(c.account, 1))
}

// failOverEvery is the time before and after a kill.
const failOverEvery = 2 * time.Second

// TestFailoverLosesNoCommit checks that no acknowledged transaction is lost when nodes are killed. Other
// transactions may exist only if they are unknown.
func TestFailoverLosesNoCommit(t *testing.T) {
	ctx := clustertest.Within(t, clustertest.WaitLimit)
	c, err := server.Start(ctx, cluster.Options{Nodes: 3, Loopback: true, InMemory: true, Params: map[string][]string{"election_ticks": {"6"}}})
	clustertest.Need(t, "cockroach", err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	d := drivertest.Open(t, Open, c.URL())
	bank.Make(t, d, 2)
	counted := drivertest.Count(t, 6, func(ctx context.Context, i int) (drivertest.Counter, error) {
		s, err := d.Session(ctx, db.SessionOptions{Mode: db.Pipelined})
		return counter{s, int64(i % 2)}, err
	}, func() {
		for _, n := range cluster.LocalNodes(c)[:2] {
			drivertest.Must(t, wait.Sleep(ctx, failOverEvery))
			drivertest.Must(t, n.Kill(ctx))
			drivertest.Must(t, wait.Sleep(ctx, failOverEvery))
			drivertest.Must(t, n.Restart(ctx))
			drivertest.Must(t, c.WaitHealthy(ctx))
		}
	})
	s := sqltest.Session(t, d, db.Pipelined, "")
	counted.Hold(t, bank.Balance(t, s, 0)+bank.Balance(t, s, 1)-2*sqltest.Opening)
	if counted.Unknown == 0 {
		t.Error("no outcome was unknown")
	}
}
