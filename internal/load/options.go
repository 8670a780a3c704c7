package load

import (
	"errors"
	"fmt"
	"math"
	"time"

	"stroppy/internal/history"
)

// Options say what is driven, how fast, how long, and how patiently.
type Options struct {
	// Clients run the transactions; client i records as history client i.
	Clients []Client
	// Background clients run beside. The i-th records as history client
	// len(Clients)+i, does not count in the figures, and stops with the drive.
	Background []Background

	// Rate is the number of transactions a second of all clients together. Zero
	// is a closed loop: a client's next transaction is due when its last one
	// ended. Otherwise the loop is open with uniform arrivals: the k-th
	// transaction of client i is due at (k*len(Clients)+i)/Rate seconds after the
	// drive's start, and one that is late is still done, its latency counted from
	// when it was due.
	Rate float64

	// One of Duration and Count is set. Count is the number of transactions of
	// all clients together. It is split as evenly as can be, and so that no
	// client's share depends on timing.
	Duration time.Duration
	Count    uint64

	// Warmup marks the transactions that are due before it has passed.
	Warmup time.Duration

	// Retries bounds the tries after the first of a transaction whose tries end
	// as db.Aborted. A try that met no server is repeated without a bound.
	Retries int

	// GiveUp ends the drive with ErrUnreachable when no client could reach the
	// database for so long. Zero never gives up.
	GiveUp time.Duration

	// Seed is for the jitter of back-off. Each client derives its own generator.
	Seed uint64

	// History takes the record of every transaction. It is not closed.
	History *history.Writer

	// Start is the zero of all times in the history, as time.Now returned it.
	Start time.Time
}

func (o *Options) validate() error {
	switch {
	case len(o.Clients) == 0:
		return errors.New("drive: no clients: at least one is needed")
	case o.History == nil:
		return errors.New("drive: no history to record the transactions in")
	case o.Start.IsZero():
		return errors.New("drive: the start of the run's clock is not set")
	case o.Duration < 0 || o.Warmup < 0 || o.GiveUp < 0:
		return errors.New("drive: duration, warm-up and the time to give up must not be negative")
	case (o.Duration > 0) == (o.Count > 0):
		return errors.New("drive: set either a duration or a count of transactions, and not both")
	case o.Duration > 0 && o.Warmup >= o.Duration:
		return fmt.Errorf("drive: a warm-up of %v leaves nothing to measure of %v: take a shorter one", o.Warmup, o.Duration)
	case o.Rate < 0 || math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0):
		return fmt.Errorf("drive: the rate %v is no number of transactions a second: take 0 for a closed loop", o.Rate)
	case o.Retries < 0:
		return fmt.Errorf("drive: %d retries: take 0 for none", o.Retries)
	}
	for i, b := range o.Background {
		if b.Every <= 0 {
			return fmt.Errorf("drive: background client %d has no interval", i)
		}
	}
	return nil
}

// share is how many of the transactions client i does.
func (o *Options) share(i int) uint64 {
	if o.Count == 0 {
		return math.MaxUint64
	}
	n := uint64(len(o.Clients))
	if uint64(i) < o.Count%n {
		return o.Count/n + 1
	}
	return o.Count / n
}
