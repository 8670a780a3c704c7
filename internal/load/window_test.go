package load

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// hangs returns an Attempt that commits after a millisecond until the given time, and then returns only when
// its call is cancelled.
func hangs(after time.Duration) func(context.Context, *history.Transaction) error {
	begin := time.Now()
	return func(ctx context.Context, tx *history.Transaction) error {
		if time.Since(begin) < after {
			return takes(time.Millisecond)(ctx, tx)
		}
		<-ctx.Done()
		return &db.Error{Class: db.Unknown, Op: "commit", Err: ctx.Err()}
	}
}

// TestTheGraceIsNotMeasured checks that transactions that this program gave up do not extend the measured
// part.
func TestTheGraceIsNotMeasured(t *testing.T) {
	for _, kind := range []history.Kind{kindTransfer, kindInquiry} {
		synctest.Test(t, func(t *testing.T) {
			stuck := &standIn{kind: kind, attempt: hangs(3 * time.Second)}
			r, list, err := newDrill(t, Options{Duration: 6 * time.Second}, stuck).run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if last := list[len(list)-1]; last.Outcome == history.Committed || last.End != int64(6*time.Second+grace) {
				t.Errorf("the last %v is %v at %v", kind, last.Outcome, time.Duration(last.End))
			}
			if r.Elapsed != 6*time.Second {
				t.Errorf("a %v that hung was measured for %v", kind, r.Elapsed)
			}
		})
	}
}

// TestTheMeasuredPartEndsWithTheLastAnswer checks that the database's last answers and their time count.
func TestTheMeasuredPartEndsWithTheLastAnswer(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		client *standIn
		want   time.Duration
	}{
		"a conflict, then no retry": {&standIn{attempt: func(context.Context, *history.Transaction) error {
			time.Sleep(4 * s)
			return errAborted
		}}, 8 * s},
		"a look-up that finds it": {&standIn{attempt: func(context.Context, *history.Transaction) error { time.Sleep(4 * s); return errUnknown },
			resolve: func(_ context.Context, tx *history.Transaction) error {
				time.Sleep(4 * s)
				tx.Outcome = history.Committed
				return nil
			}}, 8*s + outageBase},
		"no server until the end of the grace": {&standIn{attempt: func(context.Context, *history.Transaction) error { return errAway },
			reset: func(context.Context) error { return errAway }}, 6 * s},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _, err := newDrill(t, Options{Duration: 6 * s}, c.client).run(t.Context())
				if err != nil || r.Elapsed > c.want || r.Elapsed < c.want-outageBase {
					t.Errorf("elapsed %v, want %v, %v", r.Elapsed, c.want, err)
				}
			})
		})
	}
}

// TestEndedIsCalledBeforeTheGrace checks that Ended is called once, when nothing new is started, and that the
// grace begins when it returns.
func TestEndedIsCalledBeforeTheGrace(t *testing.T) {
	const s, heal = time.Second, 30 * time.Second
	for name, c := range map[string]struct {
		options   Options
		interrupt time.Duration
		client    func() *standIn
		called    time.Duration
		last      time.Duration
		outcome   history.Outcome
	}{
		"by time, and healed": {Options{Duration: 6 * s}, 0, func() *standIn {
			return &standIn{attempt: func(_ context.Context, tx *history.Transaction) error {
				time.Sleep(heal + 7*s)
				tx.Outcome = history.Committed
				return nil
			}}
		}, 6 * s, heal + 7*s, history.Committed},
		"by time, and hung": {Options{Duration: 6 * s}, 0, func() *standIn { return &standIn{attempt: hangs(3 * s)} },
			6 * s, 6*s + heal + grace, history.Unknown},
		"by a person, and hung": {Options{Duration: time.Hour}, 9 * s, func() *standIn { return &standIn{attempt: hangs(3 * s)} },
			9 * s, 9*s + heal + grace, history.Unknown},
		"by time, and gone for longer than is waited": {Options{Duration: 6 * s, GiveUp: 5 * s}, 0, func() *standIn {
			return &standIn{attempt: func(ctx context.Context, tx *history.Transaction) error {
				time.Sleep(2 * s)
				return errAway
			}, reset: func(ctx context.Context) error { <-ctx.Done(); return errAway }}
		}, 6 * s, 6*s + heal + grace, history.Aborted},
		"by count": {Options{Count: 5}, 0, func() *standIn { return &standIn{attempt: takes(s)} }, 5 * s, 5 * s, history.Committed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				if c.interrupt > 0 {
					time.AfterFunc(c.interrupt, interrupt)
				}
				begin := time.Now()
				var called []time.Duration
				c.options.Ended = func() {
					called = append(called, time.Since(begin))
					time.Sleep(heal)
				}
				_, list, err := newDrill(t, c.options, c.client()).run(ctx)
				if err != nil || len(called) != 1 || called[0] != c.called {
					t.Fatalf("ended at %v, want %v, %v", called, c.called, err)
				}
				if took := time.Since(begin); took < c.called+heal {
					t.Errorf("the drive is over at %v, before Ended has returned", took)
				}
				if last := list[len(list)-1]; last.Outcome != c.outcome || time.Duration(last.End) != c.last {
					t.Errorf("the last one is %v at %v, want %v at %v", last.Outcome, time.Duration(last.End), c.outcome, c.last)
				}
			})
		})
	}
}

// TestUnsentTransactionsCountAsWaiting checks that a database that stops permanently affects the distribution
// of all that was due.
func TestUnsentTransactionsCountAsWaiting(t *testing.T) {
	for _, room := range []int{1000, 10} {
		synctest.Test(t, func(t *testing.T) {
			stuck := &standIn{attempt: hangs(5 * time.Second)}
			r, _, err := newDrill(t, Options{Plan: constant(100), Duration: 10 * time.Second, MaxBacklog: room}, stuck).run(t.Context())
			if err != nil || r.Backlog+r.Shed != 499 {
				t.Fatalf("%d left, %d shed, %v", r.Backlog, r.Shed, err)
			}
			due := r.Measurements.Due(r.Never)
			if due.Count != 1000 || slices.Contains(due.AtLeast, "p50") || !slices.Contains(due.AtLeast, "p90") || !slices.Contains(due.AtLeast, "p99") {
				t.Errorf("room for %d: %+v", room, due)
			}
			// They arrived evenly over the last five seconds; the times of shed ones are known to a second.
			low := 3900 * time.Millisecond
			if room < 499 {
				low = 0
			}
			if due.P90 < low || due.P90 > 4010*time.Millisecond || due.Max != 5*time.Second+grace {
				t.Errorf("room for %d: p90 %v, max %v", room, due.P90, due.Max)
			}
			if r.Measurements.Latency.Max > 2*time.Millisecond {
				t.Errorf("those that committed took %v", r.Measurements.Latency.Max)
			}
		})
	}
}

// TestUnsentWarmupIsCountedSeparately checks transactions that were due in the warm-up and never sent.
func TestUnsentWarmupIsCountedSeparately(t *testing.T) {
	for _, room := range []int{1000, 10} {
		synctest.Test(t, func(t *testing.T) {
			stuck := &standIn{attempt: hangs(5 * time.Second)}
			r, _, err := newDrill(t, Options{Plan: constant(100), Warmup: 6 * time.Second, Duration: 10 * time.Second, MaxBacklog: room}, stuck).run(t.Context())
			if err != nil || r.Backlog+r.Shed != 400 || r.WarmupUnsent != 99 {
				t.Errorf("room for %d: %d left, %d shed, %d of the warm-up, %v", room, r.Backlog, r.Shed, r.WarmupUnsent, err)
			}
			if due := r.Measurements.Due(r.Never); due.Count != 400 {
				t.Errorf("room for %d: %d were due", room, due.Count)
			}
		})
	}
}
