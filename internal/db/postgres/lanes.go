package postgres

import (
	"context"
	"errors"
	"sync"

	"stroppy/internal/db"
)

var _ db.SQLMultiplexer = (*Database)(nil)

// Lanes implements db.SQLMultiplexer. Transactions that ask for nothing before their
// end are sent together, each with a Sync of its own, by the first lane that finds the
// connection free; it reads all their answers. So one system call carries several of
// them, and the server does one after the other. A transaction that asks for a result
// before its end has the connection to itself until then.
//
// Mode must be Pipelined: what waits for each statement leaves nothing to share.
func (d *Database) Lanes(ctx context.Context, n int, options db.SessionOptions) ([]db.SQLSession, error) {
	if options.Mode != db.Pipelined {
		return nil, db.Fatalf(opConnect, "transactions that wait for each of their statements cannot share a connection: take mode pipelined, or leave in-flight out")
	}
	first, err := d.Session(ctx, options)
	if err != nil {
		return nil, err
	}
	t := &trunk{link: first.(*session).link, lanes: n}
	t.context, t.end = context.WithCancel(context.Background())
	var list []db.SQLSession
	for range n {
		s := d.session(first.(*session).options)
		s.link = t.link
		list = append(list, &lane{
			session: s, trunk: t, turn: make(chan turn, 1), of: t.link, statements: map[*db.Statement]*prepared{},
		})
	}
	return list, nil
}

// trunk is the connection that lanes share. Whoever owns it may use link, and nobody
// else; ownership is handed from lane to lane.
type trunk struct {
	// What lanes send together ends with this and not with the context of one of them,
	// for an end of that would be the end of all: a lane waits for its answer, or for
	// the time-out of the connection.
	context context.Context
	end     context.CancelFunc

	mu      sync.Mutex
	owned   bool
	waiting []*lane // that want to own it, one after the other
	queue   []*lane // whose transactions are to be sent
	lanes   int     // not closed

	link  *link // nil while the connection is broken
	batch []*lane
	out   []byte
}

// turn is what a lane that waits is told.
type turn uint8

const (
	answered turn = iota // its transaction has ended
	owner                // the trunk is its own
)

// lane is one session of a trunk.
type lane struct {
	*session
	trunk *trunk
	turn  chan turn

	of         *link // where the statements below are prepared
	statements map[*db.Statement]*prepared
	owns       bool // the trunk, while a transaction is open on it

	message []byte // what is to be sent, in session.out
	x       exchange
	err     error // how the transaction ended
}

// acquire waits until the lane owns the trunk.
func (l *lane) acquire() {
	t := l.trunk
	t.mu.Lock()
	if t.owned {
		t.waiting = append(t.waiting, l)
		t.mu.Unlock()
		<-l.turn
		return
	}
	t.owned = true
	t.mu.Unlock()
}

// release hands the trunk on: to a lane that waits for it, or to one whose transaction
// is to be sent.
func (l *lane) release() {
	t := l.trunk
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.waiting) > 0:
		next := t.waiting[0]
		t.waiting = append(t.waiting[:0], t.waiting[1:]...)
		next.turn <- owner
	case len(t.queue) > 0:
		t.queue[0].turn <- owner
	default:
		t.owned = false
	}
}

// own makes the lane the owner until its transaction ends, or refuses it because the
// connection that it knows is gone.
func (l *lane) own(op string) error {
	if l.owns {
		return nil
	}
	l.acquire()
	if l.link == nil || l.link != l.trunk.link {
		l.link, l.state = nil, idle
		l.release()
		return &db.Error{Class: db.Unavailable, Op: op, Err: errBroken}
	}
	l.owns = true
	return nil
}

// ended hands the trunk on when the owner's transaction is over, with the connection
// if the transaction has left one.
func (l *lane) ended() {
	if l.owns && l.state == idle {
		l.owns = false
		if l.link == nil {
			l.trunk.link = nil
		}
		l.release()
	}
}

func (l *lane) Do(ctx context.Context, statement *db.Statement, args []db.Value) (int, error) {
	if l.state != idle && l.link != nil && len(args) == len(statement.Params) {
		p, err := l.preparedOf(ctx, statement)
		if err != nil {
			return 0, err
		}
		l.out = p.append(l.out, args)
		l.pending, l.results = append(l.pending, p), append(l.results, db.Result{})
		return len(l.pending) - 1, nil
	}
	n, err := l.session.Do(ctx, statement, args) // which says what is wrong
	l.ended()
	return n, err
}

// preparedOf returns a statement of the lane's connection. The connection's own list
// is for the owner alone.
func (l *lane) preparedOf(ctx context.Context, statement *db.Statement) (*prepared, error) {
	if l.of != l.link {
		l.of = l.link
		clear(l.statements)
	}
	if p := l.statements[statement]; p != nil {
		return p, nil
	}
	if err := l.own(opExecute); err != nil {
		return nil, err
	}
	p := l.session.statements[statement]
	if p == nil {
		var err *db.Error
		if p, err = l.prepare(ctx, statement); err != nil {
			e := l.fail(ctx, err)
			l.ended()
			return nil, e
		}
	}
	l.statements[statement] = p
	if l.state == queued { // the server knows nothing of it yet
		l.owns = false
		l.release()
	}
	return p, nil
}

func (l *lane) Flush(ctx context.Context) error {
	if l.state == queued && l.ready < len(l.pending) {
		if err := l.own(opExecute); err != nil {
			return err
		}
	}
	err := l.session.Flush(ctx)
	l.ended()
	return err
}

func (l *lane) Commit(ctx context.Context) error {
	if l.state != queued || len(l.pending) == 0 {
		err := l.session.Commit(ctx)
		l.ended()
		return err
	}
	if !l.implicit || len(l.out) >= largeWrite/2 {
		if err := l.own(opExecute); err != nil {
			return err
		}
		err := l.session.Commit(ctx)
		l.ended()
		return err
	}
	if ctx.Err() != nil {
		l.state = idle
		return &db.Error{Class: db.Aborted, Op: opCommit, Err: context.Cause(ctx)}
	}
	l.out = append(l.out, syncAll...)
	l.message, l.x = l.out[len(l.controls.begin):], exchange{op: opCommit, phase: committing, want: 'I'}
	return l.together()
}

// together has the transaction sent with those of other lanes, by one of them.
func (l *lane) together() error {
	t := l.trunk
	t.mu.Lock()
	t.queue = append(t.queue, l)
	leads := !t.owned
	t.owned = true
	t.mu.Unlock()
	if !leads && <-l.turn == answered {
		return l.end()
	}
	l.lead()
	return l.end()
}

// end returns how the transaction ended.
func (l *lane) end() error {
	l.state = idle
	l.out = append(l.out[:0], l.controls.begin...)
	err := l.err
	l.err = nil
	if err == nil {
		return nil
	}
	if class := db.ClassOf(err); class == db.Unknown || class == db.Unavailable {
		l.link = nil // until Reset
	}
	return err
}

// lead sends what is queued, as much as the buffers of the sockets surely hold, the
// owner's own first, and reads the answers.
func (l *lane) lead() {
	t := l.trunk
	t.mu.Lock()
	t.batch, t.out = t.batch[:0], t.out[:0]
	rest := t.queue[:0]
	for _, other := range t.queue {
		switch {
		case other.link == nil || other.link != t.link:
			other.err = lost(opCommit, errBroken, before)
			t.batch = append(t.batch, other)
		case len(t.out)+len(other.message) < largeWrite:
			t.batch, t.out = append(t.batch, other), append(t.out, other.message...)
		default:
			rest = append(rest, other)
		}
	}
	t.queue = rest
	t.mu.Unlock()
	l.exchangeAll()
	for _, other := range t.batch {
		if other != l {
			other.turn <- answered
		}
	}
	l.release()
}

// exchangeAll sends what the batch has to send and gives every transaction of it its
// end.
func (l *lane) exchangeAll() {
	t, last := l.trunk, -1
	for i, other := range t.batch {
		if other.err == nil {
			last = i
		}
	}
	if last < 0 {
		return
	}
	at := before // nothing was sent
	cut := t.link.arm(t.context, true)
	if cut == nil {
		var n int
		if n, cut = t.link.send(t.out); n > 0 || cut == nil {
			at = committing
		}
	}
	for i, other := range t.batch {
		if other.err != nil {
			continue
		}
		other.x.phase = at
		if cut == nil {
			var judged *db.Error
			judged, cut = other.receive(&other.x, i == last)
			if cut == nil && t.link.status != 'I' {
				cut = errOpen // the next transaction would be part of this one
			}
			if judged != nil {
				other.err = judged
				continue
			}
			if cut == nil {
				continue
			}
		}
		other.err = other.interrupted(t.context, &other.x, cut)
	}
	if cut != nil {
		t.link.close()
		t.link = nil
	}
}

// errOpen is why a connection is given up that has been left in a transaction.
var errOpen = errors.New("the server has left a transaction open")

func (l *lane) Rollback(ctx context.Context) error {
	err := l.session.Rollback(ctx)
	l.ended()
	return err
}

// Query implements db.SQLSession. It has the connection to itself.
func (l *lane) Query(ctx context.Context, statement *db.Statement, args []db.Value, row func([]db.Value) error) error {
	if err := l.own(opQuery); err != nil {
		return err
	}
	err := l.session.Query(ctx, statement, args, row)
	l.ended()
	return err
}

// Reset implements db.SQLSession: the first lane that comes opens the connection, and
// the others find it.
func (l *lane) Reset(ctx context.Context) error {
	if l.owns {
		l.drop()
		l.ended()
	}
	l.acquire()
	defer l.release()
	l.state = idle
	t := l.trunk
	if t.link == nil {
		made, err := l.database.connect(ctx, l.options.Isolation)
		if err != nil {
			return err
		}
		t.link = made
	}
	l.link = t.link
	return nil
}

// Close implements db.SQLSession: the last lane closes the connection.
func (l *lane) Close() error {
	if l.owns {
		l.drop()
		l.ended()
	}
	l.acquire()
	defer l.release()
	t := l.trunk
	if t.lanes--; t.lanes == 0 {
		if t.link != nil {
			t.link.terminate()
			t.link = nil
		}
		t.end()
	}
	l.link, l.state = nil, idle
	return nil
}
