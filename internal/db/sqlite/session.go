package sqlite

import (
	"context"
	"errors"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"stroppy/internal/db"
)

// session is one connection and at most one transaction on it.
//
// In Interactive mode Begin takes the write lock and each Do runs at once. In
// Pipelined mode both wait for Flush or Commit, so that a transaction which asks
// for no result before its end holds the write lock for its statements and the
// COMMIT alone, not for whatever its client does between them.
type session struct {
	d         *Database
	c         *conn // nil: broken until Reset
	pipelined bool
	prepared  map[*db.Statement]*stmt
	timer     *time.Timer // of the wait in the queue

	open     bool // between Begin and its end
	started  bool // BEGIN has run
	writing  bool // this session has the queue's place
	readOnly bool

	queued   []call     // not run yet
	args     []db.Value // of the calls that are queued
	argTexts []byte

	results []db.Result // of the transaction, in order of Do
	done    int         // results that are available
	numbers int         // results that are promised
	values  []db.Value  // of the results' rows
	texts   []byte
}

// call is a statement that waits for Flush or Commit.
type call struct {
	statement *db.Statement
	from, to  int // its arguments in session.args
}

var (
	errBroken = errors.New("the session lost its connection: reset it")
	errIdle   = errors.New("no transaction is open: begin one")
	errOpen   = errors.New("a transaction is open: end it first")
)

const (
	opBegin  = "begin a transaction"
	opCommit = "commit"
)

func broken(op string) error { return &db.Error{Class: db.Unavailable, Op: op, Err: errBroken} }
func misuse(op string, err error) error {
	return &db.Error{Class: db.Fatal, Op: op, Err: err}
}

// Begin implements db.SQLSession.
func (s *session) Begin(ctx context.Context, readOnly bool) error {
	switch {
	case s.c == nil:
		return broken(opBegin)
	case s.open:
		s.abandon()
		return misuse(opBegin, errOpen)
	}
	s.values, s.texts = s.values[:0], s.texts[:0]
	s.done, s.numbers = 0, 0
	s.open, s.readOnly = true, readOnly
	if s.pipelined {
		return nil
	}
	return s.start(ctx)
}

// start runs BEGIN unless it has run. A writer begins IMMEDIATE, so that it has
// the write lock before it reads anything and never finds its snapshot outdated
// (SQLITE_BUSY_SNAPSHOT); a reader begins DEFERRED, which waits for nobody and
// reads one snapshot from its first read on.
func (s *session) start(ctx context.Context) error {
	s.c.ctx = ctx
	if s.started {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return s.fail(cancelled(opBegin, err))
	}
	begin := s.c.begin
	if !s.readOnly {
		if err := s.d.writers.enter(ctx, s.timer, s.d.options.busyTimeout); err != nil {
			return s.fail(err)
		}
		s.writing, begin = true, s.c.beginImmediate
	}
	if code := s.c.simple(begin); code != sqlite3.SQLITE_OK {
		return s.fail(s.c.failed(opBegin, code, beforeCommit))
	}
	s.started = true
	return nil
}

// Do implements db.SQLSession.
func (s *session) Do(ctx context.Context, statement *db.Statement, args []db.Value) (int, error) {
	switch {
	case s.c == nil:
		return 0, broken("run " + brief(statement.SQL))
	case !s.open:
		return 0, misuse("run "+brief(statement.SQL), errIdle)
	}
	number := s.numbers
	if !s.pipelined {
		if err := s.run(ctx, statement, args); err != nil {
			return 0, err
		}
		s.numbers++
		return number, nil
	}
	from := len(s.args)
	for _, a := range args {
		if len(a.Text) > 0 {
			at := len(s.argTexts)
			s.argTexts = append(s.argTexts, a.Text...)
			a.Text = s.argTexts[at:len(s.argTexts):len(s.argTexts)]
		}
		s.args = append(s.args, a)
	}
	s.queued = append(s.queued, call{statement, from, len(s.args)})
	s.numbers++
	return number, nil
}

// Flush implements db.SQLSession.
func (s *session) Flush(ctx context.Context) error {
	switch {
	case s.c == nil:
		return broken("flush")
	case !s.open:
		return misuse("flush", errIdle)
	case len(s.queued) == 0:
		return nil
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

// Result implements db.SQLSession.
func (s *session) Result(i int) *db.Result {
	if i < 0 || i >= s.done {
		return &db.Result{}
	}
	return &s.results[i]
}

// Commit implements db.SQLSession.
func (s *session) Commit(ctx context.Context) error {
	switch {
	case s.c == nil:
		return broken(opCommit)
	case !s.open:
		return misuse(opCommit, errIdle)
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
	s.c.ctx = ctx
	if code := s.c.end(); code != sqlite3.SQLITE_OK {
		return s.fail(s.c.failed(opCommit, code, atCommit))
	}
	s.finish()
	return nil
}

// Rollback implements db.SQLSession. The context does not matter: giving up
// waits for nothing.
func (s *session) Rollback(context.Context) error {
	if s.open {
		s.abandon()
	}
	return nil
}

// run executes one statement of the transaction that has started and keeps its
// result.
func (s *session) run(ctx context.Context, statement *db.Statement, args []db.Value) error {
	p, err := s.ready(ctx, statement, args)
	if err != nil {
		return s.fail(err)
	}
	if s.readOnly && !p.readOnly {
		return s.fail(db.Fatalf("run "+brief(statement.SQL), "it writes, but the transaction was begun as read-only"))
	}
	first := len(s.values)
	before := s.c.totalChanges()
	code := p.step()
	for ; code == sqlite3.SQLITE_ROW; code = p.step() {
		if err := s.keep(p, statement.Columns); err != nil {
			p.reset()
			return s.fail(db.Fatalf("read the result of "+brief(statement.SQL), "%w", err))
		}
	}
	if code != sqlite3.SQLITE_DONE {
		err := s.c.failed("run "+brief(statement.SQL), code, beforeCommit)
		p.reset()
		return s.fail(err)
	}
	p.reset()
	r := db.Result{Columns: p.columns, Values: s.values[first:len(s.values):len(s.values)]}
	switch {
	case p.readOnly:
		r.Affected = int64(r.Rows())
	case s.c.totalChanges() != before:
		r.Affected = s.c.changes()
	}
	s.results = append(s.results[:s.done], r)
	s.done++
	return nil
}

// ready prepares a statement, once in the life of the connection, and binds its
// arguments.
func (s *session) ready(ctx context.Context, statement *db.Statement, args []db.Value) (*stmt, error) {
	s.c.ctx = ctx
	if err := ctx.Err(); err != nil {
		return nil, cancelled("run "+brief(statement.SQL), err)
	}
	if len(args) != len(statement.Params) {
		return nil, db.Fatalf("run "+brief(statement.SQL), "%d arguments are given for %d parameters", len(args), len(statement.Params))
	}
	p := s.prepared[statement]
	if p == nil {
		var err error
		if p, err = s.c.prepareTyped(statement); err != nil {
			return nil, err
		}
		s.prepared[statement] = p
	}
	if code := p.bind(statement.Params, args); code != sqlite3.SQLITE_OK {
		return nil, s.c.failed("bind the arguments of "+brief(statement.SQL), code, beforeCommit)
	}
	return p, nil
}

// keep copies the row at hand to the results.
func (s *session) keep(p *stmt, columns []db.Type) error {
	for i, t := range columns {
		var v db.Value
		if err := p.column(i, t, &v); err != nil {
			return err
		}
		if len(v.Text) > 0 {
			at := len(s.texts)
			s.texts = append(s.texts, v.Text...)
			v.Text = s.texts[at:len(s.texts):len(s.texts)]
		}
		s.values = append(s.values, v)
	}
	return nil
}

// fail ends the transaction because of err and returns err. If the connection
// is no longer fit, or nobody knows what became of a COMMIT, it is dropped.
func (s *session) fail(err error) error {
	fit := s.abandon()
	var e *db.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Class == db.Unknown {
		s.drop()
	} else if !fit {
		e.Class = db.Unavailable
	}
	return err
}

// abandon rolls the transaction back, lets the next writer in and reports
// whether the connection is fit for another transaction; if not, it is dropped.
func (s *session) abandon() bool {
	fit := s.c.undo()
	s.finish()
	if !fit {
		s.drop()
	}
	return fit
}

// finish notes that no transaction is open and lets the next writer in.
func (s *session) finish() {
	s.open, s.started = false, false
	s.unqueue()
	if s.writing {
		s.writing = false
		s.d.writers.leave()
	}
}

// drop closes the connection; the session is broken until Reset.
func (s *session) drop() {
	if s.c == nil {
		return
	}
	for _, p := range s.prepared {
		p.close()
	}
	clear(s.prepared)
	s.c.close()
	s.c = nil
}

// Reset implements db.SQLSession.
func (s *session) Reset(ctx context.Context) error {
	s.end()
	c, err := s.d.connect(ctx)
	if err != nil {
		return err
	}
	s.c = c
	return nil
}

// Close implements db.SQLSession.
func (s *session) Close() error {
	s.end()
	return nil
}

func (s *session) end() {
	if s.c != nil && s.open {
		s.abandon()
	}
	s.drop()
}
