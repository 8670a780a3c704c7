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

// DefaultBacklog is the default limit for waiting transactions of an open loop. Each takes eight bytes.
const DefaultBacklog = 1_000_000

// Options holds the clients, their rate, the length of the load phase and its time-outs.
type Options struct {
	// Clients run the transactions. Client i is history client First+i.
	Clients []Client
	// Background client i is history client All+i.
	Background []Background

	// First is the number of the first of Clients among All clients of the load phase, if other processes
	// have the others. Rate, count and backlog are totals over all clients, and each client has its share in
	// whichever process it runs. All must be at least First+len(Clients). If All is 0, it defaults to
	// len(Clients), and First must be 0.
	First, All int

	// Kinds declares the kinds of transactions, which are counted separately.
	Kinds []history.Declared

	// Plan is the rate over the load phase. The zero Plan is a closed loop: a client's next transaction is
	// due when its last one ended, plus a pause of Think. Otherwise the loop is open and each client has its
	// own arrivals (see pace.NewArrivals). A late transaction is still run, and its latency counts from its
	// intended start time.
	Plan    pace.Plan
	Arrival pace.Arrival // of an open loop; also how the pauses are distributed
	Think   time.Duration

	// MaxBacklog limits the transactions of an open loop that are due but not sent; 0 is DefaultBacklog. Each
	// client has an equal share, at least one. A transaction that becomes due while the share is full is
	// shed: it is never sent, but counted, also in Count.
	MaxBacklog int

	// LatencyLimit is the time that a transaction may take; 0: any. A committed one that takes longer is counted. In an
	// open loop, a transaction that is late by more before it is sent is skipped: it is shed, and counted apart.
	LatencyLimit time.Duration

	// Reconnect makes each transaction of Clients use a new connection. In a closed loop without pauses, the time to
	// connect is not part of its latency.
	Reconnect bool

	// Either Duration or Count must be set. Count is the number of transactions of all clients, including
	// shed ones. It is divided as evenly as possible, independent of timing.
	Duration time.Duration
	Count    uint64

	// Warmup is the initial time whose transactions are marked as warm-up.
	Warmup time.Duration

	// Retries limits the further tries of a transaction whose tries end as db.Aborted. Tries that reached no
	// server are repeated without limit.
	Retries int

	// GiveUp is the time without any contact to the database after which the load phase ends with
	// ErrUnreachable. 0 means never.
	GiveUp time.Duration

	// Seed determines arrivals, pauses, and the jitter of back-off. Each client derives its own generators
	// from it.
	Seed uint64

	// History receives the record of every transaction. Run does not close it.
	History *history.Writer

	// Ended, if not nil, is called once after nothing new is started. Faults must stop there: the grace of
	// running transactions begins when it returns, and Run waits for it.
	Ended func()

	// Connected, if not nil, is called when a client has a new session. It gets the client's number, the time, and the
	// HOST:PORT of the server if known. The client's goroutine calls it.
	Connected func(client int, at int64, server string)

	// Alone states that this process does no other substantial work, so that the number of its threads is
	// chosen for the clients. No other Driver may run in it at the same time.
	Alone bool

	// Start is the zero of all times in the history.
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
		{o.Duration < 0 || o.Warmup < 0 || o.GiveUp < 0 || o.LatencyLimit < 0, "duration, warm-up, latency limit and the time to give up must not be negative"},
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

// all returns the number of clients of the load phase in all processes.
func (o *Options) all() int { return cmp.Or(o.All, len(o.Clients)) }

// room returns the maximal number of waiting transactions of a client.
func (o *Options) room(number int) int {
	return int(max(part(uint64(cmp.Or(o.MaxBacklog, DefaultBacklog)), o.all(), number), 1))
}

// share returns the number of transactions of a client.
func (o *Options) share(number int) uint64 {
	if o.Count == 0 {
		return math.MaxUint64
	}
	return part(o.Count, o.all(), number)
}

// part returns the i-th of n parts of a number. The parts differ by at most one.
func part(all uint64, n, i int) uint64 {
	share := all / uint64(n)
	if uint64(i) < all%uint64(n) {
		share++
	}
	return share
}
