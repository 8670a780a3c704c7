package mysql

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// execute runs one statement, prepared if possible: this library cannot return the results of a prepared CALL.
func (s *session) execute(ctx context.Context, p *prepared, args []db.Value) *db.Error {
	if p.call {
		s.clear()
		s.add(p, args)
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

// one runs a prepared statement. An error of class Fatal names the statement. Rows go to the buffer as for read. The
// connection must be armed.
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

// prepare creates the server's form of a statement, once for each connection.
func (s *session) prepare(p *prepared) (err error) {
	if p.handle == nil {
		p.handle, err = s.conn.(driver.ConnPrepareContext).PrepareContext(never, p.text())
	}
	return err
}

// run executes the server's form. It returns the number of affected rows for a statement without rows.
func (p *prepared) run(args []db.Value, b *rowBuffer, row func([]db.Value) error) (int64, error) {
	if len(p.statement.Columns) == 0 && !p.statement.Free {
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
	err = b.read(rows, p.statement, row)
	if _, stopped := err.(rowError); !stopped {
		err = cmp.Or(err, rows.Close())
	}
	return 0, err
}

// settle builds a result from the values from start on.
func (s *session) settle(r *db.Result, p *prepared, start int) {
	r.Columns = len(p.statement.Columns)
	if p.statement.Free {
		r.Columns, r.Names = len(s.names), s.names
	}
	r.Values = s.values[start:len(s.values):len(s.values)]
	if r.Columns > 0 {
		r.Affected = int64(r.Rows())
	}
}

// The marker is a query whose result set, recognized by its only column, shows that everything before it was
// answered. A CALL with other statements needs one, because it may return any number of result sets. Other packets do
// without it, which saves the server a twentieth of the work: every answer except the last announces another one
// (SERVER_MORE_RESULTS_EXISTS,
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase_sp.html).
const (
	ended  = "stroppy_ended"
	marker = ";SELECT 1 AS " + ended
)

// queue holds the statements that were not sent yet.
type queue struct {
	texts  []byte // with semicolons between them
	rows   bool   // some may return rows
	calls  bool   // one is a CALL
	counts bool   // some are Counted
}

func (q *queue) clear() { *q = queue{texts: q.texts[:0]} }

// fits reports whether a statement can be sent with the queued ones. The library returns affected rows only for a
// packet without rows. The end of a CALL is recognized only by the marker or the end of the packet.
func (q *queue) fits(p *prepared) bool {
	return !(p.rows && (q.counts || q.calls) || q.rows && p.statement.Counted)
}

func (q *queue) add(p *prepared, args []db.Value) {
	if len(q.texts) > 0 {
		q.texts = append(q.texts, ';')
	}
	q.texts = p.append(q.texts, args)
	q.rows, q.calls, q.counts = q.rows || p.rows, q.calls || p.call, q.counts || p.statement.Counted
}

// send sends everything queued as one packet and reads the answers. It puts the beginning of the transaction first,
// unless it was sent, and COMMIT last if at is committing.
func (s *session) send(ctx context.Context, what string, at wire.Phase) *db.Error {
	if err := s.arm(ctx, true); err != nil {
		return wire.Lost(s.op(what), err, wire.Before)
	}
	x := packet{session: s, batch: s.pending[s.ready:]}
	x.assemble(s.state == wire.Queued, at == wire.Committing)
	s.state = wire.Open
	sent := s.out
	err := x.receive()
	if err == nil {
		s.ready = len(s.pending)
		s.clear()
		return nil
	}
	if u, ok := err.(unreadable); ok {
		err = fmt.Errorf("the result of a statement cannot be read: %w", u.error)
		if at == wire.Committing {
			return wire.Lost(s.op(what), err, at)
		}
		return db.Fatalf(s.op(what), "%w", err)
	}
	_, refused := errors.AsType[*client.MySQLError](err)
	if refused && x.to <= len(x.batch) {
		at = wire.Before // the server has not come to COMMIT
	}
	own := s.failure(ctx, s.op(what), err, at, sent)
	if among := x.batch[x.from:min(x.to, len(x.batch))]; refused && own.Class == db.Fatal && len(among) == 1 {
		own.Op = s.op("execute " + db.Shorten(among[0].statement.SQL))
	}
	return own
}

// packet is one exchange of several statements.
type packet struct {
	*session
	batch   []*prepared
	first   int         // the place of the batch among all answers
	answers int         // how many are due, without the marker's
	marked  bool        // the marker is at the end, and was not answered
	sets    driver.Rows // the answers that have rows; nil until the packet is sent
	// The server is at one of the statements [from, to) of the batch; COMMIT has the number after the last one.
	from, to int
}

func (x *packet) assemble(begins, commits bool) {
	x.text, x.answers, x.to = x.text[:0], len(x.batch), len(x.batch)+1
	if begins {
		x.text = append(append(x.text, x.beginning()...), ';')
		x.first = 1
		x.answers++
	}
	x.text = append(x.text, x.texts...)
	if commits {
		x.text = append(x.text, ";COMMIT"...)
		x.answers++
	}
	x.marked = x.calls && x.answers > 1
	if x.marked {
		x.text = append(x.text, marker...)
	}
}

// These errors mean that an answer does not belong to what was sent.
var (
	errUnanswered = errors.New("the server left statements unanswered")
	errUnasked    = errors.New("the server sent an answer without a request")
)

// receive sends the packet and reads all answers.
func (x *packet) receive() (err error) {
	if !x.rows {
		return x.count()
	}
	for i, p := range x.batch {
		if p.rows && err == nil {
			err = x.take(i, p)
		}
	}
	if err == nil {
		err = x.finish()
	}
	if x.sets != nil {
		err = cmp.Or(err, x.sets.Close()) // which reads what is left
	}
	return err
}

// count sends a packet without rows, and keeps the numbers of affected rows.
func (x *packet) count() error {
	done, err := x.exec(string(x.text))
	if err != nil {
		return err
	}
	counts := done.(client.Result).AllRowsAffected()
	if len(counts) != x.answers {
		return errUnanswered
	}
	for i := range x.batch {
		x.results[x.ready+i].Affected = counts[x.first+i]
	}
	return nil
}

// next sends the packet if necessary, and moves to the next answer with rows. It returns errUnanswered if there is
// none.
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

// atMarker reports whether the current answer is the marker's.
func (x *packet) atMarker() bool {
	columns := x.sets.Columns()
	if x.marked && len(columns) == 1 && columns[0] == ended {
		x.marked = false
		return true
	}
	return false
}

// take reads the rows of statement i.
func (x *packet) take(i int, p *prepared) error {
	start := len(x.values)
	x.to = i + 1
	if p.call {
		x.to = len(x.batch) + 1
	}
	for more := true; more; more = p.call {
		err := x.next()
		if p.call && (err == nil && x.atMarker() || !x.marked && errors.Is(err, errUnanswered)) {
			break
		}
		if err != nil {
			return err
		}
		x.from = i
		if len(p.statement.Columns) > 0 || p.statement.Free {
			err = x.read(x.sets, p.statement, nil)
		}
		if err != nil {
			return err
		}
	}
	x.from = i + 1
	x.settle(&x.results[x.ready+i], p, start)
	return nil
}

// finish checks that the rest of the packet was answered, and nothing else.
func (x *packet) finish() error {
	x.to = len(x.batch) + 1
	err := x.next()
	if err == nil && x.atMarker() {
		err = x.next()
	}
	switch {
	case err == nil:
		return errUnasked
	case errors.Is(err, errUnanswered) && !x.marked:
		return nil
	}
	return err
}
