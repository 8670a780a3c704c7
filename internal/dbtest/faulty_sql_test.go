package dbtest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"stroppy/internal/db"
)

// sqlDatabase wraps a SQL database whose sessions are faulty.
type sqlDatabase struct {
	db.SQL
	in    *Injector
	past  past
	fork  fork
	dirty dirty
	crash atomic.Int64 // number of commits that the crash still loses
}

// Close also closes the wrapped database.
func (d *sqlDatabase) Close() error {
	d.past.close()
	d.fork.close()
	return d.SQL.Close()
}

// bulkDatabase is a sqlDatabase with a bulk load.
type bulkDatabase struct {
	*sqlDatabase
	bulk db.BulkLoader
}

// BulkLoad implements db.BulkLoader.
func (d bulkDatabase) BulkLoad(ctx context.Context, load db.BulkLoad) (rows int64, err error) {
	l := d.in.line(func(context.Context) {})
	err = l.do(ctx, Load, func() error {
		var err error
		rows, err = d.bulk.BulkLoad(ctx, load)
		return err
	})
	return rows, err
}

// Session implements db.SQL.
func (d *sqlDatabase) Session(ctx context.Context, options db.SessionOptions) (db.SQLSession, error) {
	inner, err := d.SQL.Session(ctx, options)
	if err != nil {
		return nil, err
	}
	s := &sqlSession{SQLSession: inner, d: d, options: options}
	s.line = d.in.line(func(ctx context.Context) { _ = s.SQLSession.Rollback(ctx) })
	return s, nil
}

// call is a statement of a transaction with its arguments.
type call struct {
	statement *db.Statement
	args      []db.Value
	result    int
}

func (c call) reads() bool   { return strings.HasPrefix(c.statement.SQL, "SELECT") }
func (c call) updates() bool { return strings.HasPrefix(c.statement.SQL, "UPDATE") }
func (c call) inserts() bool { return strings.HasPrefix(c.statement.SQL, "INSERT") }

// sqlSession remembers the statements of its transaction, so that it can send others in their place.
type sqlSession struct {
	db.SQLSession // the wrapped session
	line
	d        *sqlDatabase
	options  db.SessionOptions
	readOnly bool
	calls    []call
	asked    int // number of calls whose results the client has
	spare    db.SQLSession

	denied    []call // a transaction of unknown outcome that is applied after its look-up
	tombstone []call // statements of the look-up

	late  []call
	early bool // set if the late transaction arrives before the look-up

	falsified map[int]*db.Result // results in place of the true results
	stale     *call              // the read for which a writer got an old result
	staleAs   Fault
	refused   int64 // the first argument of the INSERT of a transaction that must not commit
}

func (s *sqlSession) Begin(ctx context.Context, readOnly bool) error {
	s.calls, s.asked, s.readOnly, s.stale = s.calls[:0], 0, readOnly, nil
	clear(s.falsified)
	if s.late != nil && s.early && !s.broken {
		s.arrive(ctx)
	}
	return s.do(ctx, Begin, func() error { return s.SQLSession.Begin(ctx, readOnly) })
}

// arrive executes a late transaction. It fails if the look-up came first.
func (s *sqlSession) arrive(ctx context.Context) {
	_ = s.replay(ctx, s.late) // the client does not get this answer
	s.late = nil
}

// replay executes statements as a transaction on another connection.
func (s *sqlSession) replay(ctx context.Context, calls []call) error {
	return s.elsewhere(ctx, func(session db.SQLSession) error {
		if err := run(ctx, session, calls); err != nil {
			return err
		}
		return session.Commit(ctx)
	})
}

// run executes statements in the open transaction of a session.
func run(ctx context.Context, session db.SQLSession, calls []call) error {
	for _, c := range calls {
		if _, err := session.Do(ctx, c.statement, c.args); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere calls work with an open transaction on another connection. It rolls back afterwards, so that only
// committed work remains.
func (s *sqlSession) elsewhere(ctx context.Context, work func(session db.SQLSession) error) (err error) {
	if s.spare == nil {
		if s.spare, err = s.d.SQL.Session(ctx, s.options); err != nil {
			return err
		}
	}
	if err = s.spare.Begin(ctx, false); err == nil {
		err = work(s.spare)
	}
	if e := s.spare.Rollback(ctx); err != nil || e != nil { // the connection may be broken
		_ = s.spare.Close()
		s.spare = nil
	}
	return err
}

func (s *sqlSession) Do(ctx context.Context, statement *db.Statement, args []db.Value) (result int, err error) {
	err = s.do(ctx, Statement, func() error {
		result, err = s.SQLSession.Do(ctx, statement, args)
		return err
	})
	if err == nil {
		c := call{statement: statement, args: slices.Clone(args), result: result}
		for i := range c.args {
			c.args[i].Text = bytes.Clone(c.args[i].Text)
		}
		s.calls = append(s.calls, c)
	}
	return result, err
}

func (s *sqlSession) Flush(ctx context.Context) error {
	err := s.do(ctx, Read, func() error { return s.SQLSession.Flush(ctx) })
	if err == nil {
		s.falsify(ctx)
		s.asked = len(s.calls)
	}
	return err
}

func (s *sqlSession) Result(i int) *db.Result {
	if r, ok := s.falsified[i]; ok {
		return r
	}
	return s.SQLSession.Result(i)
}

func (s *sqlSession) Commit(ctx context.Context) error {
	if !s.broken && !s.resolving && s.writes() {
		if answered, err := s.falsifyCommit(ctx); answered {
			return err
		}
		// If the client has read results, later statements may depend on them. Such a transaction is not sent late.
		if s.asked == 0 && s.late == nil && s.draw(ctx, Commit, Late) != "" {
			s.in.count(Late)
			s.late, s.early = slices.Clone(s.calls), s.random.IntN(2) == 0
			return s.lost(ctx, Commit)
		}
	}
	if s.writes() {
		s.d.fork.begins(s)
		defer s.d.fork.ended(s)
	}
	err := s.commit(ctx, func() error { return s.SQLSession.Commit(ctx) })
	if db.ConstraintOf(err) == db.CheckFailed && s.draw(ctx, Commit, Overdraft) != "" {
		err = s.overdraw(ctx, s.calls)
	}
	if err != nil {
		return err
	}
	if s.denied != nil {
		s.lookedUp(ctx)
	}
	if s.writes() {
		s.d.past.committed()
		if s.late != nil {
			s.arrive(ctx)
		}
	} else {
		s.falsify(ctx)
	}
	return nil
}

// writes reports whether the transaction contains a write.
func (s *sqlSession) writes() bool {
	return !s.readOnly && slices.ContainsFunc(s.calls, func(c call) bool { return !c.reads() })
}

func (s *sqlSession) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	return s.do(ctx, Scan, func() error { return s.SQLSession.Query(ctx, statement, args, row) })
}

func (s *sqlSession) Reset(ctx context.Context) error {
	return s.do(ctx, Reset, func() error { return s.SQLSession.Reset(ctx) })
}

func (s *sqlSession) Close() error {
	if s.spare != nil {
		_ = s.spare.Close()
	}
	return s.SQLSession.Close()
}
