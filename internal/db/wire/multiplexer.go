package wire

import "sync"

// Multiplexer controls the use of a connection that several streams share. Each stream is a session L of one
// goroutine. Only the stream that owns the connection uses it, and ownership passes from stream to stream.
// Pending requests are sent together by the first stream that finds the connection free, so one system call
// carries several transactions.
type Multiplexer[L any] struct {
	fits     func(L) bool
	exchange func(batch []L)

	mu      sync.Mutex
	owned   bool
	waiting []*Stream[L] // that want to own it, one after the other
	queue   []*Stream[L] // whose requests are to be sent

	// These fields belong to the owner.
	streams []L
	handles []*Stream[L] // of streams
}

// NewMultiplexer returns a connection without an owner. exchange sends the requests of a batch and reads
// their answers, while its caller owns the connection. fits reports whether a stream's request fits into the
// current batch; it must be true at least for the first one. Neither may call the Multiplexer.
func NewMultiplexer[L any](fits func(L) bool, exchange func(batch []L)) *Multiplexer[L] {
	return &Multiplexer[L]{fits: fits, exchange: exchange}
}

// Stream is one stream's access to a shared connection.
type Stream[L any] struct {
	of     *Multiplexer[L]
	stream L
	// turn ends waiting. True means that the stream owns the connection, false that its request was part of
	// an exchange.
	turn chan bool
}

// Stream returns the access for a stream.
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

// Release passes the connection, which the stream must own, to a waiting stream or to one with a pending
// request.
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

// Send returns after the stream's request was part of an exchange. The stream must not own the connection.
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

// Queued returns the number of streams with a pending request that is not being sent.
func (s *Multiplexer[L]) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// lead sends the owner's request, the first of the queue, with the others that fit, and passes the connection
// on.
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
