package pace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Arrival is the distribution of arrivals for a given rate.
type Arrival uint8

const (
	// Uniform arrivals have equal distances, over all clients together.
	Uniform Arrival = iota
	// Poisson arrivals are independent: each client has its own Poisson process with its share of the rate.
	Poisson
)

// ParseArrival parses the name of an Arrival. An empty name means Uniform.
func ParseArrival(name string) (Arrival, error) {
	switch name {
	case "", "uniform":
		return Uniform, nil
	case "poisson":
		return Poisson, nil
	}
	return 0, fmt.Errorf("it must be uniform or poisson")
}

func (a Arrival) String() string {
	if a == Poisson {
		return "poisson"
	}
	return "uniform"
}

// These constants select the random streams that a client derives from the seed.
const (
	arrivalStream = 0x61727269 << 32
	pauseStream   = 0x70617573 << 32
)

// Arrivals yields the arrivals of one client in order. They depend only on the arguments of NewArrivals. It
// must be used by one goroutine at a time.
type Arrivals struct {
	plan    Plan
	clients float64
	client  float64
	n       uint64     // uniform: how many have come
	work    float64    // Poisson: until when the last one came, in expected arrivals of this client
	random  *rand.Rand // nil: uniform
}

// NewArrivals returns the arrivals of one of so many clients, numbered from 0.
//
// Uniform: the n-th arrival of all, from 0, belongs to client n mod clients and is due when n are expected. Poisson:
// the expected arrivals between two of a client's are exponentially distributed with mean 1. (Time rescaling of an
// inhomogeneous Poisson process; Çinlar, "Introduction to Stochastic Processes", 1975, section 4.7.)
func NewArrivals(p Plan, a Arrival, clients, client int, seed uint64) *Arrivals {
	s := &Arrivals{plan: p, clients: float64(clients), client: float64(client)}
	if a == Poisson {
		s.random = rand.New(rand.NewPCG(seed, arrivalStream|uint64(client)))
	}
	return s
}

// Next returns when the next arrival is due, relative to the load phase's start. It returns false if there
// are no more.
func (a *Arrivals) Next() (time.Duration, bool) {
	if a.random != nil {
		a.work += a.random.ExpFloat64()
		return a.plan.When(a.work * a.clients)
	}
	a.n++
	return a.nth(a.n - 1)
}

// nth returns when the n-th uniform arrival is due.
func (a *Arrivals) nth(n uint64) (time.Duration, bool) {
	return a.plan.When(float64(n)*a.clients + a.client)
}

// Skip passes over the arrivals that are due before t, of which it counts at most so many, and returns how many. It
// also draws the Poisson arrival after them, and returns as next and ok what Next would return. Uniform arrivals take
// the same time however many they are.
func (a *Arrivals) Skip(t time.Duration, most uint64) (skipped uint64, next time.Duration, ok bool) {
	if a.random == nil {
		to := a.before(t)
		skipped = min(max(to, a.n)-a.n, most)
		a.n += skipped
		next, ok = a.Next()
		return skipped, next, ok
	}
	for next, ok = a.Next(); ok && next < t && skipped < most; next, ok = a.Next() {
		skipped++
	}
	return skipped, next, ok
}

// before returns the number of uniform arrivals due before t, over all clients.
func (a *Arrivals) before(t time.Duration) uint64 {
	due := func(n uint64) bool { at, ok := a.nth(n); return ok && at < t }
	n := uint64(max(0, (a.plan.Expected(t)-a.client)/a.clients))
	for n > 0 && !due(n-1) { // what rounding has put too far
		n--
	}
	for due(n) {
		n++
	}
	return n
}

// Pauses yields the think times of one client between transactions. They depend only on the arguments of
// NewPauses. It must be used by one goroutine.
type Pauses struct {
	mean   time.Duration
	first  time.Duration
	random *rand.Rand // nil: all alike
}

// NewPauses returns the pauses of one client. Poisson pauses are exponentially distributed. Uniform pauses
// are equal, except the one before the first transaction, which spreads the clients evenly over one pause.
func NewPauses(mean time.Duration, a Arrival, clients, client int, seed uint64) *Pauses {
	p := &Pauses{mean: mean, first: time.Duration(float64(mean) * float64(client) / float64(clients))}
	if a == Poisson {
		p.random = rand.New(rand.NewPCG(seed, pauseStream|uint64(client)))
		p.first = p.Next()
	}
	return p
}

// First returns the pause before the first transaction.
func (p *Pauses) First() time.Duration { return p.first }

// Next returns the pause before the next transaction.
func (p *Pauses) Next() time.Duration {
	if p.random == nil {
		return p.mean
	}
	return time.Duration(min(p.random.ExpFloat64()*float64(p.mean), math.MaxInt64/4))
}
