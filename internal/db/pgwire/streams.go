package pgwire

import (
	"context"
	"errors"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

var _ db.Multiplexer[db.SQLSession] = (*Database)(nil)

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
	for range n {
		s := d.session(first.(*session).options)
		s.link = t.link
		l := &stream{session: s, sharedConn: t, of: t.link, statements: map[*db.Statement]*prepared{}}
		l.handle = t.Stream(l)
		list = append(list, l)
	}
	return list, nil
}

// sharedConn is the connection that streams share. Whoever owns it may use link and streams, and
// nobody else.
type sharedConn struct {
	*wire.Multiplexer[*stream]

	// What streams send together ends with this and not with the context of one of them,
	// for an end of that would be the end of all: a stream waits for its answer, or for
	// the time-out of the connection.
	context context.Context
	end     context.CancelFunc

	streams int    // not closed
	link    *link  // nil while the connection is broken
	out     []byte // of the batch
}

// stream is one session of a sharedConn.
type stream struct {
	*session
	sharedConn *sharedConn
	handle     *wire.Stream[*stream]

	of         *link // where the statements below are prepared
	statements map[*db.Statement]*prepared
	owns       bool // the sharedConn, while a transaction is open on it

	message []byte // what is to be sent, in session.out
	x       exchange
	err     error // how the transaction ended
}

// own makes the stream the owner until its transaction ends, or refuses it because the
// connection that it knows is gone.
func (s *stream) own(op string) error {
	if s.owns {
		return nil
	}
	s.handle.Acquire()
	if s.link == nil || s.link != s.sharedConn.link {
		s.link, s.state = nil, idle
		s.handle.Release()
		return &db.Error{Class: db.Unavailable, Op: op, Err: errBroken}
	}
	s.owns = true
	return nil
}

// ended hands the sharedConn on when the owner's transaction is over, with the connection
// if the transaction has left one.
func (s *stream) ended() {
	if s.owns && s.state == idle {
		s.owns = false
		if s.link == nil {
			s.sharedConn.link = nil
		}
		s.handle.Release()
	}
}

func (s *stream) Do(ctx context.Context, statement *db.Statement, args []db.Value) (int, error) {
	if s.state != idle && s.link != nil && len(args) == len(statement.Params) {
		p, err := s.preparedOf(ctx, statement)
		if err != nil {
			return 0, err
		}
		s.out = p.append(s.out, args)
		s.pending, s.results = append(s.pending, p), append(s.results, db.Result{})
		return len(s.pending) - 1, nil
	}
	n, err := s.session.Do(ctx, statement, args) // which says what is wrong
	s.ended()
	return n, err
}

// preparedOf returns a statement of the stream's connection. The connection's own list
// is for the owner alone.
func (s *stream) preparedOf(ctx context.Context, statement *db.Statement) (*prepared, error) {
	if s.of != s.link {
		s.of = s.link
		clear(s.statements)
	}
	if p := s.statements[statement]; p != nil {
		return p, nil
	}
	if err := s.own(s.opExecute); err != nil {
		return nil, err
	}
	p := s.session.statements[statement]
	if p == nil {
		var err *db.Error
		if p, err = s.prepare(ctx, statement); err != nil {
			e := s.fail(ctx, err)
			s.ended()
			return nil, e
		}
	}
	s.statements[statement] = p
	if s.state == queued { // the server knows nothing of it yet
		s.owns = false
		s.handle.Release()
	}
	return p, nil
}

func (s *stream) Flush(ctx context.Context) error {
	if s.state == queued && s.ready < len(s.pending) {
		if err := s.own(s.opExecute); err != nil {
			return err
		}
	}
	err := s.session.Flush(ctx)
	s.ended()
	return err
}

func (s *stream) Commit(ctx context.Context) error {
	if s.state != queued || len(s.pending) == 0 {
		err := s.session.Commit(ctx)
		s.ended()
		return err
	}
	if !s.implicit || len(s.out) >= largeWrite/2 {
		if err := s.own(s.opExecute); err != nil {
			return err
		}
		err := s.session.Commit(ctx)
		s.ended()
		return err
	}
	if ctx.Err() != nil {
		s.state = idle
		return &db.Error{Class: db.Aborted, Op: s.opCommit, Err: context.Cause(ctx)}
	}
	s.out = append(s.out, syncAll...)
	s.message, s.x = s.out[len(s.controls.begin):], exchange{op: s.opCommit, phase: committing, want: 'I'}
	s.handle.Send()
	return s.end()
}

// end returns how the transaction ended.
func (s *stream) end() error {
	s.state = idle
	s.out = append(s.out[:0], s.controls.begin...)
	err := s.err
	s.err = nil
	if err == nil {
		return nil
	}
	if class := db.ClassOf(err); class == db.Unknown || class == db.Unavailable {
		s.link = nil // until Reset
	}
	return err
}

// takes puts a stream into the batch: as much as the buffers of the sockets surely hold. A
// message alone is shorter than that.
func (t *sharedConn) takes(l *stream) bool {
	switch {
	case l.link == nil || l.link != t.link:
		l.err = lost(l.opCommit, errBroken, before)
	case len(t.out)+len(l.message) < largeWrite:
		t.out = append(t.out, l.message...)
	default:
		return false
	}
	return true
}

// exchange sends what the batch has to send and gives every transaction of it its end.
func (t *sharedConn) exchange(batch []*stream) {
	defer func() { t.out = t.out[:0] }()
	last := -1
	for i, other := range batch {
		if other.err == nil {
			last = i
		}
	}
	if last < 0 {
		return
	}
	at := before // nothing was sent
	cut := t.link.arm(t.context, true)
	if cut == nil {
		var n int
		if n, cut = t.link.send(t.out); n > 0 || cut == nil {
			at = committing
		}
	}
	for i, other := range batch {
		if other.err != nil {
			continue
		}
		other.x.phase = at
		if cut == nil {
			var judged *db.Error
			judged, cut = other.receive(&other.x, i == last)
			if cut == nil && t.link.status != 'I' {
				cut = errOpen // the next transaction would be part of this one
			}
			if judged != nil {
				other.err = judged
				continue
			}
			if cut == nil {
				continue
			}
		}
		other.err = other.interrupted(t.context, &other.x, cut)
	}
	if cut != nil {
		t.link.close()
		t.link = nil
	}
}

// errOpen is why a connection is given up that has been left in a transaction.
var errOpen = errors.New("the server has left a transaction open")

func (s *stream) Rollback(ctx context.Context) error {
	err := s.session.Rollback(ctx)
	s.ended()
	return err
}

// Query implements db.SQLSession. It has the connection to itself.
func (s *stream) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	if err := s.own(s.opQuery); err != nil {
		return err
	}
	err := s.session.Query(ctx, statement, args, row)
	s.ended()
	return err
}

// Reset implements db.SQLSession: the first stream that comes opens the connection, and
// the others find it.
func (s *stream) Reset(ctx context.Context) error {
	if s.owns {
		s.drop()
		s.ended()
	}
	s.handle.Acquire()
	defer s.handle.Release()
	s.state = idle
	t := s.sharedConn
	if t.link == nil {
		made, err := s.database.connect(ctx, s.options.Isolation)
		if err != nil {
			return err
		}
		t.link = made
	}
	s.link = t.link
	return nil
}

// Close implements db.SQLSession: the last stream closes the connection.
func (s *stream) Close() error {
	if s.owns {
		s.drop()
		s.ended()
	}
	s.handle.Acquire()
	defer s.handle.Release()
	t := s.sharedConn
	if t.streams--; t.streams == 0 {
		if t.link != nil {
			t.link.terminate()
			t.link = nil
		}
		t.end()
	}
	s.link, s.state = nil, idle
	return nil
}
