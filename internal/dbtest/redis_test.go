package dbtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"stroppy/internal/check"
	rediscluster "stroppy/internal/cluster/redis"
	"stroppy/internal/db/redis"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload/bank"
)

// redisWays are the ways in which the driver commits.
var redisWays = []string{"script", "watch"}

// startRedis starts servers of the test's own, which takes a moment.
func startRedis(t *testing.T, nodes int, settings map[string]string) *rediscluster.Servers {
	t.Helper()
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

func TestBankOnRedis(t *testing.T) {
	s := startRedis(t, 1, map[string]string{"save": ""})
	for _, way := range redisWays {
		d := openRedis(t, s.URL()+"?commit="+way)
		for _, sample := range []uint64{0, 120} {
			t.Run(fmt.Sprintf("%s sample %d", way, sample), func(t *testing.T) {
				c := small()
				c.AuditSample = sample
				o := runBank(t, d, c, 2000)
				o.wantValid(t)
			})
		}
		t.Run(way+" under contention", func(t *testing.T) {
			c := small()
			c.Accounts, c.Clients, c.Zipfian = 20, 16, true
			o := runBank(t, d, c, 3000)
			o.wantValid(t)
		})
	}
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

// flight is a drive of the bank that a test hurts while it goes on.
type flight struct {
	driver *load.Driver
	stop   context.CancelFunc
	ended  chan error
	result *load.Result // when it has ended
}

// fly loads a bank and starts to drive it. land ends the drive and checks it.
func fly(t *testing.T, ctx context.Context, d *redis.Database, c bank.Config) (f *flight, land func() []check.Result, dir string) {
	t.Helper()
	b, err := bank.New(d, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Load(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Attach(ctx); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	options := load.Options{Count: 10_000_000, Retries: 100, Seed: 1, Start: time.Now()}
	for i := range c.Clients {
		client, err := b.Client(ctx, i)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		options.Clients = append(options.Clients, client)
	}
	writer, err := history.Create(filepath.Join(dir, "history"), b.Header(), c.Clients)
	if err != nil {
		t.Fatal(err)
	}
	options.History = writer
	f = &flight{driver: load.New(options), ended: make(chan error, 1)}
	driving, stop := context.WithCancel(ctx)
	f.stop = stop
	go func() {
		var err error
		f.result, err = f.driver.Run(driving)
		f.ended <- errors.Join(err, writer.Close())
	}()
	land = func() []check.Result {
		stop()
		if err := <-f.ended; err != nil {
			t.Fatal(err)
		}
		end, err := history.CreateEnd(filepath.Join(dir, "history"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.EndState(ctx, end, nil), end.Close()); err != nil {
			t.Fatal(err)
		}
		claim, err := d.Claim("")
		if err != nil {
			t.Fatal(err)
		}
		results, err := b.Check(ctx, dir, claim.Level, nil)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	return f, land, dir
}

// more waits until so many more transactions are committed.
func (f *flight) more(t *testing.T, ctx context.Context, n uint64) {
	t.Helper()
	for until := f.driver.Live().Committed + n; f.driver.Live().Committed < until; {
		select {
		case <-ctx.Done():
			t.Fatalf("%d transactions are committed, not %d: %v", f.driver.Live().Committed, until, ctx.Err())
		case err := <-f.ended:
			f.ended <- err
			t.Fatalf("the drive ended too early: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
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
			f, land, dir := fly(t, ctx, openRedis(t, s.URL()+"?timeout=1s&commit="+way), c)
			for range 3 {
				f.more(t, ctx, 300)
				if err := errors.Join(s.Kill(0), s.Restart(ctx, 0)); err != nil {
					t.Fatal(err)
				}
			}
			f.more(t, ctx, 300)
			results := land()
			for _, r := range results {
				if r.Required && r.Status != check.Valid {
					t.Errorf("%s is %v: %s", r.Name, r.Status, r.Detail)
				}
			}
			if v := check.Verdict(results); v != check.Valid {
				t.Errorf("the verdict is %v", v)
			}
			looked := 0
			for _, tx := range recorded(t, dir) {
				if tx.LookedUp {
					looked++
				}
			}
			if looked == 0 {
				t.Errorf("no outcome was looked up after three kills, so this test proves little: %+v", f.result.Errors)
			}
		})
	}
}

// recorded reads the history of a run, without what its transactions did.
func recorded(t *testing.T, dir string) map[history.ID]history.Transaction {
	t.Helper()
	r, err := history.Open(filepath.Join(dir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := map[history.ID]history.Transaction{}
	for rec, err := range r.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		all[rec.ID] = *rec.Transaction // which the reader fills anew
	}
	return all
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
			f, land, dir := fly(t, ctx, openRedis(t, s.URL()+"?timeout=1s&commit="+way), small())
			f.more(t, ctx, 300)
			if err := s.Stall(ctx, 1); err != nil {
				t.Fatal(err)
			}
			f.more(t, ctx, 500)
			if err := errors.Join(s.Kill(0), s.Resume(1), s.Promote(ctx, 1)); err != nil {
				t.Fatal(err)
			}
			f.more(t, ctx, 500) // the clients have found the new primary
			results := land()
			if v := check.Verdict(results); v != check.Invalid {
				t.Errorf("the verdict is %v although acknowledged transfers are lost", v)
			}
			status := map[string]check.Result{}
			for _, r := range results {
				status[r.Name] = r
			}
			if total := status[check.Total]; total.Status != check.Valid {
				t.Errorf("the total is %v, so this test would not show that a sum is not enough: %s", total.Status, total.Detail)
			}
			durable := status[check.Durable]
			if durable.Status != check.Invalid || len(durable.Witness) == 0 {
				t.Fatalf("durable is %v with %d witnesses: %s", durable.Status, len(durable.Witness), durable.Detail)
			}
			t.Log(durable.Detail)
			all := recorded(t, dir)
			for _, id := range durable.Witness {
				if tx, ok := all[id]; !ok || tx.Outcome != history.Committed || tx.LookedUp || tx.Kind == history.Inquiry {
					t.Errorf("the witness %v is %+v, no transfer that was acknowledged", id, tx)
				}
			}
		})
	}
}
