package load

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/pace"
)

// TestQueueEqualsNaiveQueue compares the queue, which polls its arrivals and uses a ring, with one that takes
// arrivals one by one.
func TestQueueEqualsNaiveQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for round := range 300 {
		o := Options{
			Plan: plan("200..2000 for 2s, 0 for 1s, 1000 for 3s"), Arrival: pace.Arrival(r.IntN(2)), Seed: uint64(round),
			Clients: make([]Client, 1+r.IntN(3)), MaxBacklog: 1 + r.IntN(300),
		}
		if o.Count = uint64(r.IntN(2) * 1500); o.Count == 0 {
			o.Duration = time.Hour
		}
		const begin = 7e8
		end := int64(begin + 1e9 + r.Int64N(6e9))
		all, left := pace.NewArrivals(o.Plan, o.Arrival, len(o.Clients), 0, o.Seed), o.share(0)
		var arrivals []int64
		for due, ok := all.Next(); ok && begin+int64(due) < end && left > 0; due, ok = all.Next() {
			arrivals = append(arrivals, begin+int64(due))
			left--
		}
		q := &queue{source: newSource(&o, 0, begin, end), room: o.room(0)}
		var waiting []int64
		var shed, wantShed uint64
		for now := int64(begin); now < end+1e8; now += r.Int64N(3e8) {
			for len(arrivals) > 0 && arrivals[0] <= now {
				if len(waiting) < q.room {
					waiting = append(waiting, arrivals[0])
				} else {
					wantShed++
				}
				arrivals = arrivals[1:]
			}
			shed += q.admit(now)
			first := int64(never)
			if len(waiting) > 0 {
				first = waiting[0]
			} else if len(arrivals) > 0 {
				first = arrivals[0]
			}
			result := &Result{Unsent: make([]uint64, 10)}
			middle := int64(begin) + r.Int64N(now-begin+1)
			left, early := q.unsent(middle, never, result)
			if shed != wantShed || q.first() != first || q.size != len(waiting) || left+early != uint64(len(waiting)) || early != before(waiting, middle) {
				t.Fatalf("round %d at %d: %d wait, %d shed, first %d; want %d, %d, %d", round, now, q.size, shed, q.first(), len(waiting), wantShed, first)
			}
			for range r.IntN(200) {
				if len(waiting) > 0 {
					q.take()
					waiting = waiting[1:]
				}
			}
		}
	}
}

// TestStagesAndRamps checks that the arrivals follow the plan, independent of the clients.
func TestStagesAndRamps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan("100 for 2s, 300 for 2s, 0 for 1s, 100..300 for 2s")
		clients := []*standIn{{attempt: takes(time.Millisecond)}, {attempt: takes(time.Millisecond)}, {attempt: takes(time.Millisecond)}}
		r, list, err := newDrill(t, Options{Plan: p, Duration: 10 * time.Second}, clients...).run(t.Context())
		if err != nil || len(list) != 200+600+400 || r.Backlog != 0 || r.Elapsed != 10*time.Second {
			t.Fatalf("%d transactions, %+v, %v", len(list), r, err)
		}
		perSecond := make([]int, 10)
		for _, tx := range list {
			perSecond[tx.Due/1e9]++
		}
		if want := []int{100, 100, 300, 300, 0, 150, 250, 0, 0, 0}; !slices.Equal(perSecond, want) {
			t.Errorf("arrivals each second: %v, want %v", perSecond, want)
		}
		if p := r.Measurements.Pacing; p.Count < 1100 || p.P99 > time.Millisecond {
			t.Errorf("pacing of %d: %+v", p.Count, p)
		}
	})
}

func TestPoissonDrivesAreRepeated(t *testing.T) {
	drive := func(seed uint64, slow time.Duration) (due []int64) {
		synctest.Test(t, func(t *testing.T) {
			clients := []*standIn{{attempt: takes(slow)}, {attempt: takes(time.Millisecond)}}
			o := Options{Plan: constant(200), Arrival: pace.Poisson, Count: 400, Seed: seed}
			_, list, err := newDrill(t, o, clients...).run(t.Context())
			if err != nil || len(list) != 400 {
				t.Fatal(len(list), err)
			}
			for _, tx := range list {
				due = append(due, tx.Due)
			}
			slices.Sort(due)
		})
		return due
	}
	one, slower, other := drive(1, time.Millisecond), drive(1, 20*time.Millisecond), drive(2, time.Millisecond)
	if !slices.Equal(one, slower) {
		t.Error("the arrivals depend on how long transactions take")
	}
	if slices.Equal(one, other) {
		t.Error("another seed changes no arrival")
	}
}

// before counts the clocks before at.
func before(clocks []int64, at int64) (n uint64) {
	for _, c := range clocks {
		if c < at {
			n++
		}
	}
	return n
}

// TestFullQueueSheds checks that transactions without room are counted but not sent, and that sent ones have
// the latency from their own intended start time.
func TestFullQueueSheds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := func() *standIn {
			n := 0
			return &standIn{attempt: func(ctx context.Context, tx *history.Transaction) error {
				if n++; n == 50 {
					return takes(2*time.Second)(ctx, tx)
				}
				return takes(time.Millisecond)(ctx, tx)
			}}
		}
		d := newDrill(t, Options{Plan: constant(200), Duration: 5 * time.Second, MaxBacklog: 61}, stalls(), stalls())
		var during Counters
		time.AfterFunc(2200*time.Millisecond, func() { during = d.driver.Live() })
		r, list, err := d.run(t.Context())
		// Each client has 100 arrivals per second and sends the 50th 490 ms (495 ms) after the beginning. 31 (30) of
		// the 200 that are due meanwhile find room. The queue then drains at 1 ms each, faster than transactions
		// arrive.
		if err != nil || r.Shed != 169+170 || len(list) != 1000-339 || r.Backlog != 0 {
			t.Fatalf("%d transactions, %d shed, backlog %d, %v", len(list), r.Shed, r.Backlog, err)
		}
		if during.Backlog != 61 || during.Shed != 441-100-61 {
			t.Errorf("after 2.2 s of clients that hang: %+v", during)
		}
		late := 0
		for _, tx := range list {
			if tx.End-tx.Due > 1e9 {
				late++
			}
		}
		if late != 2+61 {
			t.Errorf("%d transactions are a second late", late)
		}
		if l := d.driver.Live(); l.Backlog != 0 || l.Shed != r.Shed {
			t.Errorf("at the end: %+v", l)
		}
	})
}

func TestSheddingCountsInTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, list, err := newDrill(t, Options{Plan: constant(100), Count: 1000, MaxBacklog: 5}, &standIn{attempt: takes(20 * time.Millisecond)}).run(t.Context())
		if err != nil || uint64(len(list))+r.Shed != 1000 || r.Shed < 480 || r.Shed > 500 {
			t.Errorf("%d transactions, %d shed, %v", len(list), r.Shed, err)
		}
	})
}

// TestRateHoldsThroughReconnects checks that a server that is away for two seconds does not change what is
// due, and that all of it is sent.
func TestRateHoldsThroughReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		away := func() bool { d := time.Since(start); return d > 3*time.Second && d < 5*time.Second }
		var clients []*standIn
		for range 4 {
			clients = append(clients, &standIn{
				attempt: func(ctx context.Context, tx *history.Transaction) error {
					if away() {
						return errAway
					}
					return takes(time.Millisecond)(ctx, tx)
				},
				reset: func(context.Context) error {
					if away() {
						return errAway
					}
					return nil
				},
			})
		}
		r, list, err := newDrill(t, Options{Plan: constant(400), Duration: 10 * time.Second, GiveUp: time.Minute}, clients...).run(t.Context())
		if err != nil || len(list) != 4000 || r.Backlog != 0 || r.Shed != 0 || r.Reconnects < 4 {
			t.Fatalf("%d transactions, %+v, %v", len(list), r, err)
		}
		perSecond := make([]int, 10)
		late := 0
		for _, tx := range list {
			perSecond[tx.Due/1e9]++
			if tx.End-tx.Due > 100e6 {
				late++
			}
		}
		if slices.Min(perSecond) != 400 || slices.Max(perSecond) != 400 {
			t.Errorf("arrivals each second: %v", perSecond)
		}
		if late < 750 {
			t.Errorf("%d transactions are late", late)
		}
		if p := r.Measurements.Pacing; p.P99 > time.Millisecond || p.Count > 3300 {
			t.Errorf("waiting for a server counts as the tool's own error: %d, %+v", p.Count, p)
		}
		if l := r.Measurements.Latency; l.Count != 4000 || l.Max < 1500*time.Millisecond {
			t.Errorf("latency of %d: %+v", l.Count, l)
		}
	})
}

func TestThinkTimesDelayTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Think: time.Second, Duration: 10 * time.Second}
		r, list, err := newDrill(t, o, &standIn{attempt: takes(250 * time.Millisecond)}, &standIn{attempt: takes(250 * time.Millisecond)}).run(t.Context())
		if err != nil || len(list) != 16 || r.Backlog != 0 {
			t.Fatalf("%d transactions, %+v, %v", len(list), r, err)
		}
		next := []int64{0, 500e6}
		for _, tx := range list {
			if tx.Due != next[tx.ID.Client()] || tx.Sent != tx.Due {
				t.Errorf("%s: due %d, sent %d, want %d", tx.ID, tx.Due, tx.Sent, next[tx.ID.Client()])
			}
			next[tx.ID.Client()] = tx.End + 1e9
		}
		if p := r.Measurements.Pacing; p.Count != 16 || p.Max != 0 {
			t.Errorf("pacing of %d: %+v", p.Count, p)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		o := Options{Think: 10 * time.Millisecond, Arrival: pace.Poisson, Count: 5000}
		_, list, err := newDrill(t, o, &standIn{}).run(t.Context())
		if err != nil || len(list) != 5000 {
			t.Fatal(len(list), err)
		}
		mean := float64(list[len(list)-1].Due) / 5000
		if math.Abs(mean-10e6) > 5*10e6/math.Sqrt(5000) {
			t.Errorf("pauses of %v ns in the mean", mean)
		}
	})
}

// TestUnsentAreReportedBySecond checks that transactions that were due but never sent are counted by second.
func TestUnsentAreReportedBySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, err := newDrill(t, Options{Plan: constant(100), Duration: 5 * time.Second}, &standIn{attempt: takes(20 * time.Millisecond)}).run(t.Context())
		if err != nil || !slices.Equal(r.Unsent, []uint64{0, 0, 50, 100, 100}) || r.Backlog != 250 {
			t.Errorf("%v of %d, %v", r.Unsent, r.Backlog, err)
		}
	})
}
