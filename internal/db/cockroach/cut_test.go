package cockroach

import (
	"fmt"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// TestRealServerLostDuringCommitIsUnknown checks that a connection that ends during COMMIT makes the outcome
// unknown. If it ends earlier, the transaction is not applied.
func TestRealServerLostDuringCommitIsUnknown(t *testing.T) {
	address := freshURL(t)
	direct := drivertest.Open(t, Open, address)
	bank.Make(t, direct, 2)
	observer := sqltest.Session(t, direct, db.Pipelined, "")
	var c drivertest.Cutter
	d := drivertest.Open(t, Open, c.Stand(t, address))
	ctx := t.Context()
	for _, together := range []bool{false, true} {
		for when, moved := range map[drivertest.Moment][]int64{drivertest.BeforeRequest: {0}, drivertest.WithRequest: {0, 1}, drivertest.BeforeAnswer: {1}} {
			t.Run(fmt.Sprintf("together %v, %d", together, when), func(t *testing.T) {
				s := sqltest.Session(t, d, db.Pipelined, "")
				drivertest.Must(t, sqltest.Transact(ctx, s, false, false, bank.Touch(1, 1))) // prepares
				before := bank.Balance(t, observer, 0)
				drivertest.Must(t, s.Begin(ctx, false))
				touch := bank.Touch(0, 1)
				_, err := s.Do(ctx, touch.S, touch.Args)
				if err == nil && !together {
					err = s.Flush(ctx)
				}
				drivertest.Must(t, err)
				c.Cut(when, 1)
				err = s.Commit(ctx)
				c.Rest()
				sqltest.WantError(t, "COMMIT", err, db.Unknown, "")
				sqltest.WantError(t, "a broken session", s.Begin(ctx, false), db.Unavailable, "")
				// A write of the same row waits for the transaction that was cut, if it exists.
				drivertest.Must(t, sqltest.Transact(ctx, observer, false, false, bank.Touch(0, 0)))
				after := bank.Balance(t, observer, 0)
				found := false
				for _, m := range moved {
					found = found || after == before+m
				}
				if !found {
					t.Errorf("the balance was %d and is %d, want %v more", before, after, moved)
				}
				drivertest.Must(t, s.Reset(ctx))
				drivertest.Must(t, sqltest.Transact(ctx, s, false, false, bank.Touch(1, 1)))
			})
		}
	}
	t.Run("before COMMIT", func(t *testing.T) {
		s := sqltest.Session(t, d, db.Interactive, "")
		before := bank.Balance(t, s, 0)
		drivertest.Must(t, s.Begin(ctx, false))
		touch := bank.Touch(0, 1)
		_, err := sqltest.Do(ctx, s, touch)
		drivertest.Must(t, err)
		c.Cut(drivertest.BeforeAnswer, 1)
		_, err = s.Do(ctx, touch.S, touch.Args)
		c.Rest()
		sqltest.WantError(t, "a statement", err, db.Unavailable, "")
		if after := bank.Balance(t, observer, 0); after != before {
			t.Errorf("the balance was %d and is %d", before, after)
		}
	})
}
