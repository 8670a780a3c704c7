package load

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// takes returns an Attempt that commits after d.
func takes(d time.Duration) func(context.Context, *history.Transaction) error {
	return func(_ context.Context, tx *history.Transaction) error {
		time.Sleep(d)
		tx.Outcome = history.Committed
		return nil
	}
}

func TestCountIsSplitEvenlyWhateverTheTiming(t *testing.T) {
	ids := func(delays ...time.Duration) (list []history.ID, perClient []uint64) {
		synctest.Test(t, func(t *testing.T) {
			var clients []*standIn
			for _, d := range delays {
				clients = append(clients, &standIn{attempt: takes(d)})
			}
			_, txs, err := newDrill(t, Options{Count: 11}, clients...).run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, tx := range txs {
				list = append(list, tx.ID)
			}
			slices.Sort(list)
			for _, c := range clients {
				perClient = append(perClient, c.made)
			}
		})
		return list, perClient
	}
	even, shares := ids(time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond)
	skewed, _ := ids(time.Second, time.Microsecond, time.Millisecond, time.Hour)
	if !slices.Equal(shares, []uint64{3, 3, 3, 2}) {
		t.Errorf("shares %v", shares)
	}
	if len(even) != 11 || !slices.Equal(even, skewed) {
		t.Errorf("the transactions depend on timing:\n%v\n%v", even, skewed)
	}
}

func TestFewerTransactionsThanClients(t *testing.T) {
	a, b := &standIn{}, &standIn{}
	_, list, err := newDrill(t, Options{Count: 1}, a, b).run(t.Context())
	if err != nil || len(list) != 1 || b.made != 0 {
		t.Errorf("%d recorded, second client made %d, %v", len(list), b.made, err)
	}
}

func TestOneSeedGivesOneLoadPhase(t *testing.T) {
	drive := func(seed uint64) (list []history.Transaction) {
		synctest.Test(t, func(t *testing.T) {
			var clients []*standIn
			for range 3 {
				n := 0
				clients = append(clients, &standIn{attempt: func(_ context.Context, tx *history.Transaction) error {
					time.Sleep(time.Millisecond)
					if n++; n%4 != 0 {
						return errAborted
					}
					tx.Outcome = history.Committed
					return nil
				}})
			}
			_, txs, err := newDrill(t, Options{Count: 30, Retries: 5, Seed: seed}, clients...).run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(txs, func(a, b history.Transaction) int { return int(a.ID) - int(b.ID) })
			list = txs
		})
		return list
	}
	one, again, other := drive(1), drive(1), drive(2)
	if !reflect.DeepEqual(one, again) {
		t.Error("two drives with the same seed differ")
	}
	if reflect.DeepEqual(one, other) {
		t.Error("another seed changes no back-off")
	}
}

func TestClosedLoopHasNoGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrill(t, Options{Duration: 10 * time.Second, Warmup: 3 * time.Second},
			&standIn{attempt: takes(400 * time.Millisecond)}, &standIn{attempt: takes(time.Second)})
		r, list, err := d.run(t.Context())
		if err != nil || len(list) != 25+10 {
			t.Fatalf("%d transactions, %v", len(list), err)
		}
		last := map[uint64]int64{}
		for _, tx := range list {
			if tx.Due != tx.Sent || tx.Sent != tx.Try || tx.Due != last[tx.ID.Client()] {
				t.Errorf("%s: due %d, sent %d, try %d after %d", tx.ID, tx.Due, tx.Sent, tx.Try, last[tx.ID.Client()])
			}
			if tx.Due >= 10e9 {
				t.Errorf("%s started at %d, after the end", tx.ID, tx.Due)
			}
			if tx.Warmup != (tx.Due < 3e9) {
				t.Errorf("%s: due at %d, warm-up %v", tx.ID, tx.Due, tx.Warmup)
			}
			last[tx.ID.Client()] = tx.End
		}
		if r.Elapsed != 7*time.Second || r.Interrupted || r.Backlog != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestRunningTransactionsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list, err := newDrill(t, Options{Duration: 10 * time.Second}, &standIn{attempt: takes(4 * time.Second)}).run(t.Context())
		if err != nil || len(list) != 3 || list[2].Outcome != history.Committed {
			t.Fatalf("%d transactions, %v", len(list), err)
		}
		if r.Elapsed != 12*time.Second {
			t.Errorf("the last commit was at 12s, and the measured part is %v", r.Elapsed)
		}
	})
}

func TestOpenLoopSendsAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := []*standIn{{attempt: takes(time.Millisecond)}, {attempt: takes(time.Millisecond)}, {attempt: takes(time.Millisecond)}}
		r, list, err := newDrill(t, Options{Plan: constant(100), Duration: 2 * time.Second}, clients...).run(t.Context())
		if err != nil || len(list) != 200 {
			t.Fatalf("%d transactions, %v", len(list), err)
		}
		for n, tx := range list {
			due := int64(n) * 10e6
			if tx.ID.Client() != uint64(n%3) || tx.Due < due-1 || tx.Due > due+1 || tx.Sent != tx.Due {
				t.Errorf("arrival %d: %s due %d, sent %d, want %d", n, tx.ID, tx.Due, tx.Sent, due)
			}
		}
		if r.Elapsed != 2*time.Second || r.Backlog != 0 {
			t.Errorf("elapsed %v, backlog %d", r.Elapsed, r.Backlog)
		}
	})
}

// TestNoCoordinatedOmission checks that a stall of one second appears in the latency of all transactions due meanwhile.
// It appears in the service time of only one.
func TestNoCoordinatedOmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		client := &standIn{attempt: func(_ context.Context, tx *history.Transaction) error {
			d := time.Millisecond
			if n++; n == 100 {
				d = time.Second
			}
			return takes(d)(t.Context(), tx)
		}}
		_, list, err := newDrill(t, Options{Plan: constant(100), Count: 400}, client).run(t.Context())
		if err != nil || len(list) != 400 {
			t.Fatalf("%d transactions, %v", len(list), err)
		}
		slowLatency, slowService := 0, 0
		for _, tx := range list {
			if tx.End-tx.Due > 20e6 {
				slowLatency++
			}
			if tx.End-tx.Sent > 20e6 {
				slowService++
			}
		}
		// The queue of 99 drains at 1 ms each while one arrives every 10 ms. The k-th waits 1 s - 9 ms*k,
		// which is above 20 ms for the first 108.
		if slowService != 1 || slowLatency < 105 || slowLatency > 112 {
			t.Errorf("%d slow by latency, %d by service time", slowLatency, slowService)
		}
	})
}

func TestBacklogIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list, err := newDrill(t, Options{Plan: constant(100), Duration: 10 * time.Second},
			&standIn{attempt: takes(100 * time.Millisecond)}, &standIn{attempt: takes(time.Millisecond)}).run(t.Context())
		if err != nil || len(list) != 100+500 || r.Backlog != 400 {
			t.Errorf("%d transactions, backlog %d, %v", len(list), r.Backlog, err)
		}
	})
}

func TestFatalErrorStopsAllClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fatal := func(context.Context, *history.Transaction) error { time.Sleep(100 * time.Millisecond); return errFatal }
		clients := []*standIn{{attempt: takes(300 * time.Millisecond)}, {attempt: fatal},
			{attempt: script(history.Committed, errAway), reset: func(context.Context) error { return errAway }}}
		_, list, err := newDrill(t, Options{Duration: time.Hour, GiveUp: time.Minute}, clients...).run(t.Context())
		if !errors.Is(err, errFatal) || !strings.Contains(err.Error(), "client 1, transaction 1-1-1") {
			t.Errorf("the drive ended with %v", err)
		}
		want := []history.Outcome{history.Committed, history.Aborted, history.Aborted}
		if len(list) != 3 {
			t.Fatalf("%d transactions", len(list))
		}
		for _, tx := range list {
			if tx.Outcome != want[tx.ID.Client()] || tx.End > 1e9 {
				t.Errorf("%s: %s at %d", tx.ID, tx.Outcome, tx.End)
			}
		}
	})
}

func TestGiveUpEndsAnUnreachableDatabase(t *testing.T) {
	away := func(context.Context) error { return errAway }
	// The database answers for ten seconds and is then unreachable.
	flaky := func(away time.Duration) *standIn {
		start := time.Now()
		return &standIn{attempt: func(ctx context.Context, tx *history.Transaction) error {
			if passed := time.Since(start); passed > 10*time.Second && passed < 10*time.Second+away {
				return errAway
			}
			return takes(time.Millisecond)(ctx, tx)
		}}
	}
	t.Run("away too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := flaky(time.Hour), flaky(time.Hour)
			b.reset = away
			_, list, err := newDrill(t, Options{Duration: time.Hour, GiveUp: 30 * time.Second}, a, b).run(t.Context())
			if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "30") {
				t.Errorf("the drive ended with %v", err)
			}
			last := list[len(list)-1]
			if last.Outcome != history.Aborted || last.End < 40e9 || last.End > 41e9 {
				t.Errorf("the last transaction: %+v", last)
			}
		})
	})
	t.Run("back in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := newDrill(t, Options{Duration: time.Minute, GiveUp: 30 * time.Second}, flaky(28*time.Second), flaky(28*time.Second)).run(t.Context())
			if err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("one client is enough", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := newDrill(t, Options{Duration: 2 * time.Minute, GiveUp: 30 * time.Second}, flaky(0), flaky(time.Hour)).run(t.Context())
			if err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("rare transactions", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, list, err := newDrill(t, Options{Plan: constant(0.01), Count: 5, GiveUp: 30 * time.Second}, &standIn{attempt: script(history.Committed, errAway, errAway)}).run(t.Context())
			if err != nil || len(list) != 5 {
				t.Error(len(list), err)
			}
		})
	})
}

func TestInterruptLetsTransactionsFinish(t *testing.T) {
	after := func(d time.Duration, t *testing.T) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		time.AfterFunc(d, cancel)
		return ctx
	}
	for _, c := range []struct {
		name    string
		options Options
		client  *standIn
		last    history.Outcome
		ends    time.Duration // the last transaction
	}{
		{"running one finishes", Options{Duration: time.Hour}, &standIn{attempt: takes(4 * time.Second)}, history.Committed, 12 * time.Second},
		{"pacing ends at once", Options{Plan: constant(0.2), Duration: time.Hour}, &standIn{attempt: takes(time.Second)}, history.Committed, 6 * time.Second},
		{"waiting for a server ends at once", Options{Duration: time.Hour},
			&standIn{attempt: script(history.Committed, errAway), reset: func(context.Context) error { return errAway }}, history.Aborted, 9 * time.Second},
		{"a look-up goes on for the grace", Options{Duration: time.Hour},
			&standIn{attempt: func(ctx context.Context, tx *history.Transaction) error {
				time.Sleep(8 * time.Second)
				return errUnknown
			},
				resolve: func(context.Context, *history.Transaction) error { return errAway }}, history.Unknown, 9*time.Second + grace},
		{"retries end", Options{Duration: time.Hour, Retries: 1 << 30},
			&standIn{attempt: func(ctx context.Context, tx *history.Transaction) error { time.Sleep(time.Second); return errAborted }}, history.Aborted, 9*time.Second + conflictCap},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, list, err := newDrill(t, c.options, c.client).run(after(9*time.Second, t))
				if err != nil || !r.Interrupted || len(list) == 0 {
					t.Fatalf("%d transactions, %+v, %v", len(list), r, err)
				}
				last := list[len(list)-1]
				if end := time.Duration(last.End); last.Outcome != c.last || end > c.ends || end < c.ends-conflictCap {
					t.Errorf("the last one is %s at %v, want %s at %v", last.Outcome, end, c.last, c.ends)
				}
				if r.Elapsed < 9*time.Second || r.Elapsed > 12*time.Second {
					t.Errorf("elapsed %v", r.Elapsed)
				}
			})
		})
	}
	t.Run("too late to matter", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, _, err := newDrill(t, Options{Duration: 8 * time.Second}, &standIn{attempt: takes(3 * time.Second)}).run(after(8500*time.Millisecond, t))
			if err != nil || r.Interrupted {
				t.Errorf("%+v, %v", r, err)
			}
		})
	})
}

func TestBackgroundRunsBesideAndDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := false
		audit := &standIn{kind: kindAudit, number: 1}
		audit.attempt = func(ctx context.Context, tx *history.Transaction) error {
			if slow = !slow; slow {
				return takes(2500*time.Millisecond)(ctx, tx)
			}
			return takes(time.Millisecond)(ctx, tx)
		}
		o := Options{Duration: 10 * time.Second, Background: []Background{{Client: audit, Every: time.Second}}}
		d := newDrill(t, o, &standIn{attempt: takes(100 * time.Millisecond)})
		_, list, err := d.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var due []int64
		for _, tx := range list {
			if tx.Kind == kindAudit {
				due = append(due, tx.Due/1e9)
			}
		}
		if want := []int64{0, 3, 4, 7, 8}; !slices.Equal(due, want) {
			t.Errorf("audits were due at %v, want %v", due, want)
		}
		if live := d.driver.Live(); live.Done != 100 || len(list) != 105 {
			t.Errorf("%+v, %d recorded", live, len(list))
		}
	})
}

// TestBackgroundIsWoken checks that a background client runs at once when it is woken, also shortly before the end. The
// interval then begins anew.
func TestBackgroundIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		audit, wake := &standIn{kind: kindAudit, number: 1}, make(chan struct{}, 1)
		o := Options{Duration: 10 * time.Second, Background: []Background{{Client: audit, Every: 4 * time.Second, Wake: wake}}}
		d := newDrill(t, o, &standIn{attempt: takes(100 * time.Millisecond)})
		for _, at := range []time.Duration{2 * time.Second, 7 * time.Second, 9 * time.Second} {
			time.AfterFunc(at, func() { wake <- struct{}{} })
		}
		_, list, err := d.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var due []int64
		for _, tx := range list {
			if tx.Kind == kindAudit {
				due = append(due, tx.Due/1e9)
			}
		}
		if want := []int64{0, 2, 6, 7, 9}; !slices.Equal(due, want) {
			t.Errorf("audits were due at %v, want %v", due, want)
		}
	})
}

func TestBackgroundStopsWithTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		audit := &standIn{kind: kindAudit, number: 1, attempt: takes(700 * time.Millisecond)}
		stuck := &standIn{kind: kindAudit, number: 2, attempt: func(ctx context.Context, _ *history.Transaction) error {
			<-ctx.Done()
			return errUnknown
		}}
		o := Options{Count: 10, Background: []Background{{Client: audit, Every: time.Second}, {Client: stuck, Every: time.Second}}}
		d := newDrill(t, o, &standIn{attempt: takes(250 * time.Millisecond)})
		r, list, err := d.run(t.Context())
		if err != nil || r.Interrupted || audit.made < 3 || stuck.tries != 1 || len(list) != 10+3+1 {
			t.Errorf("%d recorded, %d audits, %+v, %v", len(list), audit.made, r, err)
		}
		if r.Elapsed != 2500*time.Millisecond {
			t.Errorf("elapsed %v", r.Elapsed)
		}
	})
}

// TestShortLoadPhaseHasItsAudit checks that the first audit completes although the clients have ended during
// its conflicts, and that no second one begins.
func TestShortLoadPhaseHasItsAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		audit := &standIn{kind: kindAudit, number: 1, attempt: script(committed, repeat(errAborted, 8)...)}
		o := Options{Count: 10, Retries: 10, Background: []Background{{Client: audit, Every: time.Second}}}
		d := newDrill(t, o, &standIn{attempt: takes(time.Microsecond)})
		r, list, err := d.run(t.Context())
		audits := 0
		for _, tx := range list {
			if tx.Kind == kindAudit && tx.Outcome == committed {
				audits++
			}
		}
		if err != nil || r.Interrupted || audits != 1 || audit.tries != 9 || len(list) != 10+1 {
			t.Errorf("%d recorded, %d audits after %d tries, %+v, %v", len(list), audits, audit.tries, r, err)
		}
	})
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	w, err := history.Create(t.TempDir(), history.Header{Run: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	good := Options{Clients: []Client{&standIn{}}, Count: 1, History: w, Start: time.Now()}
	for name, spoil := range map[string]func(*Options){
		"no clients":          func(o *Options) { o.Clients = nil },
		"no history":          func(o *Options) { o.History = nil },
		"no start":            func(o *Options) { o.Start = time.Time{} },
		"no end":              func(o *Options) { o.Count = 0 },
		"two ends":            func(o *Options) { o.Duration = time.Second },
		"negative duration":   func(o *Options) { o.Duration = -time.Second },
		"negative pause":      func(o *Options) { o.Think = -1 },
		"negative backlog":    func(o *Options) { o.MaxBacklog = -1 },
		"rate and pauses":     func(o *Options) { o.Plan, o.Think = constant(5), time.Second },
		"count after the end": func(o *Options) { o.Plan = plan("5 for 1s") },
		"negative retries":    func(o *Options) { o.Retries = -1 },
		"all warm-up":         func(o *Options) { o.Count, o.Duration, o.Warmup = 0, time.Second, time.Second },
		"background, no pace": func(o *Options) { o.Background = []Background{{Client: &standIn{}}} },
	} {
		o := good
		spoil(&o)
		if r, err := New(o).Run(t.Context()); err == nil || r != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestCancelledBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, list, err := newDrill(t, Options{Count: 5}, &standIn{}).run(ctx)
	if err != nil || !r.Interrupted || len(list) != 0 {
		t.Errorf("%d transactions, %+v, %v", len(list), r, err)
	}
}

// TestOpenLoopByTheRealClock uses the real clock because the alarm does not support virtual time.
func TestOpenLoopByTheRealClock(t *testing.T) {
	d := newDrill(t, Options{Plan: constant(4000), Count: 800}, &standIn{}, &standIn{}, &standIn{})
	d.driver.precise = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		for d.driver.Live().Done < 800 {
			time.Sleep(time.Millisecond)
		}
	}()
	_, list, err := d.run(t.Context())
	<-done
	if err != nil || len(list) != 800 {
		t.Errorf("%d transactions, %v", len(list), err)
	}
}

func TestInterruptByTheRealClock(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := &standIn{attempt: func(_ context.Context, tx *history.Transaction) error {
		cancel()
		tx.Outcome = history.Committed
		return nil
	}}
	d := newDrill(t, Options{Plan: constant(1e-6), Count: 2}, client, &standIn{}) // one in eleven days
	d.driver.precise = true
	r, list, err := d.run(ctx)
	if err != nil || !r.Interrupted || len(list) != 1 {
		t.Errorf("%d transactions, %+v, %v", len(list), r, err)
	}
}

func TestErrorsAreCountedByKind(t *testing.T) {
	other := &db.Error{Class: db.Aborted, Code: "40P01", Op: "update", Err: errText}
	a := &standIn{attempt: script(history.Committed, errAborted, other, fmt.Errorf("wrapped: %w", errAborted), errNoClass)}
	b := &standIn{attempt: script(history.Committed, other, errAborted)}
	r, _, err := newDrill(t, Options{Count: 4, Retries: 9}, a, b).run(t.Context())
	want := []ErrorCount{
		{Class: db.Aborted, Code: "40001", Op: "commit", Count: 3, Example: errAborted.Error()},
		{Class: db.Aborted, Code: "40P01", Op: "update", Count: 2, Example: other.Error()},
		{Class: db.Unknown, Count: 1, Example: errNoClass.Error()},
	}
	if err != nil || !slices.Equal(r.Errors, want) {
		t.Errorf("%+v, %v", r.Errors, err)
	}
	if r.MaxRSSBytes < 1<<20 {
		t.Errorf("resident memory of %d bytes", r.MaxRSSBytes)
	}
}
