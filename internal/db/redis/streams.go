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

// Streams implements db.Multiplexer. Several streams may have reads, commits and pages of scans to send at the same
// time. The first stream that finds the connection free sends them together, and reads all the answers.
//
// Every commit is one script, so streams conflict in the same way as sessions with their own connections. commit=watch
// is refused, because watched keys belong to the connection. The EXEC of one stream would be refused for the keys of
// another stream, and would also forget them.
//
// A context is checked before its call is sent, but not during the call. Otherwise its end would also end the calls
// that are sent together with it. The time-out of the connection limits a call.
func (d *Database) Streams(ctx context.Context, n int, options db.SessionOptions) ([]db.KVSession, error) {
	if d.config.watch {
		return nil, db.Fatalf(opConnect, "with commit=watch a transaction needs its connection for itself, because what is watched belongs to the connection: take commit=script, or leave in-flight out")
	}
	return d.open(ctx, n, options)
}

// KVSession opens a session with its own connection. options.Mode has no effect.
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
	// Every stream fits. The server reads on while nobody reads its answers, so only the number of streams limits what
	// is sent together.
	t.Multiplexer = wire.NewMultiplexer(func(*session) bool { return true }, t.exchange)
	var list []db.KVSession
	for range n {
		s := &session{db: d, link: made, page: firstPage, of: t}
		s.handle = t.Stream(s)
		list = append(list, s)
	}
	return list, nil
}

// sharedConn is the connection of several sessions. One session at a time owns it and sends for the others too.
type sharedConn struct {
	*wire.Multiplexer[*session]
	db  *Database
	own bool // has one session, whose contexts count

	sessions int     // sessions that are not closed
	link     *link   // nil while the connection is broken
	replies  []reply // to all commands and questions of the batch
}

// reply is a command with a mark whether the server has answered it. When a connection breaks, the library sets its
// error in every command that has no error. This includes commands whose answers it has read.
type reply struct {
	goredis.Cmder
	read bool
}

// SetErr stores the result of a command. The library calls it when it has read an answer, or with the error of the
// connection.
func (r *reply) SetErr(err error) {
	if r.read {
		return
	}
	r.read = answered(err)
	r.Cmder.SetErr(err)
}

// exchange sends the requests of the batch. It gives each command and question its answer, or the error that prevented
// the answer.
//
// The questions are sent once for all, after all commands. If ROLE answers that the server is the primary, this holds
// for every read before it. WAIT waits for the last write of its connection, from any stream, and so for all earlier
// writes (https://redis.io/docs/latest/commands/wait/). With one WAIT after each commit the waiting times would add up.
// If too few replicas answer, every commit of the batch is unknown, even a commit that they have.
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
		_ = pipe.Process(ctx, &t.replies[i]) // it only queues the command
	}
	_, _ = pipe.Exec(ctx) // every command has its own error
	for _, s := range batch {
		s.wrote = s.wrote || s.request.err == nil && t.link.wire.wrote
	}
	if slices.ContainsFunc(t.replies, func(r reply) bool { return !r.read }) {
		t.drop()
	}
}

// Reset implements db.KVSession. The first session that calls it opens the connection, and the others use it. A shared
// connection stays if it answers and leads to the primary, because other sessions have transactions on it. Everything
// that was sent on it has been answered.
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

// serves reports whether the server of a link answers and is the primary that all sessions use. It may take as long as
// the search for a server, even if ctx ends before. ctx belongs to one stream, and the link belongs to all.
func (d *Database) serves(ctx context.Context, l *link) bool {
	d.mu.Lock()
	agreed := !d.closed && d.current == l.node
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(probeTimeout, d.config.timeout))
	defer cancel()
	role := goredis.NewCmd(ctx, "role")
	return agreed && l.run(ctx, role) == nil && role.Err() == nil && d.config.stays(role)
}

// Close implements db.KVSession. The last session closes the connection.
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
