package redis

import (
	"context"
	"errors"
	"slices"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

var _ db.Multiplexer[db.KVSession] = (*Database)(nil)

// Streams implements db.Multiplexer. What several streams have to send at the same time,
// reads, commits and pages of scans alike, is sent together by the first of them that
// finds the connection free; it reads all the answers.
//
// Every commit is one script, so that streams meet as sessions with connections of their
// own do. commit=watch is refused: what is watched belongs to the connection, so the EXEC
// of one stream would be refused for the keys of another, and forget them for it.
//
// The context of a call is noticed before it is sent, and not during it, for its end
// would be the end of all that travels with it; a call is bounded by the time-out of
// the connection.
func (d *Database) Streams(ctx context.Context, n int, options db.SessionOptions) ([]db.KVSession, error) {
	if d.config.watch {
		return nil, db.Fatalf(opConnect, "with commit=watch a transaction needs its connection for itself, because what is watched belongs to the connection: take commit=script, or leave in-flight out")
	}
	return d.open(ctx, n, options)
}

// KVSession opens a session with a connection of its own; options.Mode means nothing.
func (d *Database) KVSession(ctx context.Context, options db.SessionOptions) (db.KVSession, error) {
	list, err := d.open(ctx, 1, options)
	if err != nil {
		return nil, err
	}
	list[0].(*session).of.own = true
	return list[0], nil
}

// open opens n sessions on one connection.
func (d *Database) open(ctx context.Context, n int, options db.SessionOptions) ([]db.KVSession, error) {
	if _, err := d.Claim(options.Isolation); err != nil {
		return nil, err
	}
	made, err := d.primary(ctx)
	if err != nil {
		return nil, err
	}
	db.Connected(ctx, made.wire.RemoteAddr())
	t := &sharedConn{db: d, link: made, sessions: n}
	// Every stream fits: the server reads on while nobody reads its answers, so that what
	// is sent together has no bound but the number of streams.
	t.Multiplexer = wire.NewMultiplexer(func(*session) bool { return true }, t.exchange)
	var list []db.KVSession
	for range n {
		s := &session{db: d, link: made, page: firstPage, of: t}
		s.handle = t.Stream(s)
		list = append(list, s)
	}
	return list, nil
}

// sharedConn is the connection of sessions, of which one at a time owns it and uses the rest.
type sharedConn struct {
	*wire.Multiplexer[*session]
	db  *Database
	own bool // of one session, whose contexts count

	sessions int     // not closed
	link     *link   // nil while the connection is broken
	replies  []reply // to all commands of the batch, and to the questions behind them
}

// reply is a command and whether the server has answered it. Of a connection that
// breaks the library says so in every command that has no error, those included whose
// answers it has read.
type reply struct {
	goredis.Cmder
	read bool
}

// SetErr is called by the library when it has read an answer, or with the error.
func (r *reply) SetErr(err error) {
	if r.read {
		return
	}
	r.read = answered(err)
	r.Cmder.SetErr(err)
}

// exchange sends the requests of the batch, and gives each command and question its
// answer, or the error that kept it away.
//
// The questions are asked once for all, behind all commands. A ROLE that says that the
// server is the primary says it of every read before it. WAIT waits for the last write of
// its connection, whichever stream's it is, and so for all before it
// (https://redis.io/docs/latest/commands/wait/); one behind each commit would wait for the
// replicas one after the other. Where too few replicas answer, it leaves every commit of
// the batch unknown, even one that they have.
func (t *sharedConn) exchange(batch []*session) {
	ctx := context.Background()
	if t.own {
		ctx = batch[0].request.ctx
	}
	var role *goredis.Cmd
	var wait *goredis.IntCmd
	t.replies = t.replies[:0]
	for _, s := range batch {
		q := &s.request
		if s.link != t.link {
			q.err = errors.New("it ended under another transaction that shared it")
			continue
		}
		for _, c := range q.commands {
			t.replies = append(t.replies, reply{Cmder: c})
		}
		if q.asksRole {
			if role == nil {
				role = goredis.NewCmd(ctx, "role")
			}
			q.role = role
		}
		if q.asksWait {
			if wait == nil {
				wait = goredis.NewIntCmd(ctx, "wait", t.db.config.wait, t.db.config.waitFor.Milliseconds())
			}
			q.wait = wait
		}
	}
	if len(t.replies) == 0 {
		return
	}
	if role != nil {
		t.replies = append(t.replies, reply{Cmder: role})
	}
	if wait != nil {
		t.replies = append(t.replies, reply{Cmder: wait})
	}
	t.link.wire.wrote = false
	pipe := t.link.conn.Pipeline()
	for i := range t.replies {
		_ = pipe.Process(ctx, &t.replies[i]) // only queues it
	}
	_, _ = pipe.Exec(ctx) // every command has its own error
	for _, s := range batch {
		s.wrote = s.wrote || s.request.err == nil && t.link.wire.wrote
	}
	if slices.ContainsFunc(t.replies, func(r reply) bool { return !r.read }) {
		t.drop()
	}
}

// Reset implements db.KVSession: the first session that comes opens the connection, and
// the others find it. A shared connection that answers, and leads to the primary, stays,
// for others have transactions on it; all that was sent on it has been answered.
func (s *session) Reset(ctx context.Context) error {
	if s.Closed {
		return s.Usable()
	}
	s.clear()
	s.Broken, s.watching = true, false
	s.handle.Acquire()
	defer s.handle.Release()
	t := s.of
	if err := ctx.Err(); err != nil {
		return unreachable(s.link.node, err)
	}
	if t.link == s.link && (t.own || !t.db.serves(ctx, t.link)) {
		t.drop()
	}
	if t.link == nil {
		made, err := t.db.primary(ctx)
		if err != nil {
			return err
		}
		t.link = made
	}
	s.link, s.Broken = t.link, false
	db.Connected(ctx, t.link.wire.RemoteAddr())
	return nil
}

func (t *sharedConn) drop() {
	if t.link != nil {
		t.link.close()
		t.link = nil
	}
}

// serves reports whether the server of a link answers, and is the primary on which all
// sessions agree. It may take as long as a server is given when it is looked for, even
// if ctx ends before, which is of one stream and the link is not.
func (d *Database) serves(ctx context.Context, l *link) bool {
	d.mu.Lock()
	agreed := !d.closed && d.current == l.node
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(probeTimeout, d.config.timeout))
	defer cancel()
	role := goredis.NewCmd(ctx, "role")
	return agreed && l.run(ctx, role) == nil && role.Err() == nil && d.config.stays(role)
}

// Close implements db.KVSession: the last session closes the connection.
func (s *session) Close() error {
	if s.Closed {
		return nil
	}
	s.clear()
	s.Closed = true
	s.handle.Acquire()
	defer s.handle.Release()
	if s.of.sessions--; s.of.sessions == 0 {
		s.of.drop()
	}
	return nil
}
