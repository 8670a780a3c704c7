package pgwire

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/db/drivertest"
)

func clientCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs b.N transfers, divided among the sessions, and reports the CPU time of this process for each.
func measure(b *testing.B, sessions int, all func(n int)) {
	all(10)
	b.ReportAllocs()
	b.ResetTimer()
	before := clientCPU(b)
	all(b.N/sessions + 1)
	used := clientCPU(b) - before
	b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(sessions*(b.N/sessions+1)), "cpu-µs/op")
}

// BenchmarkTransfer runs transfers of two legs (four statements, two results of three columns each) on 16
// sessions in each way. It reports the user and system time of this process for each transfer.
func BenchmarkTransfer(b *testing.B) {
	for _, w := range ways {
		b.Run(strings.ReplaceAll(w.name, " ", "-"), func(b *testing.B) {
			const accounts, sessions = 10_000, 16
			d := drivertest.Open(b, openURL, start(b, map[string]string{"synchronous_commit": "off"}).URL())
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
