package wire

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// request is a test stream with a number of units to send.
type request struct {
	handle *Stream[*request]
	units  int
	sent   int // how often it was part of an exchange
}

// TestOneStreamOwnsTheConnection lets streams send and own in any order. It checks that one stream owns the
// connection at a time, and none at the end. Each request must be sent once, in a batch of limited size.
func TestOneStreamOwnsTheConnection(t *testing.T) {
	const streams, rounds, most = 8, 2000, 5
	var users atomic.Int32
	use := func() func() {
		if n := users.Add(1); n != 1 {
			t.Errorf("%d use the connection at once", n)
		}
		return func() { users.Add(-1) }
	}
	room, together := 0, 0
	s := NewMultiplexer(
		func(r *request) bool {
			if room+r.units > most {
				return false
			}
			room += r.units
			return true
		},
		func(batch []*request) {
			defer use()()
			runtime.Gosched() // the others get something to be sent, on one processor too
			total := 0
			for _, r := range batch {
				r.sent++
				total += r.units
			}
			if total != room || total > most || len(batch) == 0 {
				t.Errorf("%d requests of %d units are sent, not %d", len(batch), total, room)
			}
			room, together = 0, max(together, len(batch))
		})
	var group sync.WaitGroup
	for i := range streams {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			r := &request{}
			r.handle = s.Stream(r)
			want := 0
			for range rounds {
				if random.IntN(4) == 0 {
					r.handle.Acquire()
					use()()
					r.handle.Release()
					continue
				}
				r.units = 1 + random.IntN(most)
				want++
				if r.handle.Send(); r.sent != want {
					t.Errorf("a request was sent %d times, not %d", r.sent, want)
					return
				}
			}
		})
	}
	group.Wait()
	if s.owned || len(s.waiting)+len(s.queue) > 0 {
		t.Errorf("when all have ended somebody owns the connection (%v), %d wait for it and %d want to send", s.owned, len(s.waiting), len(s.queue))
	}
	if together < 2 {
		t.Error("no two requests were ever sent together")
	}
}

// TestMultiplexerAllocatesNothing checks that sending allocates nothing.
func TestMultiplexerAllocatesNothing(t *testing.T) {
	s := NewMultiplexer(func(*request) bool { return true }, func([]*request) {})
	r := &request{}
	r.handle = s.Stream(r)
	if n := testing.AllocsPerRun(100, r.handle.Send); n != 0 {
		t.Errorf("sending makes %v allocations", n)
	}
}
