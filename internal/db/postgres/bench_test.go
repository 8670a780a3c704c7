package postgres

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	server "stroppy/internal/cluster/postgres"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

func clientCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure lets each of the sessions do its share of b.N transfers with all, which
// takes the number, and reports the CPU that this process used for one.
func measure(b *testing.B, sessions int, all func(n int)) {
	all(10)
	b.ReportAllocs()
	b.ResetTimer()
	before := clientCPU(b)
	all(b.N/sessions + 1)
	used := clientCPU(b) - before
	b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(sessions*(b.N/sessions+1)), "cpu-µs/op")
}

// BenchmarkTransfer runs transfers of two legs, four statements with two results
// of three columns each, on 16 sessions, in each way, and reports the CPU that this
// process used for each, user and system.
func BenchmarkTransfer(b *testing.B) {
	for _, w := range ways {
		b.Run(strings.ReplaceAll(w.name, " ", "-"), func(b *testing.B) {
			const accounts, sessions = 10_000, 16
			d := drivertest.Open(b, Open, start(b, map[string]string{"synchronous_commit": "off"}).URL())
			bank.Make(b, d, accounts)
			clients := make([]*session, sessions)
			for i := range clients {
				clients[i] = w.session(b, d, "")
			}
			var id atomic.Int64
			var wg sync.WaitGroup
			work := func(s *session, n int, seed uint64) {
				defer wg.Done()
				rng := rand.New(rand.NewPCG(seed, 0))
				var x transfer
				ctx := b.Context()
				for range n {
					from := rng.Int64N(accounts)
					to := (from + 1 + rng.Int64N(accounts-1)) % accounts
					err := s.Begin(ctx, false)
					if err == nil {
						err = x.queue(ctx, s, id.Add(1), from, to, 1)
					}
					if err == nil && w.flush {
						err = s.Flush(ctx)
					}
					if err == nil {
						err = s.Commit(ctx)
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			}
			all := func(n int) {
				for i, s := range clients {
					wg.Add(1)
					go work(s, n, uint64(i))
				}
				wg.Wait()
			}
			measure(b, sessions, all)
		})
	}
}

// BenchmarkBulkLoad loads what pgbench -i -s 10 loads, 1 000 000 accounts with
// their primary key, and runs pgbench beside it on the same server.
func BenchmarkBulkLoad(b *testing.B) {
	const accounts = 1_000_000
	pg, err := server.Start(b.Context(), server.Options{})
	if err != nil {
		b.Skip("skipped engine: postgres: " + err.Error())
	}
	b.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			b.Error(err)
		}
	})
	b.Run("pgbench", func(b *testing.B) {
		pgbench, err := server.PGBin("pgbench")
		if err != nil {
			b.Skip("skipped engine: pgbench: " + err.Error())
		}
		for range b.N {
			out, err := exec.CommandContext(b.Context(), pgbench, "-i", "-s", "10", "-q", pg.URL()).CombinedOutput()
			if err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	})
	b.Run("stroppy", func(b *testing.B) {
		d := drivertest.Open(b, Open, pg.URL())
		for range b.N {
			n := 0
			rows, err := d.BulkLoad(b.Context(), db.BulkLoad{
				Before: []string{
					"DROP TABLE IF EXISTS loaded",
					`CREATE TABLE loaded (bic VARCHAR(8) COLLATE "C" NOT NULL, ban BIGINT NOT NULL, balance NUMERIC(20,2) NOT NULL,
						version BIGINT NOT NULL, last_transfer BIGINT NOT NULL, previous_transfer BIGINT NOT NULL)`,
				},
				Table:   "loaded",
				Columns: []string{"bic", "ban", "balance", "version", "last_transfer", "previous_transfer"},
				Types:   []db.Type{db.Text, db.Integer, db.Decimal, db.Integer, db.Integer, db.Integer},
				Next: func(row []db.Value) bool {
					if n == accounts {
						return false
					}
					row[0].Text = fmt.Appendf(row[0].Text[:0], "BIC%05d", n*7919%99991)
					row[1].Int, row[2].Int = int64(n)*7_368_787%1_000_000_007, 100_000
					n++
					return true
				},
				After: []string{"ALTER TABLE loaded ADD PRIMARY KEY (bic, ban)"},
			})
			if err != nil || rows != accounts {
				b.Fatal(rows, err)
			}
		}
	})
}
