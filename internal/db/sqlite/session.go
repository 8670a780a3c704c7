package sqlite

import (
	"context"
	"errors"
	"time"

	"stroppy/internal/db"
)

// Conn is one connection as a session uses it. Its errors are *db.Error.
type Conn interface {
	// Begin begins a transaction. If it may write, it holds the write lock from then on.
	Begin(ctx context.Context, readOnly bool) error

	// Reads reports whether a statement changes nothing.
	Reads(ctx context.Context, statement *db.Statement) (bool, error)

	// Run runs a statement to its end. Rows are valid during the call of row. An error of row ends the
	// statement and is returned unchanged.
	Run(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) (affected int64, err error)

	// Names returns the names of the columns of the Free statement that Run has run last.
	Names() []string

	Commit(ctx context.Context) error

	// Undo rolls back any open transaction, even if the context of the last call has ended. It reports
	// whether the connection can be used for another transaction.
	Undo() bool

	Close() error
}

// Sessions opens the sessions of one database, of which one writes at a time. Package dqlite uses it too.
type Sessions struct {
	db.Isolations
	connect    func(context.Context) (Conn, error)
	writers    queue
	queueLimit time.Duration // the longest wait in the queue of writers
}

// NewSessions returns the sessions of a database. connect opens a connection.
func NewSessions(isolations db.Isolations, connect func(context.Context) (Conn, error), queueLimit time.Duration) *Sessions {
	return &Sessions{isolations, connect, make(queue, 1), queueLimit}
}

// Limits implements db.Database. A value may have 1,000,000,000 bytes, more than any workload writes
// (https://www.sqlite.org/limits.html).
func (a *Sessions) Limits() db.Limits { return db.Limits{} }

func (a *Sessions) Session(ctx context.Context, options db.SessionOptions) (db.SQLSession, error) {
	if _, err := a.Claim(options.Isolation); err != nil {
		return nil, err
	}
	mode := options.Mode
	if mode != db.Pipelined && mode != db.Interactive {
		return nil, db.Fatalf("open a session", "no mode has the number %d", mode)
	}
	c, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{of: a, c: c, pipelined: mode == db.Pipelined, timer: stoppedTimer()}
	s.keep = func(row []db.Value) error {
		for _, v := range row {
			s.values = append(s.values, copied(v, &s.texts))
		}
		return nil
	}
	return s, nil
}

// transact runs work in a write transaction on a new session and connection.
func (a *Sessions) transact(ctx context.Context, work func(s db.SQLSession, c Conn) error) error {
	s, err := a.Session(ctx, db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	if err := work(s, s.(*session).c); err != nil {
		return err
	}
	return s.Commit(ctx)
}

// Exec runs a statement without parameters in its own transaction.
func (a *Sessions) Exec(ctx context.Context, statement string) error {
	return a.transact(ctx, func(s db.SQLSession, _ Conn) error { return execute(ctx, s, []string{statement}) })
}

func execute(ctx context.Context, s db.SQLSession, statements []string) error {
	for _, text := range statements {
		if _, err := s.Do(ctx, &db.Statement{SQL: text}, nil); err != nil {
			return err
		}
	}
	return nil
}

// session is one connection with at most one transaction.
//
// In Interactive mode, Begin takes the write lock and each Do runs immediately. In Pipelined mode, both wait
// for Flush or Commit. So a transaction without early results holds the write lock only during its statements
// and the COMMIT, not during its client's work.
type session struct {
	of        *Sessions
	c         Conn // nil: broken until Reset
	pipelined bool
	timer     *time.Timer // of the wait in the queue

	open     bool // between Begin and its end
	started  bool // the connection has begun
	writing  bool // this session has the queue's place
	readOnly bool

	queued   []call     // not run yet
	args     []db.Value // of the calls that are queued
	argTexts []byte

	results []db.Result // of the transaction, in order of Do
	done    int         // results that are available
	values  []db.Value  // of the results' rows
	texts   []byte
	keep    func(row []db.Value) error // adds a row to values
}

// call is a statement that waits for Flush or Commit.
type call struct {
	statement *db.Statement
	from, to  int // its arguments in session.args
}

const (
	opBegin  = "begin a transaction"
	opCommit = "commit"
)

// usable refuses a call that needs an open transaction, or none, in the wrong state. statement may be empty.
func (s *session) usable(op, statement string, open bool) error {
	if s.c != nil && s.open == open {
		return nil
	}
	op += db.Shorten(statement)
	switch {
	case s.c == nil:
		return &db.Error{Class: db.Unavailable, Op: op, Err: errors.New("the session lost its connection: reset it")}
	case s.open:
		s.abandon()
		return db.Fatalf(op, "a transaction is open: end it first")
	}
	return db.Fatalf(op, "no transaction is open: begin one")
}

func (s *session) Begin(ctx context.Context, readOnly bool) error {
	if err := s.usable(opBegin, "", false); err != nil {
		return err
	}
	s.values, s.texts, s.done = s.values[:0], s.texts[:0], 0
	s.open, s.readOnly = true, readOnly
	if s.pipelined {
		return nil
	}
	return s.start(ctx)
}

// start begins the transaction on the connection, unless it has begun.
func (s *session) start(ctx context.Context) error {
	if s.started {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return s.fail(cancelled(opBegin, err))
	}
	if !s.readOnly {
		if err := s.of.writers.enter(ctx, s.timer, s.of.queueLimit); err != nil {
			return s.fail(err)
		}
		s.writing = true
	}
	if err := s.c.Begin(ctx, s.readOnly); err != nil {
		return s.fail(err)
	}
	s.started = true
	return nil
}

func (s *session) Do(ctx context.Context, statement *db.Statement, args []db.Value) (int, error) {
	if err := s.usable("run ", statement.SQL, true); err != nil {
		return 0, err
	}
	number := s.done + len(s.queued)
	if !s.pipelined {
		return number, s.run(ctx, statement, args)
	}
	from := len(s.args)
	for _, a := range args {
		s.args = append(s.args, copied(a, &s.argTexts))
	}
	s.queued = append(s.queued, call{statement, from, len(s.args)})
	return number, nil
}

// copied returns a value whose text, if any, is stored in texts.
func copied(v db.Value, texts *[]byte) db.Value {
	if len(v.Text) > 0 {
		at := len(*texts)
		*texts = append(*texts, v.Text...)
		v.Text = (*texts)[at:len(*texts):len(*texts)]
	}
	return v
}

func (s *session) Flush(ctx context.Context) error {
	if err := s.usable("flush", "", true); err != nil || len(s.queued) == 0 {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	for _, q := range s.queued {
		if err := s.run(ctx, q.statement, s.args[q.from:q.to]); err != nil {
			return err
		}
	}
	s.unqueue()
	return nil
}

func (s *session) unqueue() {
	s.queued, s.args, s.argTexts = s.queued[:0], s.args[:0], s.argTexts[:0]
}

func (s *session) Result(i int) *db.Result {
	if i < 0 || i >= s.done {
		return &db.Result{}
	}
	return &s.results[i]
}

func (s *session) Commit(ctx context.Context) error {
	if err := s.usable(opCommit, "", true); err != nil {
		return err
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	if !s.started {
		s.finish()
		return nil
	}
	if err := ctx.Err(); err != nil {
		return s.fail(cancelled(opCommit, err))
	}
	if err := s.c.Commit(ctx); err != nil {
		return s.fail(err)
	}
	s.finish()
	return nil
}

// Rollback implements db.SQLSession. The context is not used, because a rollback does not wait.
func (s *session) Rollback(context.Context) error {
	if s.open {
		s.abandon()
	}
	return nil
}

// run runs one statement of a started transaction and keeps its result.
func (s *session) run(ctx context.Context, statement *db.Statement, args []db.Value) error {
	if s.readOnly {
		reads, err := s.c.Reads(ctx, statement)
		if err == nil && !reads {
			err = db.Fatalf("run "+db.Shorten(statement.SQL), "it writes, but the transaction was begun as read-only")
		}
		if err != nil {
			return s.fail(err)
		}
	}
	first := len(s.values)
	affected, err := s.c.Run(ctx, statement, args, s.keep)
	if err != nil {
		return s.fail(err)
	}
	r := db.Result{Affected: affected, Columns: len(statement.Columns), Values: s.values[first:len(s.values):len(s.values)]}
	if statement.Free {
		r.Names = s.c.Names()
		r.Columns = len(r.Names)
	}
	s.results = append(s.results[:s.done], r)
	s.done++
	return nil
}

// Query implements db.SQLSession. A statement that reads is its own read transaction: it holds one snapshot
// while it yields rows, and writers continue. A statement that writes, such as INSERT … RETURNING, is a write
// transaction; if it fails, row may have received rows that were rolled back.
func (s *session) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	if err := s.usable("run ", statement.SQL, false); err != nil {
		return err
	}
	reads, err := s.c.Reads(ctx, statement)
	if err != nil {
		return s.fail(err)
	}
	if !reads {
		s.open, s.readOnly = true, false
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	var stopped error // the error of row, which is not an error of this session
	_, err = s.c.Run(ctx, statement, args, func(r []db.Value) error {
		stopped = row(r)
		return stopped
	})
	switch {
	case stopped != nil:
		s.abandon()
		return stopped
	case err != nil:
		return s.fail(err)
	case reads:
		return nil
	}
	return s.Commit(ctx)
}

// fail ends the transaction because of err and returns err. If the connection is unusable, or the outcome of
// a COMMIT is unknown, the connection is closed.
func (s *session) fail(err error) error {
	fit := s.abandon()
	if e, ok := errors.AsType[*db.Error](err); ok && e.Class == db.Unknown {
		s.drop()
	} else if ok && !fit {
		e.Class = db.Unavailable
	}
	return err
}

// abandon rolls the transaction back and admits the next writer. It reports whether the connection can be
// used again; if not, the connection is closed.
func (s *session) abandon() bool {
	fit := s.c.Undo()
	s.finish()
	if !fit {
		s.drop()
	}
	return fit
}

// finish records that no transaction is open and admits the next writer.
func (s *session) finish() {
	s.open, s.started = false, false
	s.unqueue()
	if s.writing {
		s.writing = false
		s.of.writers.leave()
	}
}

// drop closes the connection. The session is broken until Reset.
func (s *session) drop() {
	if s.c != nil {
		_ = s.c.Close() // of a connection that is given up
		s.c = nil
	}
}

func (s *session) Reset(ctx context.Context) error {
	_ = s.Close()
	c, err := s.of.connect(ctx)
	if err == nil {
		s.c = c
	}
	return err
}

func (s *session) Close() error {
	if s.c != nil && s.open {
		s.abandon()
	}
	s.drop()
	return nil
}

// queue is the queue of this process's writers for SQLite's only write lock, in order of arrival. A channel of
// capacity 1 is such a queue: Go passes a free place to the sender that has waited longest.
//
// SQLite has no queue: its busy handler sleeps and retries, so the order is random. It is still used for other
// processes. With 16 sessions and synchronous=full, the slowest of 4,000 transfers took 26–41 ms with the queue and
// 1,450–1,550 ms with the handler. The rates were 3,100–4,100 and 2,500–2,600 transfers per second.
type queue chan struct{}

// errQueue is the error of waiting in the queue for longer than busy_timeout. SQLite answers the same if a lock is
// not granted in time.
var errQueue = errors.New("database is locked: the write lock was not free within busy_timeout")

// enter waits for the write lock until timeout or the end of ctx. The caller provides a stopped timer. The error's
// class is Aborted.
func (q queue) enter(ctx context.Context, timer *time.Timer, timeout time.Duration) error {
	select {
	case q <- struct{}{}:
		return nil
	default:
	}
	const op = "wait for the write lock"
	timer.Reset(timeout)
	defer timer.Stop()
	select {
	case q <- struct{}{}:
		return nil
	case <-ctx.Done():
		return cancelled(op, ctx.Err())
	case <-timer.C:
		return &db.Error{Class: db.Aborted, Code: "SQLITE_BUSY", Op: op, Err: errQueue}
	}
}

// leave passes the write lock to the next writer.
func (q queue) leave() { <-q }

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
