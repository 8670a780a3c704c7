package mysql

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/sqltest"
)

// transfer queues a transfer of two legs, each followed by a read of its result.
type transfer struct{ args [6][7]db.Value }

func (x *transfer) queue(ctx context.Context, s db.SQLSession, id, from, to, cents int64) error {
	for i, leg := range [...]struct{ account, cents int64 }{{min(from, to), cents}, {max(from, to), -cents}} {
		if from < to {
			leg.cents = -leg.cents
		}
		u := &x.args[3*i]
		u[0].Int, u[1].Int, u[2].Text, u[3].Int = leg.cents, id, bic, leg.account
		if _, err := s.Do(ctx, updateAccount, u[:4]); err != nil {
			return err
		}
		r := &x.args[3*i+1]
		r[0].Text, r[1].Int = bic, leg.account
		if _, err := s.Do(ctx, readAccount, r[:2]); err != nil {
			return err
		}
		l := &x.args[3*i+2]
		l[0].Int, l[1].Int, l[2].Text, l[3].Int, l[4].Int, l[5].Text, l[6].Int = id, int64(i), bic, leg.account, leg.cents, bic, leg.account
		if _, err := s.Do(ctx, insertLeg, l[:]); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkTransfer runs transfers on several sessions at once.
func BenchmarkTransfer(b *testing.B) {
	const sessions, accounts = 8, 10_000
	for name, mode := range sqltest.Modes {
		b.Run(name, func(b *testing.B) {
			d := openFresh(b)
			bank.Make(b, d, accounts)
			var id atomic.Int64
			var open []*session
			for range sessions {
				open = append(open, newSession(b, d, mode, ""))
			}
			b.ReportAllocs()
			b.ResetTimer()
			var group sync.WaitGroup
			for _, s := range open {
				group.Go(func() {
					ctx, cancel := context.WithCancel(b.Context())
					defer cancel()
					var x transfer
					for {
						n := id.Add(1)
						if n > int64(b.N) {
							return
						}
						err := s.Begin(ctx, false)
						if err == nil {
							err = x.queue(ctx, s, n, n*7919%accounts, (n*7919+1)%accounts, 1)
						}
						if err == nil {
							err = s.Commit(ctx)
						}
						if err != nil && db.ClassOf(err) != db.Aborted {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
		})
	}
}
