package voltdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"stroppy/internal/db"
)

// shared is a connection of several sessions. Each session has at most one call under way. The answers come in any
// order. If several sessions have calls to send at the same time, the first session sends them together.
type shared struct {
	db *Database

	mu       sync.Mutex
	sessions int           // the sessions that are not closed
	link     *link         // nil while the connection is broken
	streams  []stream      // by the number of their session
	out      []byte        // the bytes to send
	spare    []byte        // the bytes that were sent last, for reuse
	writing  bool          // a session is sending
	taken    uint64        // how often out was taken to be sent
	renewing chan struct{} // held while the connection is made
	node     int
}

// stream is one session's place at a shared connection.
type stream struct {
	handle uint64    // of the call under way; 0: none
	since  time.Time // when it was handed over to be sent
	batch  uint64    // the value of taken at which the call is sent
	next   uint64    // counts its calls
	body   []byte    // the answer
	done   chan error
}

// streamBits are the bits of a handle that name the session.
const streamBits = 20

// Streams implements db.Multiplexer.
func (d *Database) Streams(ctx context.Context, n int, options db.SessionOptions) ([]db.RecordSession, error) {
	if _, err := d.Claim(options.Isolation); err != nil {
		return nil, err
	}
	if n >= 1<<streamBits {
		return nil, db.Fatalf(opConnect, "%d calls under way on one connection are more than the %d that fit", n, 1<<streamBits-1)
	}
	c := &shared{db: d, sessions: n, streams: make([]stream, n), renewing: make(chan struct{}, 1), node: d.next()}
	l, err := d.connect(ctx, c.node)
	if err != nil {
		return nil, err
	}
	c.use(l)
	list := make([]db.RecordSession, n)
	for i := range list {
		c.streams[i].done = make(chan error, 1)
		list[i] = &recordSession{session: &session{db: d, shared: c, stream: i, link: l}}
	}
	return list, nil
}

// use begins to read from a new connection.
func (c *shared) use(l *link) {
	c.mu.Lock()
	c.link, c.out, c.writing = l, c.out[:0], false
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.read(l)
	}()
	go c.watch(l, ended)
}

// read passes answers to their sessions until the connection ends.
func (c *shared) read(l *link) {
	for {
		body, err := l.read()
		if err != nil {
			c.fail(l, fmt.Errorf("the connection was lost: %w", err))
			return
		}
		handle := handleOf(body)
		c.mu.Lock()
		if i := handle & (1<<streamBits - 1); i < uint64(len(c.streams)) {
			if s := &c.streams[i]; s.handle == handle && handle != 0 {
				s.handle, s.body = 0, append(s.body[:0], body...)
				s.done <- nil
			}
		}
		c.mu.Unlock()
	}
}

// watch ends the connection if a call has no answer within the time limit of a call.
func (c *shared) watch(l *link, ended <-chan struct{}) {
	limit := c.db.config.answer
	ticker := time.NewTicker(max(limit/8, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case now := <-ticker.C:
			c.mu.Lock()
			late := slices.ContainsFunc(c.streams, func(s stream) bool { return s.handle != 0 && now.Sub(s.since) > limit })
			c.mu.Unlock()
			if late {
				c.fail(l, fmt.Errorf("no answer within %v", limit))
			}
		}
	}
}

// fail ends a connection, and all calls under way on it. Calls that no session had begun to send were not sent.
func (c *shared) fail(l *link, err error) {
	l.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return
	}
	c.link = nil
	for i := range c.streams {
		s := &c.streams[i]
		if s.handle == 0 {
			continue
		}
		s.handle = 0
		if s.batch >= c.taken {
			s.done <- notSent{err}
		} else {
			s.done <- err
		}
	}
}

var errShared = notSent{errors.New("it ended under another transaction that shared it")}

// roundTrip sends a call and returns its answer, which is valid until the session's next.
func (c *shared) roundTrip(ctx context.Context, s *session, procedure string, types []db.Type, args []db.Value) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, notSent{context.Cause(ctx)}
	}
	now := time.Now()
	c.mu.Lock()
	l, own := c.link, &c.streams[s.stream]
	if l == nil || l != s.link {
		c.mu.Unlock()
		return nil, errShared
	}
	own.next++
	handle := own.next<<streamBits | uint64(s.stream)
	own.handle, own.since, own.batch = handle, now, c.taken
	c.out = appendCall(c.out, handle, procedure, types, args)
	if !c.writing {
		c.writing = true
		c.send(l)
	}
	c.mu.Unlock()
	select {
	case err := <-own.done:
		return own.body, err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if own.handle != handle { // the answer came first
		return own.body, <-own.done
	}
	own.handle = 0
	return nil, context.Cause(ctx)
}

// send sends the waiting bytes until there are none. The lock is held, but not during a write.
func (c *shared) send(l *link) {
	for c.link == l && len(c.out) > 0 {
		batch := c.out
		c.out, c.spare = c.spare[:0], nil
		c.taken++
		c.mu.Unlock()
		_, err := l.conn.Write(batch)
		if err != nil {
			c.fail(l, fmt.Errorf("the connection was lost: %w", err))
		}
		c.mu.Lock()
		c.spare = batch
	}
	if c.link == l {
		c.writing = false
	}
}

// reset gives the session a connection. If the other sessions have a working connection, it uses that connection.
// Otherwise the first session that comes makes a new connection.
func (c *shared) reset(ctx context.Context, s *session) error {
	select {
	case c.renewing <- struct{}{}:
		defer func() { <-c.renewing }()
	case <-ctx.Done():
		return unreachable(ctx, &c.db.config, c.db.config.nodes[0], context.Cause(ctx))
	}
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		c.node++
		made, err := c.db.connect(ctx, c.node)
		if err != nil {
			return err
		}
		c.use(made)
		l = made
	}
	s.link, s.broken = l, false
	return nil
}

// leave closes one session. The last session closes the connection.
func (c *shared) leave() {
	c.mu.Lock()
	c.sessions--
	l := c.link
	last := c.sessions == 0
	if last {
		c.link = nil
	}
	c.mu.Unlock()
	if last && l != nil {
		l.close()
	}
}
