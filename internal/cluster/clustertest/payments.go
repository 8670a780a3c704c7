package clustertest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
)

// Teller is one client of a cluster.
type Teller interface {
	// Pay records a payment. A payment for which it returns nil must be durable.
	Pay(ctx context.Context, id string) error
	Close()
}

// tellers is the number of clients. Each waits for rest between two payments, to leave processor time to the nodes.
// After a failure it waits for again, because a new connection to all nodes costs more than a payment.
const (
	tellers = 4
	rest    = 25 * time.Millisecond
	again   = 100 * time.Millisecond
)

// Payments are made by clients, each with its own teller, which is replaced after an error. No payment is sent twice.
type Payments struct {
	t    testing.TB
	k    Kind
	c    cluster.Local
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	next  int
	acked map[string]bool
	last  time.Time
	gap   time.Duration // longest time without an acknowledgement
}

// Pay starts the clients.
func (k Kind) Pay(t testing.TB, c cluster.Local) *Payments {
	t.Helper()
	if k.Prepare != nil {
		Must(t, k.Prepare(Within(t, WaitLimit), c))
	}
	ctx, stop := context.WithCancel(t.Context())
	p := &Payments{t: t, k: k, c: c, stop: stop, acked: map[string]bool{}, last: time.Now()}
	p.next = int(time.Now().UnixMilli()) * 1000 // above the numbers of earlier payments
	t.Cleanup(func() { stop(); p.done.Wait() })
	for i := range tellers {
		p.done.Go(func() { p.client(ctx, i) })
	}
	p.GoOn(20)
	return p
}

func (p *Payments) client(ctx context.Context, i int) {
	var teller Teller
	for try := i; ctx.Err() == nil; {
		if teller == nil {
			limited, cancel := context.WithTimeout(ctx, 5*time.Second)
			var err error
			if teller, err = p.k.Teller(limited, p.c, i, try); err != nil {
				teller = nil
				_ = wait.Sleep(ctx, again)
			}
			cancel()
			try++
			continue
		}
		p.mu.Lock()
		p.next++
		id := fmt.Sprint(p.next)
		p.mu.Unlock()
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := teller.Pay(limited, id)
		cancel()
		if err != nil {
			teller.Close()
			teller = nil
			_ = wait.Sleep(ctx, again)
			continue
		}
		p.mu.Lock()
		p.acked[id] = true
		p.gap, p.last = max(p.gap, time.Since(p.last)), time.Now()
		p.mu.Unlock()
		_ = wait.Sleep(ctx, rest)
	}
	if teller != nil {
		teller.Close()
	}
}

// GoOn waits until more payments are acknowledged.
func (p *Payments) GoOn(more int) {
	p.t.Helper()
	goal := p.count() + more
	Must(p.t, wait.Retry(Within(p.t, WaitLimit), func() error {
		if n := p.count(); n < goal {
			return fmt.Errorf("%d payments are acknowledged instead of %d", n, goal)
		}
		return nil
	}))
}

func (p *Payments) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acked)
}

// settled bounds the time for which nodes may differ after the cluster is healthy.
const settled = 20 * time.Second

// End stops the clients, waits until the cluster is healthy, and returns the number of lost acknowledged payments.
// All nodes must hold the same payments.
func (p *Payments) End(what string) (lost int) {
	p.t.Helper()
	p.stop()
	p.done.Wait()
	ctx := Within(p.t, WaitLimit)
	began := time.Now()
	if p.k.Mend != nil {
		Must(p.t, p.k.Mend(ctx, p.c))
	}
	Must(p.t, p.c.WaitHealthy(ctx))
	whole := time.Since(began)
	leader, others := Leader(p.t, p.c)
	var there map[string]string
	// A payment that its client gave up may commit during the reads. So only a lasting difference is an error.
	if err := wait.Retry(Within(p.t, settled), func() (err error) {
		if there, err = p.k.Holds(ctx, p.c, leader.Number()); err != nil {
			return err
		}
		for _, n := range others {
			held, err := p.k.Holds(ctx, p.c, n.Number())
			if err != nil {
				return err
			}
			if !maps.Equal(held, there) {
				return fmt.Errorf("%s holds %d things, %s %d, and they differ", n.Name(), len(held), leader.Name(), len(there))
			}
		}
		return nil
	}); err != nil {
		p.t.Errorf("%s: %v", what, err)
	}
	if p.k.Sound != nil {
		if err := p.k.Sound(there); err != nil {
			p.t.Errorf("%s: %v", what, err)
		}
	}
	for id := range p.acked {
		if _, ok := there[id]; !ok {
			lost++
		}
	}
	p.t.Logf("%s: %d acknowledged, %d lost, no success for %v, whole after %v", what, len(p.acked), lost,
		p.gap.Round(time.Millisecond), whole.Round(time.Millisecond))
	return lost
}

// EndWell is like End, but no payment may be lost.
func (p *Payments) EndWell(what string) {
	p.t.Helper()
	if lost := p.End(what); lost > 0 {
		p.t.Errorf("%s: %d acknowledged payments are lost", what, lost)
	}
}
