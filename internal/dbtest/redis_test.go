package dbtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"stroppy/internal/check"
	rediscluster "stroppy/internal/cluster/redis"
	"stroppy/internal/db"
	"stroppy/internal/db/redis"
	"stroppy/internal/history"
	"stroppy/internal/workload/bank"
)

// redisWays are the ways in which the driver commits.
var redisWays = []string{"script", "watch"}

// startRedis starts servers of the test's own, which takes a moment.
func startRedis(t *testing.T, nodes int, settings map[string]string) *rediscluster.Servers {
	t.Helper()
	needsTime(t)
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	s, err := rediscluster.Start(ctx, rediscluster.Options{Nodes: nodes, InMemory: true, Settings: settings})
	return served(t, "redis", s, err)
}

func openRedis(t *testing.T, url string) *redis.Database {
	t.Helper()
	d, err := redis.Open(t.Context(), url)
	return opened(t, d, err)
}

// TestAuditsOfManyAccountsOnRedis audits more accounts than a page of a scan
// has, and a sample that is more than the Reads of other stores take, beside
// writers; then another bank takes the place of this one.
func TestAuditsOfManyAccountsOnRedis(t *testing.T) {
	s := startRedis(t, 1, map[string]string{"save": ""})
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

// startBank loads a bank and starts to drive it, until the test ends the drive.
func startBank(t *testing.T, database db.Database, c bank.Config) *trial {
	t.Helper()
	r := newTrial(t, database, newBank(t, database, func(own *bank.Config) { *own = c }), c.Isolation)
	r.load(t)
	r.attach(t)
	r.start(t, 10_000_000)
	return r
}

// TestBankOnKilledRedis kills a server that writes its file before it answers,
// and starts it again, while the bank is driven: nothing is lost.
func TestBankOnKilledRedis(t *testing.T) {
	for _, way := range redisWays {
		t.Run(way, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			s := startRedis(t, 1, map[string]string{"save": "", "appendonly": "yes", "appendfsync": "always"})
			c := small()
			c.Audits = 0
			r := startBank(t, openRedis(t, s.URL()+"?timeout=1s&commit="+way), c)
			for range 3 {
				r.more(t, 300)
				if err := errors.Join(s.Kill(0), s.Restart(ctx, 0)); err != nil {
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
				t.Errorf("no outcome was looked up after three kills, so this test proves little: %+v", r.driven.Errors)
			}
		})
	}
}

// TestRedisLosesAcknowledgedTransfers is the known bad case: a replica that
// lagged is promoted after the primary's death. The transfers that it had not got
// were acknowledged and are gone, and because each is gone as a whole, the total
// does not show it.
func TestRedisLosesAcknowledgedTransfers(t *testing.T) {
	for _, way := range redisWays {
		t.Run(way, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			s := startRedis(t, 2, map[string]string{"save": ""})
			r := startBank(t, openRedis(t, s.URL()+"?timeout=1s&commit="+way), small())
			r.more(t, 300)
			if err := s.Stall(ctx, 1); err != nil {
				t.Fatal(err)
			}
			r.more(t, 500)
			if err := errors.Join(s.Kill(0), s.Resume(1), s.Promote(ctx, 1)); err != nil {
				t.Fatal(err)
			}
			r.more(t, 500) // the clients have found the new primary
			r.finish(t)
			if v := check.Verdict(r.results); v != check.Invalid {
				t.Errorf("the verdict is %v although acknowledged transfers are lost", v)
			}
			if total := r.status(check.Total); total.Status != check.Valid {
				t.Errorf("the total is %v, so this test would not show that a sum is not enough: %s", total.Status, total.Detail)
			}
			durable := r.status(check.Durable)
			if durable.Status != check.Invalid || len(durable.Witness) == 0 {
				t.Fatalf("durable is %v with %d witnesses: %s", durable.Status, len(durable.Witness), durable.Detail)
			}
			t.Log(durable.Detail)
			all := map[history.ID]history.Transaction{}
			r.each(t, func(tx *history.Transaction) { all[tx.ID] = *tx })
			for _, id := range durable.Witness {
				if tx, ok := all[id]; !ok || tx.Outcome != history.Committed || tx.LookedUp || tx.Kind == history.Inquiry {
					t.Errorf("the witness %v is %+v, no transfer that was acknowledged", id, tx)
				}
			}
		})
	}
}
