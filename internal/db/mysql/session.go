package mysql

import (
	"context"
	"database/sql/driver"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// largeBatch is the length of queued statements from which they are sent without a request. It is far below any
// max_allowed_packet.
const largeBatch = 1 << 20

// session is one connection with at most one transaction.
type session struct {
	database *Database
	options  db.SessionOptions
	host     int // where its connections begin, with spread

	*link               // nil while the session is broken
	state    wire.State // of the transaction
	readOnly bool       // of the transaction

	queue
	text      []byte      // of the packet that is sent
	pending   []*prepared // the statement of each result
	ready     int         // results that are available
	results   []db.Result // as many as pending
	rowBuffer             // behind the results
}

func (d *Database) Session(ctx context.Context, options db.SessionOptions) (db.SQLSession, error) {
	name := options.Isolation
	if name == "" {
		name = d.isolation
	}
	own, err := Isolations.Name(name)
	if err != nil {
		return nil, err
	}
	options.Isolation = own
	if options.Mode != db.Pipelined && options.Mode != db.Interactive {
		return nil, db.Fatalf("open a session", "it has no mode %d", options.Mode)
	}
	if d.server.replicates() {
		options.Mode = db.Interactive // see the package's description
	}
	s := &session{database: d, options: options}
	if d.address.spread {
		s.host = d.first()
	}
	if err := s.Reset(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *session) Reset(ctx context.Context) error {
	s.drop()
	host := s.host
	if !s.database.address.spread {
		host = s.database.first()
	}
	l, err := s.database.connect(ctx, s.op("open a session"), s.options.Isolation, host)
	if err != nil {
		return err
	}
	s.link = l
	s.database.worked(l.host)
	db.Connected(ctx, l.socket.RemoteAddr())
	return nil
}

func (s *session) Close() error {
	if s.link != nil {
		if s.state == wire.Open {
			s.link.drop() // which rolls back
		} else {
			s.end()
		}
		s.link = nil
	}
	s.state = wire.Idle
	return nil
}

// drop gives up the connection and its transaction.
func (s *session) drop() {
	if s.link != nil {
		s.link.drop()
		s.link = nil
	}
	s.state = wire.Idle
}

func (s *session) op(what string) string { return s.database.op(what) }

func (s *session) Begin(ctx context.Context, readOnly bool) error {
	const what = "begin a transaction"
	if s.link == nil || s.state != wire.Idle {
		return s.misuse(what)
	}
	if err := s.wake(ctx, what, true); err != nil {
		return err
	}
	s.pending, s.results = s.pending[:0], s.results[:0]
	s.values, s.bytes = s.values[:0], s.bytes[:0]
	s.clear()
	s.ready = 0
	s.state, s.readOnly = wire.Queued, readOnly
	if s.options.Mode == db.Interactive {
		return s.say(ctx, what, s.beginning(), wire.Before)
	}
	return nil
}

// wake prepares the connection for the next operation. The server may have ended an idle connection.
func (s *session) wake(ctx context.Context, what string, bounded bool) error {
	err := s.arm(ctx, bounded)
	now := time.Now()
	if err == nil && now.Sub(s.used) > wire.RestTime && s.conn.(driver.SessionResetter).ResetSession(never) != nil {
		err = wire.ErrEnded
	}
	if err != nil {
		return s.fail(ctx, wire.Lost(s.op(what), err, wire.Before))
	}
	s.used = now
	return nil
}

// beginning returns the statement that begins the transaction. If the isolation has a snapshot and one is requested,
// it is taken immediately.
func (s *session) beginning() string {
	switch {
	case !s.readOnly:
		return "START TRANSACTION READ WRITE"
	case s.options.Isolation == repeatableRead:
		return "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
	}
	return "START TRANSACTION READ ONLY"
}

// say sends an internal statement without results.
func (s *session) say(ctx context.Context, what, text string, at wire.Phase) error {
	if err := s.arm(ctx, true); err != nil {
		return s.fail(ctx, wire.Lost(s.op(what), err, wire.Before))
	}
	sent := s.out
	s.state = wire.Open
	if _, err := s.exec(text); err != nil {
		return s.fail(ctx, s.failure(ctx, s.op(what), err, at, sent))
	}
	if at == wire.Committing {
		s.state = wire.Idle
	}
	return nil
}

func (s *session) Do(ctx context.Context, statement *db.Statement, args []db.Value) (int, error) {
	switch {
	case s.state == wire.Idle:
		return 0, s.misuse("execute a statement")
	case len(args) != len(statement.Params):
		return 0, s.fail(ctx, db.Fatalf(s.op("execute "+db.Shorten(statement.SQL)), "it has %d parameters, not %d", len(statement.Params), len(args)))
	}
	p, err := s.known(statement)
	if err != nil {
		return 0, s.fail(ctx, err)
	}
	if !s.fits(p) {
		if err := s.Flush(ctx); err != nil {
			return 0, err
		}
	}
	i := len(s.pending)
	s.pending = append(s.pending, p)
	s.results = append(s.results, db.Result{})
	if s.options.Mode == db.Interactive {
		if err := s.execute(ctx, p, args); err != nil {
			return 0, s.fail(ctx, err)
		}
		return i, nil
	}
	s.add(p, args)
	if len(s.texts) > largeBatch {
		return i, s.Flush(ctx)
	}
	return i, nil
}

// known returns the session's form of a statement.
func (s *session) known(statement *db.Statement) (*prepared, *db.Error) {
	p := s.prepared[statement]
	if p == nil {
		var err error
		if p, err = newPrepared(statement); err != nil {
			return nil, db.Fatalf(s.op("prepare "+db.Shorten(statement.SQL)), "%w", err)
		}
		s.prepared[statement] = p
	}
	return p, nil
}

func (s *session) misuse(what string) error {
	return wire.Misuse(s.op(what), s.link == nil, s.state)
}

func (s *session) Flush(ctx context.Context) error {
	switch {
	case s.state == wire.Idle:
		return s.misuse("execute a statement")
	case s.ready == len(s.pending):
		return nil
	}
	if err := s.send(ctx, "execute a statement", wire.Before); err != nil {
		return s.fail(ctx, err)
	}
	return nil
}

func (s *session) Result(i int) *db.Result { return &s.results[i] }

func (s *session) Commit(ctx context.Context) error {
	const what = "commit"
	switch {
	case s.state == wire.Idle:
		return s.misuse(what)
	case s.state == wire.Queued && len(s.pending) == 0:
		s.state = wire.Idle
		return nil
	case s.ready == len(s.pending):
		return s.say(ctx, what, "COMMIT", wire.Committing)
	}
	if err := s.send(ctx, what, wire.Committing); err != nil {
		return s.fail(ctx, err)
	}
	s.state = wire.Idle
	return nil
}

func (s *session) Rollback(ctx context.Context) error {
	if s.state != wire.Open {
		s.state = wire.Idle
		return nil
	}
	if err := s.undo(ctx); err != nil {
		s.drop()
		return err
	}
	return nil
}

func (s *session) undo(ctx context.Context) *db.Error {
	s.state = wire.Idle
	if err := s.arm(ctx, true); err != nil {
		return wire.Lost(s.op("roll back"), err, wire.Before)
	}
	if _, err := s.exec("ROLLBACK"); err != nil {
		return s.failure(ctx, s.op("roll back"), err, wire.Before, s.out)
	}
	return nil
}

// fail ends the transaction after an error: it is rolled back, or the connection is closed, which rolls back too.
// Otherwise the next beginning would commit the earlier statements
// (https://dev.mysql.com/doc/refman/8.4/en/implicit-commit.html).
func (s *session) fail(ctx context.Context, err *db.Error) error {
	switch {
	case err.Class == db.Unknown || err.Class == db.Unavailable:
		s.drop()
	case s.state == wire.Open && s.undo(ctx) != nil:
		s.drop() // the transaction is over; Begin reports the broken session
	}
	s.state = wire.Idle
	return err
}
