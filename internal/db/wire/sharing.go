package wire

import "sync"

// Sharing is who may use a connection that several lanes share, each of them a session
// L of one goroutine. One lane owns the connection at a time, and nobody else uses it;
// ownership is handed from lane to lane. What lanes have to send at the same time is
// sent together, by the first of them that finds the connection free, so that one
// system call carries several transactions.
type Sharing[L any] struct {
	fits     func(L) bool
	exchange func(batch []L)

	mu      sync.Mutex
	owned   bool
	waiting []*Place[L] // that want to own it, one after the other
	queue   []*Place[L] // whose requests are to be sent

	// The owner's.
	lanes  []L
	places []*Place[L] // of lanes
}

// NewSharing returns a connection that nobody owns. exchange sends the requests of a
// batch and reads their answers; its caller owns the connection. fits is asked for each
// lane that has something to be sent whether it goes into the batch that is being made;
// it is true at least for the first one. Neither may call the Sharing.
func NewSharing[L any](fits func(L) bool, exchange func(batch []L)) *Sharing[L] {
	return &Sharing[L]{fits: fits, exchange: exchange}
}

// Place is the place of one lane at a shared connection.
type Place[L any] struct {
	of   *Sharing[L]
	lane L
	turn chan turn
}

// turn is what a lane that waits is told.
type turn uint8

const (
	served turn = iota // its request was part of an exchange
	owner              // the connection is its own
)

// Place returns the place of a lane.
func (s *Sharing[L]) Place(lane L) *Place[L] {
	return &Place[L]{of: s, lane: lane, turn: make(chan turn, 1)}
}

// Acquire waits until the lane owns the connection.
func (p *Place[L]) Acquire() {
	s := p.of
	s.mu.Lock()
	if s.owned {
		s.waiting = append(s.waiting, p)
		s.mu.Unlock()
		<-p.turn
		return
	}
	s.owned = true
	s.mu.Unlock()
}

// Release hands the connection, which the lane owns, on: to a lane that waits for it, or
// to one that has something to be sent.
func (p *Place[L]) Release() {
	s := p.of
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.waiting) > 0:
		next := s.waiting[0]
		s.waiting = append(s.waiting[:0], s.waiting[1:]...)
		next.turn <- owner
	case len(s.queue) > 0:
		s.queue[0].turn <- owner
	default:
		s.owned = false
	}
}

// Send returns when the lane, which does not own the connection, was part of an
// exchange: its own with those who wait, or another one's.
func (p *Place[L]) Send() {
	s := p.of
	s.mu.Lock()
	s.queue = append(s.queue, p)
	leads := !s.owned
	s.owned = true
	s.mu.Unlock()
	if leads || <-p.turn == owner {
		p.lead()
	}
}

// Queued is how many lanes have something to be sent that is not under way.
func (s *Sharing[L]) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// lead has the owner's request sent with the others that fit, and hands the connection
// on. The owner's own is the first of the queue.
func (p *Place[L]) lead() {
	s := p.of
	s.mu.Lock()
	s.lanes, s.places = s.lanes[:0], s.places[:0]
	rest := s.queue[:0]
	for _, other := range s.queue {
		if s.fits(other.lane) {
			s.lanes, s.places = append(s.lanes, other.lane), append(s.places, other)
		} else {
			rest = append(rest, other)
		}
	}
	s.queue = rest
	s.mu.Unlock()
	s.exchange(s.lanes)
	for _, other := range s.places {
		if other != p {
			other.turn <- served
		}
	}
	p.Release()
}
