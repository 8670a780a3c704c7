package pgwire

import (
	"context"
	"errors"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// Streams implements db.Multiplexer[db.SQLSession]. Transactions that need no result before their end are sent
// together, each with its own Sync. The first stream that finds the connection free sends them and reads all answers.
// So one system call carries several of them, and the server runs them in sequence. A transaction that needs an
// earlier result owns the connection until its end.
//
// Mode must be Pipelined, because a session that waits for each statement has nothing to share.
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

// sharedConn is a connection that streams share. Only its current owner may use link and streams.
type sharedConn struct {
	*wire.Multiplexer[*session]

	// The exchange of several streams ends with this context and not with one stream's, because that would end all. A
	// stream waits for its answer or for the connection's time-out.
	context context.Context
	end     context.CancelFunc

	streams int    // not closed
	link    *link  // nil while the connection is broken
	out     []byte // of the batch
}

// stream is a session's part of a shared connection.
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

// owns reports whether no other session uses the session's connection now.
func (s *session) owns() bool { return s.stream == nil || s.stream.owned }

// acquire makes the session the owner of its connection until release. It fails if the connection that the session
// knows is gone.
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

// release passes on a shared connection, unless the server has an open transaction of the session.
func (s *session) release() {
	if t := s.stream; t != nil && t.owned && s.state != wire.Open {
		t.owned = false
		if s.link == nil {
			t.conn.link = nil
		}
		t.handle.Release()
	}
}

// preparedFor returns a statement that is prepared on the session's connection. Each stream has its own list, because
// only the owner may use the connection's.
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

// commitTogether commits a transaction that was not sent yet, in one exchange with other streams' transactions.
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

// takes adds a session's transaction to the batch, as long as the socket buffers certainly hold it. A single message
// is always shorter.
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

// exchange sends the batch and sets the result of each of its transactions.
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

// leave removes a stream from its connection. The last one closes it.
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
