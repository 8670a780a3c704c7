package pgwire

import (
	"context"
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// prepare prepares a statement in its own round trip, once for each session. If statements are sent
// completely each time, it only asks for the columns, once for all sessions.
func (s *session) prepare(ctx context.Context, statement *db.Statement) (*prepared, *db.Error) {
	name, whole := "", s.database.stateless
	if whole == nil {
		s.named++
		name = "s" + strconv.Itoa(s.named)
	} else if known, ok := whole.described.Load(statement); ok {
		return known.(*prepared), nil
	}
	x := exchange{op: "prepare " + db.Shorten(statement.SQL), phase: wire.Before, aside: true}
	parse := parseMessage(name, statement)
	describe := framed('D', "S"+name+"\x00")
	if err := s.roundTrip(ctx, &x, []byte(parse+describe+syncAll)); err != nil {
		return nil, err
	}
	p, err := newPrepared(name, statement, x.fields)
	if err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: x.op, Err: err}
	}
	if whole == nil {
		s.statements[statement] = p
		return p, nil
	}
	p.parse = parse
	first, _ := whole.described.LoadOrStore(statement, p) // many sessions ask at once
	return first.(*prepared), nil
}

// Query streams the rows of one statement. The time between two rows is not limited, because a sort can take
// long. A server that stops answering is detected.
func (s *session) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	switch {
	case s.link == nil || s.state != wire.Idle:
		return s.misuse(s.opQuery)
	case len(args) != len(statement.Params):
		return db.Fatalf(s.opQuery, "%s has %d parameters, not %d", db.Shorten(statement.SQL), len(statement.Params), len(args))
	}
	if err := s.acquire(s.opQuery); err != nil {
		return err
	}
	p, err := s.preparedFor(ctx, statement)
	if err != nil {
		return err
	}
	guarded, release := s.database.guard(ctx, s.Conn.RemoteAddr())
	defer release()
	var values []db.Value
	var text []byte
	x := exchange{op: s.opQuery, phase: wire.Committing, aside: true, want: 'I', rows: func(raw [][]byte) (err error) {
		if len(p.columns) == 0 {
			return nil
		}
		if values, text, err = decodeRow(p.columns, raw, values[:0], text[:0]); err != nil {
			return err
		}
		return row(values)
	}}
	if err := s.roundTrip(guarded, &x, append(p.append(nil, args), syncAll...)); err != nil {
		return s.fail(ctx, err)
	}
	s.Disarm()
	s.release()
	return nil
}
