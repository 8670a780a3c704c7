package load

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/history"
)

// TestAbortEndsRunningTransactions checks that a transaction may finish within the grace after an interrupt,
// unless the load phase is aborted.
func TestAbortEndsRunningTransactions(t *testing.T) {
	for _, when := range []time.Duration{0, 9 * time.Second, 11 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			stuck := &standIn{attempt: func(ctx context.Context, _ *history.Transaction) error {
				<-ctx.Done()
				return errUnknown
			}}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			d := newDrill(t, Options{Duration: time.Hour}, stuck)
			time.AfterFunc(9*time.Second, interrupt)
			if when == 0 {
				d.driver.Abort() // before Run begins
			}
			time.AfterFunc(when, d.driver.Abort)
			_, list, err := d.run(ctx)
			if err != nil || len(list) > 1 || len(list) == 0 && when > 0 {
				t.Fatalf("aborted at %v: %d transactions, %v", when, len(list), err)
			}
			if len(list) == 1 && (list[0].Outcome != history.Unknown || time.Duration(list[0].End) != when) {
				t.Errorf("aborted at %v: the transaction is %s at %v", when, list[0].Outcome, time.Duration(list[0].End))
			}
		})
	}
}
