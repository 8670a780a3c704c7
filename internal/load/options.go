package load

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/pace"
)

// DefaultBacklog is the most transactions that an open loop keeps waiting unless
// asked otherwise. Each takes eight bytes.
const DefaultBacklog = 1_000_000

// Options are the clients, their rate, the length of the load phase and its time-outs.
type Options struct {
	// Clients run the transactions; client i records as history client i.
	Clients []Client
	// Background clients run beside. The i-th records as history client
	// len(Clients)+i, does not count in the measurements, and stops with the load phase.
	Background []Background

	// Plan is the rate over the load phase. The zero Plan is a closed loop: a client's
	// next transaction is due when its last one ended, or a pause of Think after
	// that. Otherwise the loop is open: each client has arrivals of its own, which
	// are a function of Plan, Arrival, Seed, the number of clients and its own
	// (see pace.NewArrivals). One that is late is still done, its latency counted
	// from when it was due.
	Plan    pace.Plan
	Arrival pace.Arrival // of an open loop; also how the pauses are distributed
	Think   time.Duration

	// MaxBacklog bounds the transactions of an open loop that are due and not
	// sent; 0 is DefaultBacklog. Each client has an even part of it, at least one.
	// What becomes due while its client's part is full is never sent: it is shed,
	// counted, and part of Count.
	MaxBacklog int

	// One of Duration and Count is set. Count is the number of transactions of
	// all clients together, those that are shed included. It is split as evenly as
	// can be, and so that no client's share depends on timing.
	Duration time.Duration
	Count    uint64

	// Warmup marks the transactions that are due before it has passed.
	Warmup time.Duration

	// Retries bounds the tries after the first of a transaction whose tries end
	// as db.Aborted. A try that met no server is repeated without a bound.
	Retries int

	// GiveUp ends the load phase with ErrUnreachable when no client could reach the
	// database for so long. Zero never gives up.
	GiveUp time.Duration

	// Seed is for arrivals, pauses, and the jitter of back-off. Each client derives
	// its own generators.
	Seed uint64

	// History takes the record of every transaction. It is not closed.
	History *history.Writer

	// Ended is called once when nothing new is started any more, because the time
	// has passed, the count is done or the load phase was ended. What hurts the database
	// stops there: the grace in which running transactions may learn their outcome
	// begins when it returns, and Run does not return before. Nil is nothing to do.
	Ended func()

	// Alone says that this process does nothing else of weight, so that the number of
	// its threads is chosen for the clients in the warm-up or the first two seconds.
	// No other Driver may run in the process in the meantime.
	Alone bool

	// Start is the zero of all times in the history, as time.Now returned it.
	Start time.Time
}

func (o *Options) validate() error {
	_, ends := o.Plan.Length() // then a count of transactions might never be due
	switch {
	case len(o.Clients) == 0:
		return errors.New("generate load: no clients: at least one is needed")
	case o.History == nil:
		return errors.New("generate load: no history to record the transactions in")
	case o.Start.IsZero():
		return errors.New("generate load: the start of the run's clock is not set")
	case o.Duration < 0 || o.Warmup < 0 || o.GiveUp < 0:
		return errors.New("generate load: duration, warm-up and the time to give up must not be negative")
	case (o.Duration > 0) == (o.Count > 0):
		return errors.New("generate load: set either a duration or a count of transactions, and not both")
	case o.Duration > 0 && o.Warmup >= o.Duration:
		return fmt.Errorf("generate load: a warm-up of %v leaves nothing to measure of %v: take a shorter one", o.Warmup, o.Duration)
	case o.Think < 0:
		return fmt.Errorf("generate load: a pause of %v: take 0 for none", o.Think)
	case o.Think > 0 && !o.Plan.Closed():
		return errors.New("generate load: clients that think have no rate, and a rate leaves no time to think: set one of them")
	case o.MaxBacklog < 0:
		return fmt.Errorf("generate load: a backlog of %d: take 0 for %d", o.MaxBacklog, DefaultBacklog)
	case ends && o.Count > 0:
		return errors.New("generate load: the stages of the rate end, so that a count might never be done: leave out the last one's time")
	case o.Retries < 0:
		return fmt.Errorf("generate load: %d retries: take 0 for none", o.Retries)
	}
	for i, b := range o.Background {
		if b.Every <= 0 {
			return fmt.Errorf("generate load: background client %d has no interval", i)
		}
	}
	return nil
}

// paced reports whether clients wait for the time at which work is due.
func (o *Options) paced() bool { return !o.Plan.Closed() || o.Think > 0 }

// room is how many transactions may be due and not sent at one client.
func (o *Options) room(i int) int {
	return int(max(part(uint64(cmp.Or(o.MaxBacklog, DefaultBacklog)), len(o.Clients), i), 1))
}

// share is how many of the transactions client i does.
func (o *Options) share(i int) uint64 {
	if o.Count == 0 {
		return math.MaxUint64
	}
	return part(o.Count, len(o.Clients), i)
}

// part is the i-th of n parts of a number, which differ by one at most.
func part(all uint64, n, i int) uint64 {
	share := all / uint64(n)
	if uint64(i) < all%uint64(n) {
		share++
	}
	return share
}
