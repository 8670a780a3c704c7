package pgwire

import (
	"context"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// operations names the operations of a session in errors.
type operations struct{ opConnect, opBegin, opExecute, opCommit, opRollback, opQuery string }

// operationsOn returns the operations for a product.
func operationsOn(product string) *operations {
	return &operations{
		opConnect: "open a session on " + product, opBegin: "begin a transaction on " + product,
		opExecute: "execute a statement on " + product, opCommit: "commit on " + product,
		opRollback: "roll back on " + product, opQuery: "query " + product,
	}
}

// session is a connection, or one of several streams on a shared connection, with at most one transaction.
type session struct {
	database *Database
	*operations
	options db.SessionOptions

	controls *controls
	implicit bool // what is committed in one round trip needs no BEGIN

	*link               // nil while the session is broken
	stream   *stream    // nil where the connection is the session's own
	state    wire.State // of the transaction
	readOnly bool       // of the transaction

	out     []byte      // messages to be sent, after a place for BEGIN
	pending []*prepared // the statement of each result
	ready   int         // results that are available
	results []db.Result // as many as pending
	values  []db.Value  // behind the results
	text    []byte      // behind the values
}

// link is the state that a session loses with its connection.
type link struct {
	*connection
	statements map[*db.Statement]*prepared
	named      int  // statements that were given a name
	status     byte // of the last ReadyForQuery: I idle, T in a transaction, E in a failed one
}

func (d *Database) Session(ctx context.Context, options db.SessionOptions) (db.SQLSession, error) {
	if options.Isolation != "" {
		own, err := d.flavor.Isolations.Name(options.Isolation)
		if err != nil {
			return nil, err
		}
		options.Isolation = own
	}
	if options.Mode != db.Pipelined && options.Mode != db.Interactive {
		return nil, db.Fatalf(d.opConnect, "it has no mode %d", options.Mode)
	}
	s := d.session(options)
	if err := s.Reset(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// session returns a session without a connection.
func (d *Database) session(options db.SessionOptions) *session {
	s := &session{database: d, operations: d.operations, options: options, controls: &preparedControls, implicit: d.implicit}
	if whole := d.stateless; whole != nil {
		made, ok := whole.controls.Load(options.Isolation)
		if !ok {
			made, _ = whole.controls.LoadOrStore(options.Isolation, wholeControls(options.Isolation))
		}
		s.controls = made.(*controls)
	}
	if d.stateless != nil || d.pooled { // so that BEGIN names the isolation
		s.implicit = d.implicit && options.Isolation == ""
	}
	return s
}

// Reset closes the connection and opens a new one. For streams, the first caller opens it, and the others use it.
func (s *session) Reset(ctx context.Context) error {
	s.drop()
	to := &s.link
	if s.stream != nil {
		s.stream.handle.Acquire()
		defer s.stream.handle.Release()
		to = &s.stream.conn.link
	}
	if *to == nil {
		made, err := s.database.connect(ctx, s.options)
		if err != nil {
			return err
		}
		*to = made
	}
	s.link = *to
	db.Connected(ctx, s.Conn.RemoteAddr())
	return nil
}

// Blocks implements db.Blocker.
func (s *session) Blocks() bool { return s.link != nil && wire.Blocks(s.Conn) }

// Close ends the session. The last stream closes the connection.
func (s *session) Close() error {
	switch {
	case s.stream != nil:
		s.leave()
	case s.link != nil:
		s.terminate()
	}
	s.link, s.state = nil, wire.Idle
	return nil
}

// drop gives up the transaction and, if the session owns it, the connection.
func (s *session) drop() {
	if s.link != nil && s.owns() {
		s.close()
		s.link = nil
	}
	s.state = wire.Idle
	s.release()
}

func (s *session) Begin(ctx context.Context, readOnly bool) error {
	if s.link == nil || s.state != wire.Idle {
		return s.misuse(s.opBegin)
	}
	s.pending, s.results = s.pending[:0], s.results[:0]
	s.values, s.text = s.values[:0], s.text[:0]
	s.ready = 0
	s.out = append(s.out[:0], s.controls.begin...)
	s.state, s.readOnly = wire.Queued, readOnly
	return nil
}

func (s *session) Do(ctx context.Context, statement *db.Statement, args []db.Value) (int, error) {
	switch {
	case s.state == wire.Idle:
		return 0, s.misuse(s.opExecute)
	case len(args) != len(statement.Params):
		return 0, s.fail(ctx, db.Fatalf(s.opExecute, "%s has %d parameters, not %d", db.Shorten(statement.SQL), len(statement.Params), len(args)))
	}
	p, err := s.preparedFor(ctx, statement)
	s.release()
	if err != nil {
		return 0, err
	}
	s.out = p.append(s.out, args)
	i := len(s.pending)
	s.pending = append(s.pending, p)
	s.results = append(s.results, db.Result{})
	if s.options.Mode == db.Interactive {
		return i, s.run(ctx, exchange{op: s.opExecute, phase: wire.Before, begin: s.state == wire.Queued})
	}
	return i, nil
}

func (s *session) misuse(op string) error { return wire.Misuse(op, s.link == nil, s.state) }

func (s *session) Flush(ctx context.Context) error {
	switch {
	case s.state == wire.Idle:
		return s.misuse(s.opExecute)
	case s.ready == len(s.pending):
		return nil
	}
	if err := s.acquire(s.opExecute); err != nil {
		return err
	}
	return s.run(ctx, exchange{op: s.opExecute, phase: wire.Before, begin: s.state == wire.Queued})
}

func (s *session) Result(i int) *db.Result { return &s.results[i] }

func (s *session) Commit(ctx context.Context) error {
	switch {
	case s.state == wire.Idle:
		return s.misuse(s.opCommit)
	case s.state == wire.Open:
		return s.run(ctx, exchange{op: s.opCommit, phase: wire.Committing, end: true})
	case len(s.pending) == 0:
		s.state = wire.Idle
		return nil
	}
	if s.stream != nil && s.implicit && len(s.out) < largeWrite/2 {
		return s.commitTogether(ctx)
	}
	if err := s.acquire(s.opCommit); err != nil {
		return err
	}
	explicit := !s.implicit
	return s.run(ctx, exchange{op: s.opCommit, phase: wire.Committing, begin: explicit, end: explicit})
}

func (s *session) Rollback(ctx context.Context) error {
	if s.state != wire.Open {
		s.state = wire.Idle
		return nil
	}
	s.state = wire.Idle
	err := s.undo(ctx)
	if err == nil {
		s.release()
		return nil
	}
	s.drop()
	return err
}

func (s *session) undo(ctx context.Context) *db.Error {
	s.pending = s.pending[:s.ready]
	start := len(s.controls.begin)
	s.out = append(append(s.out[:start], s.controls.rollback...), syncAll...)
	x := exchange{op: s.opRollback, phase: wire.Before, control: 1, want: 'I'}
	err := s.roundTrip(ctx, &x, s.out[start:])
	s.out = append(s.out[:0], s.controls.begin...)
	return err
}

// fail ends the transaction after an error: it is rolled back, or the connection is closed.
func (s *session) fail(ctx context.Context, err *db.Error) error {
	s.state = wire.Idle
	switch {
	case !s.owns(): // no part of the transaction has reached the server
	case err.Class == db.Unknown || err.Class == db.Unavailable:
		s.drop()
	case s.link != nil && s.status != 'I':
		if s.undo(ctx) != nil {
			s.drop() // the transaction is over; Begin reports the broken session
		}
	}
	s.release()
	return err
}

// run sends everything queued, with BEGIN before and COMMIT after it as x specifies, and reads the answers.
func (s *session) run(ctx context.Context, x exchange) error {
	start := len(s.controls.begin)
	x.want = 'T'
	if x.begin {
		start = 0
		if s.readOnly {
			copy(s.out, s.controls.beginReader)
		}
		x.control++
	}
	if x.end {
		s.out = append(s.out, s.controls.commit...)
		x.control++
	}
	if x.phase == wire.Committing {
		x.want = 'I'
	}
	s.out = append(s.out, syncAll...)
	err := s.roundTrip(ctx, &x, s.out[start:])
	s.out = append(s.out[:0], s.controls.begin...)
	if err != nil {
		return s.fail(ctx, err)
	}
	s.state = wire.Open
	if x.phase == wire.Committing {
		s.state = wire.Idle
		s.release()
	}
	return nil
}
