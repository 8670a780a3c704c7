package load

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/pace"
)

// DefaultBacklog is the most transactions that an open loop keeps waiting unless
// asked otherwise. Each takes eight bytes.
const DefaultBacklog = 1_000_000

// Options are the clients, their rate, the length of the load phase and its time-outs.
type Options struct {
	// Clients run the transactions; client i records as history client First+i.
	Clients []Client
	// The i-th of the Background records as history client All+i.
	Background []Background

	// First is the number of the first of the Clients among All of the load phase, where
	// other processes have the others: rate, count and backlog are those of all together,
	// of which each client has its part whichever process it is in. All is at least
	// First+len(Clients); 0 is len(Clients), and then First is 0.
	First, All int

	// Kinds are those of the transactions, which are counted apart.
	Kinds []history.Declared

	// Plan is the rate over the load phase. The zero Plan is a closed loop: a client's
	// next transaction is due when its last one ended, or a pause of Think after
	// that. Otherwise the loop is open: each client has arrivals of its own (see
	// pace.NewArrivals). One that is late is still done, its latency counted from when
	// it was due.
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

	// Ended, which may be nil, is called once when nothing new is started any more. What
	// hurts the database stops there: the grace in which running transactions may learn
	// their outcome begins when it returns, and Run does not return before.
	Ended func()

	// Connected, which may be nil, is called when a client has a new session: by its
	// number, when, and the HOST:PORT of its server where that is known. The client's
	// goroutine calls it.
	Connected func(client int, at int64, server string)

	// Alone says that this process does nothing else of weight, so that the number of
	// its threads is chosen for the clients. No other Driver may run in it meanwhile.
	Alone bool

	// Start is the zero of all times in the history, as time.Now returned it.
	Start time.Time
}

func (o *Options) validate() error {
	_, ends := o.Plan.Length() // then a count of transactions might never be due
	for _, rule := range []struct {
		broken bool
		reason string
	}{
		{len(o.Clients) == 0, "no clients: at least one is needed"},
		{o.First < 0 || o.First+len(o.Clients) > o.all(), fmt.Sprintf("clients %d to %d of %d: there are not so many", o.First, o.First+len(o.Clients)-1, o.all())},
		{o.History == nil, "no history to record the transactions in"},
		{o.Start.IsZero(), "the start of the run's clock is not set"},
		{o.Duration < 0 || o.Warmup < 0 || o.GiveUp < 0, "duration, warm-up and the time to give up must not be negative"},
		{(o.Duration > 0) == (o.Count > 0), "set either a duration or a count of transactions, and not both"},
		{o.Duration > 0 && o.Warmup >= o.Duration, fmt.Sprintf("a warm-up of %v leaves nothing to measure of %v: take a shorter one", o.Warmup, o.Duration)},
		{o.Think < 0, fmt.Sprintf("a pause of %v: take 0 for none", o.Think)},
		{o.Think > 0 && !o.Plan.Closed(), "clients that think have no rate, and a rate leaves no time to think: set one of them"},
		{o.MaxBacklog < 0, fmt.Sprintf("a backlog of %d: take 0 for %d", o.MaxBacklog, DefaultBacklog)},
		{ends && o.Count > 0, "the stages of the rate end, so that a count might never be done: leave out the last one's time"},
		{o.Retries < 0, fmt.Sprintf("%d retries: take 0 for none", o.Retries)},
		{slices.ContainsFunc(o.Background, func(b Background) bool { return b.Every <= 0 }), "a background client has no interval"},
	} {
		if rule.broken {
			return errors.New("generate load: " + rule.reason)
		}
	}
	return nil
}

// all is how many clients the load phase has, in all processes.
func (o *Options) all() int { return cmp.Or(o.All, len(o.Clients)) }

// room is how many transactions may be due and not sent at the client of a number.
func (o *Options) room(number int) int {
	return int(max(part(uint64(cmp.Or(o.MaxBacklog, DefaultBacklog)), o.all(), number), 1))
}

// share is how many of the transactions the client of a number does.
func (o *Options) share(number int) uint64 {
	if o.Count == 0 {
		return math.MaxUint64
	}
	return part(o.Count, o.all(), number)
}

// part is the i-th of n parts of a number, which differ by one at most.
func part(all uint64, n, i int) uint64 {
	share := all / uint64(n)
	if uint64(i) < all%uint64(n) {
		share++
	}
	return share
}
