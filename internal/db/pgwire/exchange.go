package pgwire

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// exchange is one round trip of a session: messages up to a Sync, and the answers up to ReadyForQuery.
type exchange struct {
	op         string
	phase      wire.Phase
	begin, end bool // BEGIN comes first, COMMIT last
	control    int  // answers awaited of statements that are not the caller's
	want       byte // the state that ReadyForQuery must report; 0: any

	// An exchange outside of transactions has no results.
	aside  bool
	rows   func(row [][]byte) error // takes the rows, which may come at any time
	fields []field                  // the columns that the server has described

	next       int             // the result that arrives
	start      int             // where its values begin
	reported   *pgconn.PgError // the first error
	warning    error           // what takes the success from the commit
	unreadable error           // the first value that could not be read
	rolledBack bool            // COMMIT was answered by something else
}

// field is a column of a statement's result.
type field struct {
	name string
	oid  uint32 // of its type
}

// roundTrip sends messages and reads the answers into the session's results.
func (s *session) roundTrip(ctx context.Context, x *exchange, out []byte) *db.Error {
	x.next, x.start = s.ready, len(s.values)
	if err := s.arm(ctx, x.rows == nil); err != nil {
		return wire.Lost(x.op, err, wire.Before) // nothing was sent
	}
	if n, err := s.send(out); err != nil {
		if n == 0 {
			x.phase = wire.Before
		}
		return s.interrupted(ctx, x, err)
	}
	err, cut := s.receive(x, true)
	if cut != nil {
		return s.interrupted(ctx, x, cut)
	}
	return err
}

// receive reads the answers up to ReadyForQuery into the session's results, and judges them. cut is the
// reason if the answers ended earlier. last means that nothing else was sent.
func (s *session) receive(x *exchange, last bool) (judged *db.Error, cut error) {
	for {
		message, err := s.reader.Receive()
		if err != nil {
			return nil, err
		}
		switch m := message.(type) {
		case *pgproto3.DataRow:
			if x.rows == nil {
				s.row(x, m.Values)
			} else if err := x.rows(m.Values); err != nil { // the rest of the rows is not waited for, so that the connection ends
				return &db.Error{Class: db.Unknown, Op: x.op, Err: err}, nil
			}
		case *pgproto3.CommandComplete:
			s.complete(x, m.CommandTag)
		case *pgproto3.EmptyQueryResponse:
			s.complete(x, nil)
		case *pgproto3.ReadyForQuery:
			s.status = m.TxStatus
			s.reader.rest()
			if last {
				if err := s.sent(); err != nil {
					return nil, err
				}
			}
			return s.settle(x), nil
		default:
			if err := s.database.flavor.other(x, message); err != nil {
				return nil, err
			}
		}
	}
}

// other handles messages without results.
func (f *Flavor) other(x *exchange, message pgproto3.BackendMessage) error {
	switch m := message.(type) {
	case *pgproto3.RowDescription:
		for _, f := range m.Fields {
			x.fields = append(x.fields, field{string(f.Name), f.DataTypeOID})
		}
	case *pgproto3.ErrorResponse:
		if x.reported == nil || m.SeverityUnlocalized == "FATAL" {
			x.reported = pgconn.ErrorResponseToPgError(m)
		}
	case *pgproto3.NoticeResponse:
		if x.phase == wire.Committing && x.warning == nil && f.Warning != nil {
			x.warning = f.Warning(m.Routine, m.Code, m.Message, m.Detail)
		}
	default:
		return fmt.Errorf("the server sent an unexpected message %T", message)
	}
	return nil
}

func (s *session) row(x *exchange, row [][]byte) {
	if x.next >= len(s.pending) || x.unreadable != nil {
		return
	}
	columns := s.pending[x.next].columns
	if len(columns) == 0 {
		return // the caller wants no rows
	}
	s.values, s.text, x.unreadable = decodeRow(columns, row, s.values, s.text)
}

// decodeRow appends the columns of a row to values, and their text to texts.
func decodeRow(columns []decoder, row [][]byte, values []db.Value, texts []byte) ([]db.Value, []byte, error) {
	if len(row) != len(columns) {
		return values, texts, fmt.Errorf("a row has %d columns, not %d", len(row), len(columns))
	}
	var err error
	for i, how := range columns {
		values = append(values, db.Value{})
		if texts, err = how.decode(row[i], &values[len(values)-1], texts); err != nil {
			return values, texts, err
		}
	}
	return values, texts, nil
}

// complete ends the statement whose answer arrives.
func (s *session) complete(x *exchange, tag []byte) {
	switch {
	case x.aside:
	case x.begin:
		x.begin = false
		x.control--
	case x.next < len(s.pending):
		r := &s.results[x.next]
		r.Affected = affected(tag)
		r.Columns, r.Names = len(s.pending[x.next].columns), s.pending[x.next].names
		r.Values = s.values[x.start:len(s.values):len(s.values)]
		x.start = len(s.values)
		x.next++
	default:
		x.control--
		x.rolledBack = x.end && string(tag) != "COMMIT"
	}
}

// interrupted returns the error for answers that ended before ReadyForQuery.
func (s *session) interrupted(ctx context.Context, x *exchange, err error) *db.Error {
	switch {
	case x.warning != nil:
		return &db.Error{Class: db.Unknown, Final: true, Op: x.op, Err: x.warning}
	case x.reported != nil:
		return s.database.flavor.reported(x.op, x.reported, x.phase, true)
	}
	return wire.Lost(x.op, s.Because(ctx, err), x.phase)
}

// settle judges an exchange that ended with ReadyForQuery.
func (s *session) settle(x *exchange) *db.Error {
	switch {
	case x.warning != nil:
		return &db.Error{Class: db.Unknown, Final: true, Op: x.op, Err: x.warning}
	case x.reported != nil:
		phase, flavor := x.phase, s.database.flavor
		if s.status == 'E' && flavor.OpenAtCommit != nil {
			phase = wire.Before // a statement has failed, so that the COMMIT behind it was skipped
		}
		err := flavor.reported(x.op, x.reported, phase, false)
		if err.Class == db.Fatal && !x.aside && x.next < len(s.pending) {
			err.Op = "execute " + db.Shorten(s.pending[x.next].statement.SQL)
		}
		return err
	case x.aside && x.want != 0 && s.status != x.want:
		return wire.Lost(x.op, errors.New("the statement has left a transaction open"), x.phase)
	case x.aside:
		return nil
	case x.unreadable != nil && x.phase == wire.Committing:
		return wire.Lost(x.op, fmt.Errorf("the result of a statement cannot be read: %w", x.unreadable), wire.Committing)
	case x.unreadable != nil:
		return db.Fatalf(x.op, "the result of a statement cannot be read: %w", x.unreadable)
	case x.next != len(s.pending) || x.control != 0:
		return wire.Lost(x.op, errors.New("the server left statements unanswered"), x.phase)
	case x.rolledBack && s.status == 'I':
		return &db.Error{Class: db.Aborted, Op: x.op, Err: errRolledBack}
	case x.rolledBack || s.status != x.want:
		return wire.Lost(x.op, fmt.Errorf("the server is in the transaction state %q, not %q", s.status, x.want), x.phase)
	}
	s.ready = len(s.pending)
	return nil
}

// errRolledBack is the error of a COMMIT that the server answered with ROLLBACK.
var errRolledBack = errors.New("the server answered COMMIT with ROLLBACK: an earlier statement had failed")
