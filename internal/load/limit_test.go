package load

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/history"
)

// TestLateTransactionsAreSkipped checks that a transaction is never sent if it is later than the limit by then. Slow
// transactions are counted, and nothing is counted twice.
func TestLateTransactionsAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		stalls := &standIn{attempt: func(ctx context.Context, tx *history.Transaction) error {
			if n++; n == 150 {
				return takes(time.Second)(ctx, tx)
			}
			return takes(time.Millisecond)(ctx, tx)
		}}
		r, list, err := newDrill(t, Options{Plan: constant(100), Duration: 5 * time.Second, Warmup: time.Second, LatencyLimit: 95 * time.Millisecond}, stalls).run(t.Context())
		// The 150th is due at 1.49 s (1.495 s) and ends a second later. Meanwhile 100 are due, and 90 or 91 of them
		// are later than the limit. The others wait in a queue that drains at 1 ms each.
		if err != nil || r.Skipped < 89 || r.Skipped > 92 || r.Shed != r.Skipped || uint64(len(list))+r.Skipped != 500 || r.Backlog != 0 || r.WarmupUnsent != 0 {
			t.Fatalf("%d transactions, %d shed, %d skipped, backlog %d, %d of the warm-up, %v", len(list), r.Shed, r.Skipped, r.Backlog, r.WarmupUnsent, err)
		}
		var over uint64
		for _, tx := range list {
			if late := tx.Sent - tx.Due; late > int64(95*time.Millisecond) {
				t.Errorf("%s was sent %d ns late", tx.ID, late)
			}
			if tx.End-tx.Due > int64(95*time.Millisecond) {
				over++
			}
		}
		if r.Measurements.Late != over || over < 1 {
			t.Errorf("%d are counted as over the limit, and %d were", r.Measurements.Late, over)
		}
	})
}

// TestLateOfTheWarmupAreNotMeasured checks that the skipped of the warm-up count apart, also if they are detected after
// it.
func TestLateOfTheWarmupAreNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		stalls := &standIn{attempt: func(ctx context.Context, tx *history.Transaction) error {
			if n++; n == 50 {
				return takes(time.Second)(ctx, tx)
			}
			return takes(time.Millisecond)(ctx, tx)
		}}
		r, list, err := newDrill(t, Options{Plan: constant(100), Duration: 3 * time.Second, Warmup: time.Second, LatencyLimit: 95 * time.Millisecond}, stalls).run(t.Context())
		if err != nil || r.Skipped < 38 || r.Skipped > 42 || r.Shed != r.Skipped || r.WarmupUnsent < 49 || r.WarmupUnsent > 51 || uint64(len(list))+r.Shed+r.WarmupUnsent != 300 {
			t.Errorf("%d transactions, %d skipped, %d shed, %d of the warm-up, %v", len(list), r.Skipped, r.Shed, r.WarmupUnsent, err)
		}
	})
}

// TestCountIncludesSkipped checks that a count of transactions ends the load phase if most of them are skipped.
func TestCountIncludesSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list, err := newDrill(t, Options{Plan: constant(100), Count: 1000, LatencyLimit: time.Millisecond}, &standIn{attempt: takes(20 * time.Millisecond)}).run(t.Context())
		if err != nil || uint64(len(list))+r.Skipped != 1000 || r.Skipped < 480 || r.Measurements.Late != uint64(len(list)) {
			t.Errorf("%d transactions, %d skipped, %d late, %v", len(list), r.Skipped, r.Measurements.Late, err)
		}
	})
}

// TestEachTransactionHasAConnection checks that a connection is opened before each transaction, and that a failed one is
// tried again. The latency of a closed loop does not include the time to connect.
func TestEachTransactionHasAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &standIn{attempt: takes(time.Millisecond)}
		c.reset = func(context.Context) error {
			time.Sleep(9 * time.Millisecond)
			if c.resets == 5 {
				return errAway
			}
			return nil
		}
		r, list, err := newDrill(t, Options{Count: 10, Reconnect: true, GiveUp: time.Minute}, c).run(t.Context())
		m := r.Measurements
		if err != nil || len(list) != 10 || c.resets != 11 || m.Latency.Max != time.Millisecond || m.Connect.Count != 9 || m.Connect.P50 != 9*time.Millisecond {
			t.Errorf("%d transactions, %d connections, latency %v, to connect %+v, %v", len(list), c.resets, m.Latency.Max, m.Connect, err)
		}
		if r.Reconnects != 1 {
			t.Errorf("%d sessions were lost", r.Reconnects)
		}
	})
	synctest.Test(t, func(t *testing.T) { // with a rate the latency begins with the intended start
		c := &standIn{attempt: takes(time.Millisecond), reset: func(context.Context) error { time.Sleep(9 * time.Millisecond); return nil }}
		r, list, err := newDrill(t, Options{Plan: constant(10), Count: 10, Reconnect: true}, c).run(t.Context())
		if err != nil || len(list) != 10 || c.resets != 10 || r.Measurements.Latency.P50 != 10*time.Millisecond {
			t.Errorf("%d transactions, %d connections, latency %v, %v", len(list), c.resets, r.Measurements.Latency.P50, err)
		}
	})
	refuses := &standIn{reset: func(context.Context) error { return errFatal }}
	if _, list, err := newDrill(t, Options{Count: 10, Reconnect: true}, refuses).run(t.Context()); err == nil || len(list) != 0 {
		t.Errorf("a refused connection: %d transactions, %v", len(list), err)
	}
}
