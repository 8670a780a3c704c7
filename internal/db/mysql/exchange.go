package mysql

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sort"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// execute runs one statement alone, prepared if the protocol can: what CALL
// returns has no place in the answer to a prepared statement of this library.
func (s *session) execute(ctx context.Context, p *prepared, args []db.Value) *db.Error {
	if p.call {
		s.queue = p.append(s.queue[:0], args)
		s.ends = append(s.ends[:0], len(s.queue))
		return s.send(ctx, "execute a statement", wire.Before)
	}
	if err := s.arm(ctx, true); err != nil {
		return wire.Lost(s.op("execute a statement"), err, wire.Before)
	}
	start := len(s.values)
	affected, err := s.one(ctx, "execute a statement", wire.Before, p, args, &s.rowBuffer, nil)
	if err != nil {
		return err
	}
	r := &s.results[s.ready]
	r.Affected = affected
	s.settle(r, p, start)
	s.ready++
	return nil
}

// one runs a prepared statement, which an error of class Fatal names. Its rows go to
// the buffer as read says. The connection is armed.
func (s *session) one(ctx context.Context, what string, at wire.Phase, p *prepared, args []db.Value, b *rowBuffer, row func([]db.Value) error) (int64, *db.Error) {
	sent := s.out
	affected, err := int64(0), s.prepare(p)
	if err != nil {
		at = wire.Before
	} else {
		sent = s.out
		affected, err = p.run(args, b, row)
	}
	var bad unreadable
	var stopped rowError
	switch {
	case err == nil:
		return affected, nil
	case errors.As(err, &stopped): // the rest of the rows is not waited for, so that the connection ends
		return 0, &db.Error{Class: db.Unknown, Op: s.op(what), Err: stopped.error}
	case errors.As(err, &bad):
		return 0, db.Fatalf(s.op("execute "+db.Shorten(p.statement.SQL)), "%w", bad.error)
	}
	own := s.failure(ctx, s.op(what), err, at, sent)
	if own.Class == db.Fatal {
		own.Op = s.op("execute " + db.Shorten(p.statement.SQL))
	}
	return 0, own
}

// prepare makes the server's form of a statement, once a connection.
func (s *session) prepare(p *prepared) (err error) {
	if p.handle == nil {
		p.handle, err = s.conn.(driver.ConnPrepareContext).PrepareContext(never, p.text())
	}
	return err
}

// run executes the server's form and returns how many rows a statement without rows
// has affected.
func (p *prepared) run(args []db.Value, b *rowBuffer, row func([]db.Value) error) (int64, error) {
	if len(p.statement.Columns) == 0 {
		done, err := p.handle.(driver.StmtExecContext).ExecContext(never, p.bind(args))
		if err != nil {
			return 0, err
		}
		return done.RowsAffected()
	}
	rows, err := p.handle.(driver.StmtQueryContext).QueryContext(never, p.bind(args))
	if err != nil {
		return 0, err
	}
	err = b.read(rows, p.statement.Columns, row)
	if _, stopped := err.(rowError); !stopped {
		err = cmp.Or(err, rows.Close())
	}
	return 0, err
}

// settle makes a result of the values from start on.
func (s *session) settle(r *db.Result, p *prepared, start int) {
	r.Columns = len(p.statement.Columns)
	r.Values = s.values[start:len(s.values):len(s.values)]
	if r.Columns > 0 {
		r.Affected = int64(r.Rows())
	}
}

// After a CALL, which may return any number of result sets, a packet that goes on
// has a query whose result set says by its only column that there are no more of
// them.
const (
	ended = "stroppy_ended"
	end   = ";SELECT 1 AS " + ended
)

// send sends everything that is queued as one packet, with the beginning before
// it unless the server has it and with COMMIT after it if at is committing, and
// reads the answers.
func (s *session) send(ctx context.Context, what string, at wire.Phase) *db.Error {
	if err := s.arm(ctx, true); err != nil {
		return wire.Lost(s.op(what), err, wire.Before)
	}
	x := packet{session: s, batch: s.pending[s.ready:], begins: s.state == wire.Queued, commits: at == wire.Committing}
	x.assemble()
	s.state = wire.Open
	sent := s.out
	err := x.receive()
	if err == nil {
		s.ready = len(s.pending)
		s.queue, s.ends = s.queue[:0], s.ends[:0]
		return nil
	}
	if u, ok := err.(unreadable); ok {
		if x.commits {
			return wire.Lost(s.op(what), fmt.Errorf("the result of a statement cannot be read: %w", u.error), at)
		}
		return db.Fatalf(s.op(what), "the result of a statement cannot be read: %w", u.error)
	}
	var refused *client.MySQLError
	i := len(x.batch)
	if errors.As(err, &refused) {
		if i = x.refused; i < len(x.batch) {
			at = wire.Before // the server has not come to COMMIT
		}
	}
	own := s.failure(ctx, s.op(what), err, at, sent)
	if own.Class == db.Fatal && i >= 0 && i < len(x.batch) {
		own.Op = s.op("execute " + db.Shorten(x.batch[i].statement.SQL))
	}
	return own
}

// packet is one exchange of several statements.
type packet struct {
	*session
	batch           []*prepared
	begins, commits bool
	sets            driver.Rows // the answers that have rows; nil until the packet is sent
	refused         int         // the statement that the server refused: -1 the beginning, len(batch) COMMIT
}

func (x *packet) assemble() {
	x.text = x.text[:0]
	if x.begins {
		x.text = append(append(x.text, x.beginning()...), ';')
	}
	from := 0
	for i, p := range x.batch {
		if i > 0 {
			x.text = append(x.text, ';')
		}
		x.text = append(x.text, x.queue[from:x.ends[i]]...)
		from = x.ends[i]
		if p.call && !x.last(i) {
			x.text = append(x.text, end...)
		}
	}
	if x.commits {
		x.text = append(x.text, ";COMMIT"...)
	}
}

// last says that nothing comes after a statement.
func (x *packet) last(i int) bool { return i == len(x.batch)-1 && !x.commits }

// Why an answer cannot belong to what was sent.
var (
	errUnanswered = errors.New("the server left statements unanswered")
	errUnasked    = errors.New("the server answered what nobody asked")
)

// next sends the packet, and goes to the next answer with rows; errUnanswered if
// there is none. The library passes over the answers without rows.
func (x *packet) next() (err error) {
	if x.sets == nil {
		if x.sets, err = x.query(string(x.text)); err == nil && len(x.sets.Columns()) == 0 {
			err = errUnanswered
		}
		return err
	}
	if err = x.sets.(driver.RowsNextResultSet).NextResultSet(); errors.Is(err, io.EOF) {
		err = errUnanswered
	}
	return err
}

// answered is how many answers have begun, of which each statement has one but
// for a CALL, which may have more.
func (x *packet) answered() int { return x.tally.Len() }

// receive sends the packet and reads all answers to it.
func (x *packet) receive() error {
	place := 0 // of the next statement's answer among all
	if x.begins {
		place = 1
	}
	x.places = x.places[:0]
	var bad, err error
	for i, p := range x.batch {
		x.places = append(x.places, place)
		if !p.call && len(p.statement.Columns) == 0 {
			place++
			continue
		}
		err = x.take(p, place, x.last(i), &x.results[x.ready+i])
		if u, ok := err.(unreadable); ok {
			bad, err = cmp.Or(bad, error(u)), nil
		}
		if err != nil {
			break
		}
		place++
		if p.call {
			place = x.answered()
		}
	}
	taken := err == nil
	if taken {
		err = x.finish(place)
	}
	x.refused = sort.SearchInts(x.places, x.answered()) - 1
	if taken && x.answered() > place {
		x.refused = len(x.batch)
	}
	if x.sets != nil {
		if e := x.sets.Close(); err == nil {
			err = e
		}
	}
	return cmp.Or(err, bad)
}

// finish reads what comes after the last result that is wanted, and counts the
// rows that statements without rows have affected.
func (x *packet) finish(place int) error {
	var err error
	for err == nil {
		if err = x.next(); err == nil && x.answered() > place {
			err = errUnasked
		}
	}
	if !errors.Is(err, errUnanswered) {
		return err
	}
	if x.commits {
		place++
	}
	if x.answered() != place {
		return errUnanswered
	}
	for i, p := range x.batch {
		if !p.call && len(p.statement.Columns) == 0 {
			x.results[x.ready+i].Affected = x.tally.Index(x.places[i]).Int()
		}
	}
	return nil
}

// take reads the rows of one statement, whose answer has a place among all. Before
// it may come rows that nobody wanted.
func (x *packet) take(p *prepared, place int, last bool, r *db.Result) error {
	start := len(x.values)
	var bad error
	for {
		err := x.next()
		if p.call && last && errors.Is(err, errUnanswered) {
			break
		}
		if err != nil {
			return err
		}
		if x.answered() <= place {
			continue
		}
		if p.call {
			if columns := x.sets.Columns(); len(columns) == 1 && columns[0] == ended {
				break
			}
			if len(p.statement.Columns) == 0 {
				continue
			}
		}
		err = x.read(x.sets, p.statement.Columns, nil)
		if _, ok := err.(unreadable); err != nil && !ok {
			return err
		}
		bad = cmp.Or(bad, err)
		if !p.call {
			break
		}
	}
	x.settle(r, p, start)
	return bad
}
