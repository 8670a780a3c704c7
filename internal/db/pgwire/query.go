package pgwire

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"

	"stroppy/internal/db"
)

// prepare prepares a statement in a round trip of its own, once a session, or asks
// for its columns alone where it is sent whole each time.
func (s *session) prepare(ctx context.Context, statement *db.Statement) (*prepared, *db.Error) {
	op := "prepare " + db.Shorten(statement.SQL)
	name := ""
	if !s.database.stateless {
		s.named++
		name = "s" + strconv.Itoa(s.named)
	}
	parse, err := appendParse(nil, name, statement)
	if err != nil {
		return nil, db.Fatalf(op, "%w", err)
	}
	out, err := appendDescribe(slices.Clone(parse), name)
	if err != nil {
		return nil, db.Fatalf(op, "%w", err)
	}
	x := exchange{op: op, phase: before}
	if err := s.arm(ctx, true); err != nil {
		return nil, lost(op, err, before)
	}
	if _, err := s.request(out); err != nil {
		return nil, s.interrupted(ctx, &x, err)
	}
	var types []uint32
	for ready := false; !ready; {
		message, err := s.reader.Receive()
		if err != nil {
			return nil, s.interrupted(ctx, &x, err)
		}
		switch m := message.(type) {
		case *pgproto3.ParseComplete, *pgproto3.ParameterDescription, *pgproto3.NoData:
		case *pgproto3.RowDescription:
			for _, f := range m.Fields {
				types = append(types, f.DataTypeOID)
			}
		case *pgproto3.ReadyForQuery:
			s.status = m.TxStatus
			ready = true
		default:
			if err := s.database.flavor.other(&x, message); err != nil {
				return nil, s.interrupted(ctx, &x, err)
			}
		}
	}
	if err := s.sent(); err != nil {
		return nil, s.interrupted(ctx, &x, err)
	}
	if x.reported != nil {
		return nil, s.database.flavor.reported(op, x.reported, before, false)
	}
	p, err := newPrepared(name, statement, types)
	if err != nil {
		return nil, db.Fatalf(op, "%w", err)
	}
	if s.database.stateless {
		p.parse = parse
	}
	s.statements[statement] = p
	return p, nil
}

// Query streams the rows of one statement. The time between two rows is not
// limited, for a sort can take long; a server that stops answering altogether is
// noticed.
func (s *session) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	switch {
	case s.link == nil:
		return &db.Error{Class: db.Unavailable, Op: s.opQuery, Err: errBroken}
	case s.state != idle:
		return db.Fatalf(s.opQuery, "a transaction is open in the session")
	case len(args) != len(statement.Params):
		return db.Fatalf(s.opQuery, "%s has %d parameters, not %d", db.Shorten(statement.SQL), len(statement.Params), len(args))
	}
	p := s.statements[statement]
	if p == nil {
		var err *db.Error
		if p, err = s.prepare(ctx, statement); err != nil {
			return s.fail(ctx, err)
		}
	}
	guarded, release := s.database.guard(ctx, s.Conn.RemoteAddr())
	defer release()
	err := s.stream(guarded, p, append(p.append(nil, args), syncAll...), row)
	if err != nil {
		return s.fail(ctx, err)
	}
	s.Disarm()
	return nil
}

func (s *session) stream(ctx context.Context, p *prepared, out []byte, row func([]db.Value) error) *db.Error {
	x := exchange{op: s.opQuery, phase: committing}
	if err := s.arm(ctx, false); err != nil {
		return lost(s.opQuery, err, before)
	}
	if n, err := s.request(out); err != nil {
		if n == 0 {
			x.phase = before
		}
		return s.interrupted(ctx, &x, err)
	}
	var values []db.Value
	var text []byte
	for {
		message, err := s.reader.Receive()
		if err != nil {
			return s.interrupted(ctx, &x, err)
		}
		switch m := message.(type) {
		case *pgproto3.DataRow:
			if len(p.columns) == 0 {
				continue
			}
			values, text, err = decodeRow(p.columns, m.Values, values[:0], text[:0])
			if err == nil {
				err = row(values)
			}
			if err != nil { // the rest of the rows is not waited for, so that the connection ends
				return &db.Error{Class: db.Unknown, Op: s.opQuery, Err: err}
			}
		case *pgproto3.CommandComplete, *pgproto3.EmptyQueryResponse:
		case *pgproto3.ReadyForQuery:
			s.status = m.TxStatus
			return s.answered(&x)
		default:
			if err := s.database.flavor.other(&x, message); err != nil {
				return s.interrupted(ctx, &x, err)
			}
		}
	}
}

// answered judges a query that ended with ReadyForQuery.
func (s *session) answered(x *exchange) *db.Error {
	if err := s.sent(); err != nil {
		return lost(x.op, err, x.phase)
	}
	switch {
	case x.warning != nil:
		return &db.Error{Class: db.Unknown, Final: true, Op: x.op, Err: x.warning}
	case x.reported != nil:
		return s.database.flavor.reported(x.op, x.reported, x.phase, false)
	case s.status != 'I':
		return lost(x.op, errors.New("the statement has left a transaction open"), x.phase)
	}
	return nil
}
