package voltdb

import (
	"context"
	"errors"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// session is one client. Its connection is its own, or shared with other sessions.
type session struct {
	db     *Database
	shared *shared // nil: its own
	stream int     // the number of its stream on the shared connection

	// These fields are used only with the session's own connection.
	link      *link
	deadlines wire.Deadlines
	handle    uint64

	out    []byte // the message that is sent
	result db.Result
	node   int // where the next connection begins
	broken bool
	closed bool
}

func (d *Database) session(ctx context.Context) (*session, error) {
	s := &session{db: d, node: d.next()}
	return s, s.open(ctx)
}

// open makes the session's own connection.
func (s *session) open(ctx context.Context) error {
	l, err := s.db.connect(ctx, s.node)
	if err != nil {
		return err
	}
	s.link, s.broken = l, false
	s.deadlines = wire.Deadlines{Conn: l.conn, Limit: s.db.config.answer}
	return nil
}

// system calls a system procedure with texts as arguments.
func (s *session) system(ctx context.Context, procedure string, texts ...string) (*db.Result, error) {
	var types []db.Type
	var args []db.Value
	for _, text := range texts {
		types, args = append(types, db.Text), append(args, db.Value{Text: []byte(text)})
	}
	return s.call(ctx, procedure, types, args)
}

func (s *session) call(ctx context.Context, procedure string, types []db.Type, args []db.Value) (*db.Result, error) {
	a, err := s.ask(ctx, procedure, types, args)
	if err != nil {
		return nil, err
	}
	if err := a.into(&s.result); err != nil {
		return nil, s.lost(procedure, err)
	}
	return &s.result, nil
}

// ask calls a procedure and returns the answer of a successful call, which is valid until the next call.
func (s *session) ask(ctx context.Context, procedure string, types []db.Type, args []db.Value) (answer, error) {
	if s.broken || s.closed {
		return answer{}, wire.Broken(s.op(procedure))
	}
	var body []byte
	var err error
	if s.shared != nil {
		body, err = s.shared.roundTrip(ctx, s, procedure, types, args)
	} else {
		body, err = s.roundTrip(ctx, procedure, types, args)
	}
	if err != nil {
		if unsent, ok := errors.AsType[notSent](err); ok {
			s.broken = true
			return answer{}, wire.Lost(s.op(procedure), unsent.error, wire.Before)
		}
		return answer{}, s.lost(procedure, err)
	}
	return s.parse(procedure, body)
}

// parse reads the answer to a call.
func (s *session) parse(procedure string, body []byte) (answer, error) {
	a, err := parseAnswer(body)
	if err != nil {
		return answer{}, s.lost(procedure, err)
	}
	if a.status != success {
		e := failed(s.op(procedure), &a)
		s.broken = e.Class == db.Unknown || e.Class == db.Unavailable
		return answer{}, e
	}
	return a, nil
}

// askAll sends the n calls in s.out on the session's own connection, and waits for all answers. It returns the first
// error that is not allowed.
func (s *session) askAll(ctx context.Context, op string, n int, allowed func(*db.Error) bool) error {
	if s.broken || s.closed {
		return wire.Broken(op)
	}
	if err := s.deadlines.Arm(ctx, time.Now(), true); err != nil {
		return s.lost(op, err)
	}
	if _, err := wire.RoundTrip(s.link.conn, s.out); err != nil {
		return s.lost(op, s.deadlines.Because(ctx, err))
	}
	var failed error
	for range n {
		body, err := s.link.read()
		if err != nil {
			return s.lost(op, s.deadlines.Because(ctx, err))
		}
		_, err = s.parse(op, body)
		if e, ok := errors.AsType[*db.Error](err); failed == nil && ok && !allowed(e) {
			failed = err
		}
	}
	return failed
}

// lost returns the error of a call that was sent but got no valid answer: the call may have been applied.
func (s *session) lost(procedure string, err error) error {
	s.broken = true
	return wire.Lost(s.op(procedure), err, wire.Committing)
}

// each calls a function for all values of all tables of an answer, with the numbers of the table and of the column.
func (s *session) each(procedure string, a *answer, take func(table, column int, v db.Value)) error {
	for number := range a.count {
		t, err := a.tables.table()
		if err == nil {
			err = t.each(func(column int, v db.Value) { take(number, column, v) })
		}
		if err != nil {
			return s.lost(procedure, err)
		}
	}
	return nil
}

// notSent is the error of a call that the server has not received completely, so that the call cannot have run.
type notSent struct{ error }

func (s *session) op(procedure string) string { return "call " + procedure }

// roundTrip sends a call on the session's own connection and returns its answer.
func (s *session) roundTrip(ctx context.Context, procedure string, types []db.Type, args []db.Value) ([]byte, error) {
	if err := s.deadlines.Arm(ctx, time.Now(), true); err != nil {
		return nil, notSent{err}
	}
	s.handle++
	s.out = appendCall(s.out[:0], s.handle, procedure, types, args)
	n, err := wire.RoundTrip(s.link.conn, s.out)
	if err != nil {
		err = s.deadlines.Because(ctx, err)
		if n < len(s.out) {
			err = notSent{err}
		}
		return nil, err
	}
	for {
		body, err := s.link.read()
		if err != nil {
			return nil, s.deadlines.Because(ctx, err)
		}
		if handleOf(body) == s.handle {
			return body, nil
		}
	}
}

// handleOf reads the handle of an answer.
func handleOf(body []byte) uint64 {
	m := message{rest: body}
	m.take(1)
	return uint64(m.number(8))
}

// Reset implements db.RecordSession. It first tries the node after the node that failed.
func (s *session) Reset(ctx context.Context) error {
	if s.closed {
		return wire.Broken("reset the session")
	}
	s.broken = true
	if s.shared != nil {
		return s.shared.reset(ctx, s)
	}
	s.drop()
	s.node++
	return s.open(ctx)
}

func (s *session) drop() {
	if s.link != nil {
		s.deadlines.Disarm()
		s.link.close()
		s.link = nil
	}
}

// Close implements db.RecordSession.
func (s *session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	if s.shared != nil {
		s.shared.leave()
		return nil
	}
	s.drop()
	return nil
}
