package pgwire

import (
	"context"
	"errors"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// Streams implements db.Multiplexer[db.SQLSession]. Transactions that ask for nothing before their
// end are sent together, each with a Sync of its own, by the first stream that finds the
// connection free; it reads all their answers. So one system call carries several of
// them, and the server does one after the other. A transaction that asks for a result
// before its end has the connection to itself until then.
//
// Mode must be Pipelined: what waits for each statement leaves nothing to share.
func (d *Database) Streams(ctx context.Context, n int, options db.SessionOptions) ([]db.SQLSession, error) {
	if options.Mode != db.Pipelined {
		return nil, db.Fatalf(d.opConnect, "transactions that wait for each of their statements cannot share a connection: take mode pipelined, or leave in-flight out")
	}
	first, err := d.Session(ctx, options)
	if err != nil {
		return nil, err
	}
	t := &sharedConn{link: first.(*session).link, streams: n}
	t.Multiplexer = wire.NewMultiplexer(t.takes, t.exchange)
	t.context, t.end = context.WithCancel(context.Background())
	var list []db.SQLSession
	for range n { // the first session has said to which server
		s := d.session(first.(*session).options)
		s.link = t.link
		s.stream = &stream{conn: t, handle: t.Stream(s), of: t.link, statements: map[*db.Statement]*prepared{}}
		list = append(list, s)
	}
	return list, nil
}

// sharedConn is a connection that streams share. Whoever owns it may use link and
// streams, and nobody else.
type sharedConn struct {
	*wire.Multiplexer[*session]

	// What streams send together ends with this and not with the context of one of them,
	// for an end of that would be the end of all: a stream waits for its answer, or for
	// the time-out of the connection.
	context context.Context
	end     context.CancelFunc

	streams int    // not closed
	link    *link  // nil while the connection is broken
	out     []byte // of the batch
}

// stream is what a session has of a connection that it shares.
type stream struct {
	conn   *sharedConn
	handle *wire.Stream[*session]

	of         *link // where the statements below are prepared
	statements map[*db.Statement]*prepared
	owned      bool // the connection, while a transaction is open on it

	message []byte // what is to be sent, in session.out
	x       exchange
	err     error // how the transaction ended
}

// owns says that nobody else uses the session's connection now.
func (s *session) owns() bool { return s.stream == nil || s.stream.owned }

// acquire makes the session the owner of its connection until release, or refuses it
// because the connection that it knows is gone.
func (s *session) acquire(op string) error {
	if s.owns() {
		return nil
	}
	s.stream.handle.Acquire()
	if s.link == nil || s.link != s.stream.conn.link {
		s.link, s.state = nil, wire.Idle
		s.stream.handle.Release()
		return wire.Broken(op)
	}
	s.stream.owned = true
	return nil
}

// release hands a shared connection on unless the server has a transaction of the
// session open, with the link if there still is one.
func (s *session) release() {
	if t := s.stream; t != nil && t.owned && s.state != wire.Open {
		t.owned = false
		if s.link == nil {
			t.conn.link = nil
		}
		t.handle.Release()
	}
}

// preparedFor returns a statement that is prepared on the session's connection. A
// stream has a list of its own, because the connection's is for the owner alone.
func (s *session) preparedFor(ctx context.Context, statement *db.Statement) (*prepared, error) {
	known := s.link.statements
	if t := s.stream; t != nil {
		if t.of != s.link {
			t.of = s.link
			clear(t.statements)
		}
		known = t.statements
	}
	if p := known[statement]; p != nil {
		return p, nil
	}
	if err := s.acquire(s.opExecute); err != nil {
		return nil, err
	}
	p := s.link.statements[statement]
	if p == nil {
		var err *db.Error
		if p, err = s.prepare(ctx, statement); err != nil {
			return nil, s.fail(ctx, err)
		}
	}
	known[statement] = p
	return p, nil
}

// commitTogether commits a transaction of which the server knows nothing in one
// exchange with those of other streams.
func (s *session) commitTogether(ctx context.Context) error {
	s.state = wire.Idle
	if ctx.Err() != nil {
		return &db.Error{Class: db.Aborted, Op: s.opCommit, Err: context.Cause(ctx)}
	}
	s.out = append(s.out, syncAll...)
	t := s.stream
	t.message, t.x = s.out[len(s.controls.begin):], exchange{op: s.opCommit, phase: wire.Committing, want: 'I'}
	t.handle.Send()
	s.out = append(s.out[:0], s.controls.begin...)
	err := t.err
	t.err = nil
	if err == nil {
		return nil
	}
	if class := db.ClassOf(err); class == db.Unknown || class == db.Unavailable {
		s.link = nil // until Reset
	}
	return err
}

// takes puts a session's transaction into the batch: as much as the buffers of the
// sockets surely hold. A message alone is shorter than that.
func (t *sharedConn) takes(s *session) bool {
	switch {
	case s.link == nil || s.link != t.link:
		s.stream.err = wire.Broken(s.opCommit)
	case len(t.out)+len(s.stream.message) < largeWrite:
		t.out = append(t.out, s.stream.message...)
	default:
		return false
	}
	return true
}

// exchange sends what the batch has to send and gives every transaction of it its end.
func (t *sharedConn) exchange(batch []*session) {
	defer func() { t.out = t.out[:0] }()
	last := -1
	for i, s := range batch {
		if s.stream.err == nil {
			last = i
		}
	}
	if last < 0 {
		return
	}
	at := wire.Before // nothing was sent
	cut := t.link.arm(t.context, true)
	if cut == nil {
		var n int
		if n, cut = t.link.send(t.out); n > 0 || cut == nil {
			at = wire.Committing
		}
	}
	for i, s := range batch {
		x := &s.stream.x
		if s.stream.err != nil {
			continue
		}
		x.phase = at
		if cut == nil {
			var judged *db.Error
			judged, cut = s.receive(x, i == last)
			if cut == nil && t.link.status != 'I' {
				cut = errors.New("the server has left a transaction open") // the next transaction would be part of this one
			}
			if judged != nil {
				s.stream.err = judged
				continue
			}
			if cut == nil {
				continue
			}
		}
		s.stream.err = s.interrupted(t.context, x, cut)
	}
	if cut != nil {
		t.link.close()
		t.link = nil
	}
}

// leave takes a stream from its connection, which the last one closes.
func (s *session) leave() {
	s.drop()
	s.stream.handle.Acquire()
	defer s.stream.handle.Release()
	t := s.stream.conn
	if t.streams--; t.streams == 0 {
		if t.link != nil {
			t.link.terminate()
			t.link = nil
		}
		t.end()
	}
}
