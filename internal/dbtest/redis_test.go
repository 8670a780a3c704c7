package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/cluster"
	rediscluster "stroppy/internal/cluster/redis"
	"stroppy/internal/db"
	"stroppy/internal/db/redis"
	"stroppy/internal/history"
	"stroppy/internal/workload/bank"
)

// redisWays lists the ways in which the driver commits.
var redisWays = []string{"script", "watch"}

// startRedis starts servers for one test.
func startRedis(t *testing.T, nodes int, fsync string) *rediscluster.Cluster {
	t.Helper()
	needsTime(t)
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	c, err := rediscluster.StartCluster(ctx, cluster.Options{
		Nodes: nodes, InMemory: true, Loopback: true, Params: url.Values{"appendfsync": {fsync}},
	})
	return served(t, "redis", c, err)
}

// openRedis opens a Redis database.
func openRedis(t *testing.T, url string) *redis.Database {
	t.Helper()
	d, err := redis.Open(t.Context(), url)
	return opened(t, d, err)
}

// TestLargeAuditsOnRedis audits more accounts than a page of a scan has, and a sample larger than other stores read at
// once, while clients write. The second bank replaces the first.
func TestLargeAuditsOnRedis(t *testing.T) {
	t.Parallel()
	s := startRedis(t, 1, "no")
	d := openRedis(t, s.URL())
	for _, sample := range []uint64{0, 5000} {
		t.Run(fmt.Sprintf("sample %d", sample), func(t *testing.T) {
			c := small()
			c.Accounts, c.AuditSample, c.Audits, c.LargeShare = 12_000, sample, 20, 0.2
			o := runBank(t, d, c, 4000)
			o.wantValid(t)
		})
	}
}

// startBank loads a bank and starts a run that the test ends.
func startBank(t *testing.T, database db.Database, c bank.Config) *trial {
	t.Helper()
	r := newTrial(t, database, newBank(t, database, func(own *bank.Config) { *own = c }), c.Isolation)
	r.load(t)
	r.attach(t)
	r.start(t, 10_000_000)
	return r
}

// TestBankSurvivesKilledRedis kills and restarts a server during a run. The server syncs its file before each answer,
// so nothing may be lost.
func TestBankSurvivesKilledRedis(t *testing.T) {
	t.Parallel()
	for _, way := range redisWays {
		t.Run(way, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			s := startRedis(t, 1, "always")
			nodes := cluster.LocalNodes(s)
			c := small()
			c.Audits = 0
			r := startBank(t, openRedis(t, s.URL()+"?timeout=1s&commit="+way), c)
			for range 3 {
				r.more(t, 300)
				if err := errors.Join(nodes[0].Kill(ctx), nodes[0].Restart(ctx)); err != nil {
					t.Fatal(err)
				}
			}
			r.more(t, 300)
			r.finish(t)
			r.wantValid(t)
			looked := 0
			r.each(t, func(tx *history.Transaction) {
				if tx.LookedUp {
					looked++
				}
			})
			if looked == 0 {
				t.Errorf("no outcome was looked up after three kills, want at least one: %+v", r.driven.Errors)
			}
		})
	}
}

// dropReplicas closes the connections of a primary to its replicas. Later writes are then not in the buffers of a
// paused replica.
func dropReplicas(ctx context.Context, address string) error {
	o, err := goredis.ParseURL(strings.TrimSuffix(address, "?read=any"))
	if err != nil {
		return err
	}
	client := goredis.NewClient(o)
	defer client.Close()
	return client.ClientKillByFilter(ctx, "TYPE", "replica").Err()
}

// promoteRedis makes a replica a primary.
func promoteRedis(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	client := goredis.NewClient(&goredis.Options{Addr: u.Host})
	return errors.Join(client.ReplicaOf(ctx, "NO", "ONE").Err(), client.Close())
}

// TestRedisLosesAcknowledgedTransfers promotes a lagging replica after the death of its primary. Acknowledged
// transfers that the replica lacked are lost, and the checks must find them. Each is lost as a whole, so the check of
// the total does not notice it.
func TestRedisLosesAcknowledgedTransfers(t *testing.T) {
	t.Parallel()
	for _, way := range redisWays {
		t.Run(way, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			s := startRedis(t, 2, "no")
			nodes := cluster.LocalNodes(s)
			r := startBank(t, openRedis(t, s.URL()+"?timeout=1s&commit="+way), small())
			r.more(t, 300)
			if err := errors.Join(s.WaitHealthy(ctx), nodes[1].Pause(ctx), dropReplicas(ctx, s.NodeURL(0))); err != nil {
				t.Fatal(err)
			}
			r.more(t, 500)
			if err := errors.Join(nodes[0].Kill(ctx), nodes[1].Resume(ctx)); err != nil {
				t.Fatal(err)
			}
			if err := promoteRedis(ctx, s.NodeURL(1)); err != nil {
				t.Fatal(err)
			}
			r.more(t, 500) // the clients have connected to the new primary
			r.finish(t)
			if v := checktest.Verdict(r.results); v != check.Invalid {
				t.Errorf("the verdict is %v although acknowledged transfers are lost", v)
			}
			if total := r.status(check.Total); total.Status != check.Valid {
				t.Errorf("the total is %v, want valid, because whole transfers are lost: %s", total.Status, total.Detail)
			}
			durable := r.status(check.Durable)
			if durable.Status != check.Invalid || len(durable.Witness) == 0 {
				t.Fatalf("durable is %v with %d witnesses: %s", durable.Status, len(durable.Witness), durable.Detail)
			}
			t.Log(durable.Detail)
			all := map[history.ID]history.Transaction{}
			r.each(t, func(tx *history.Transaction) { all[tx.ID] = *tx })
			for _, id := range durable.Witness {
				if tx, ok := all[id]; !ok || tx.Outcome != history.Committed || tx.LookedUp || tx.Kind.ReadOnly() {
					t.Errorf("the witness %v is %+v, want an acknowledged transfer", id, tx)
				}
			}
		})
	}
}
