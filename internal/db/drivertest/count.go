package drivertest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"stroppy/internal/db"
)

// Counter is a client. Each of its transactions adds one to something.
type Counter interface {
	Count(ctx context.Context) error
	Reset(ctx context.Context) error
	Close() error
}

// Counted holds the number of transactions of some counters by outcome.
type Counted struct {
	Acknowledged, Unknown int64
	Codes                 map[string]int64 // of errors, after their class
}

// Count runs hurt, which disturbs the servers, and lets clients count until hurt returns.
func Count(t *testing.T, clients int, open func(ctx context.Context, client int) (Counter, error), hurt func()) Counted {
	t.Helper()
	all := Counted{Codes: map[string]int64{}}
	var mu sync.Mutex // guards all results
	var group sync.WaitGroup
	stop := make(chan struct{})
	for i := range clients {
		c, err := open(t.Context(), i)
		Must(t, err)
		Close(t, c)
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := c.Count(t.Context())
				class := db.ClassOf(err)
				mu.Lock()
				switch {
				case err == nil:
					all.Acknowledged++
				case class == db.Unknown:
					all.Unknown++
				case class != db.Aborted && class != db.Unavailable:
					t.Errorf("a count ended with class %v: %v", class, err)
				}
				if e, ok := errors.AsType[*db.Error](err); ok {
					all.Codes[class.String()+" "+e.Code]++
				}
				mu.Unlock()
				if err != nil && class != db.Aborted {
					_ = c.Reset(t.Context()) // if it fails, the next count reports why
				}
			}
		})
	}
	func() {
		defer close(stop) // even if hurt ends the test
		hurt()
	}()
	group.Wait()
	return all
}

// Hold fails the test unless there is at least the number of acknowledged additions, and at most that number and the
// unknown ones. At least one addition must be acknowledged.
func (c Counted) Hold(t *testing.T, there int64) {
	t.Helper()
	t.Logf("%d acknowledged, %d unknown, %d there; %v", c.Acknowledged, c.Unknown, there, c.Codes)
	if there < c.Acknowledged || there > c.Acknowledged+c.Unknown || c.Acknowledged == 0 {
		t.Errorf("%d acknowledged and %d unknown, and %d are there", c.Acknowledged, c.Unknown, there)
	}
}
