package wire

import "sync"

// Multiplexer is who may use a connection that several streams share, each of them a session
// L of one goroutine. One stream owns the connection at a time, and nobody else uses it;
// ownership is handed from stream to stream. What streams have to send at the same time is
// sent together, by the first of them that finds the connection free, so that one
// system call carries several transactions.
type Multiplexer[L any] struct {
	fits     func(L) bool
	exchange func(batch []L)

	mu      sync.Mutex
	owned   bool
	waiting []*Stream[L] // that want to own it, one after the other
	queue   []*Stream[L] // whose requests are to be sent

	// The owner's.
	streams []L
	handles []*Stream[L] // of streams
}

// NewMultiplexer returns a connection that nobody owns. exchange sends the requests of a
// batch and reads their answers; its caller owns the connection. fits is asked for each
// stream that has something to be sent whether it goes into the batch that is being made;
// it is true at least for the first one. Neither may call the Multiplexer.
func NewMultiplexer[L any](fits func(L) bool, exchange func(batch []L)) *Multiplexer[L] {
	return &Multiplexer[L]{fits: fits, exchange: exchange}
}

// Stream is the place of one stream at a shared connection.
type Stream[L any] struct {
	of     *Multiplexer[L]
	stream L
	// turn ends its waiting: true, the connection is its own; false, its request was part
	// of an exchange.
	turn chan bool
}

// Stream returns the place of a stream.
func (s *Multiplexer[L]) Stream(stream L) *Stream[L] {
	return &Stream[L]{of: s, stream: stream, turn: make(chan bool, 1)}
}

// Acquire waits until the stream owns the connection.
func (p *Stream[L]) Acquire() {
	s := p.of
	s.mu.Lock()
	wait := s.owned
	if wait {
		s.waiting = append(s.waiting, p)
	}
	s.owned = true
	s.mu.Unlock()
	if wait {
		<-p.turn
	}
}

// Release hands the connection, which the stream owns, on: to a stream that waits for it, or
// to one that has something to be sent.
func (p *Stream[L]) Release() {
	s := p.of
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.waiting) > 0:
		next := s.waiting[0]
		s.waiting = append(s.waiting[:0], s.waiting[1:]...)
		next.turn <- true
	case len(s.queue) > 0:
		s.queue[0].turn <- true
	default:
		s.owned = false
	}
}

// Send returns when the stream, which does not own the connection, was part of an
// exchange: its own with those who wait, or another one's.
func (p *Stream[L]) Send() {
	s := p.of
	s.mu.Lock()
	s.queue = append(s.queue, p)
	leads := !s.owned
	s.owned = true
	s.mu.Unlock()
	if leads || <-p.turn {
		p.lead()
	}
}

// Queued is how many streams have something to be sent that is not under way.
func (s *Multiplexer[L]) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// lead has the owner's request sent with the others that fit, and hands the connection
// on. The owner's own is the first of the queue.
func (p *Stream[L]) lead() {
	s := p.of
	s.mu.Lock()
	s.streams, s.handles = s.streams[:0], s.handles[:0]
	rest := s.queue[:0]
	for _, other := range s.queue {
		if s.fits(other.stream) {
			s.streams, s.handles = append(s.streams, other.stream), append(s.handles, other)
		} else {
			rest = append(rest, other)
		}
	}
	s.queue = rest
	s.mu.Unlock()
	s.exchange(s.streams)
	for _, other := range s.handles {
		if other != p {
			other.turn <- false
		}
	}
	p.Release()
}
