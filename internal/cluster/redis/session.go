package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"stroppy/internal/cluster/wait"
)

// session sends one query at a time to one server. It renews its connection when it is broken.
type session struct {
	address string
	limit   time.Duration // of one query
	turn    wait.Lock

	conn   net.Conn // nil if there is none
	client *goredis.Client
	bound  *goredis.Conn // the client's only connection, which is conn
}

func newSession(address string, limit time.Duration) *session {
	return &session{address: address, limit: limit, turn: wait.NewLock()}
}

// ask sends a command and returns the reply as text. A used connection may belong to a server that has ended since.
// Then the command is sent again on a new connection, so repetition must be harmless.
func (s *session) ask(ctx context.Context, words ...string) (string, error) {
	answer, err := s.do(ctx, words...)
	if err != nil {
		return "", err
	}
	return answer.Text()
}

// do is like ask, but returns a reply of any form.
func (s *session) do(ctx context.Context, words ...string) (*goredis.Cmd, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	if err := s.turn.Acquire(ctx); err != nil {
		return nil, err
	}
	defer s.turn.Release()
	old := s.conn != nil
	answer, err := s.try(ctx, words)
	if err != nil && old && s.conn == nil && ctx.Err() == nil {
		answer, err = s.try(ctx, words)
	}
	if err != nil && !refused(err) && ctx.Err() != nil {
		err = context.Cause(ctx) // and not the error of the closed connection
	}
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", strings.Join(words, " "), s.address, err)
	}
	return answer, nil
}

func (s *session) try(ctx context.Context, words []string) (*goredis.Cmd, error) {
	if s.conn == nil {
		if err := s.connect(ctx); err != nil {
			return nil, err
		}
	}
	// A caller that gives up does not wait for the limit.
	conn := s.conn
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	command := make([]any, len(words))
	for i, word := range words {
		command[i] = word
	}
	answer := s.bound.Do(ctx, command...)
	if err := answer.Err(); err != nil && !refused(err) {
		s.drop()
		return nil, err
	}
	return answer, answer.Err()
}

// connect makes the connection here, because the library would log errors and wait after them.
func (s *session) connect(ctx context.Context) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	// A reset at the close discards unsent data, so that no command arrives after a cut is healed, when it is
	// outdated.
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
		return errors.Join(err, conn.Close())
	}
	s.conn = conn
	s.client = goredis.NewClient(&goredis.Options{
		Dialer:     func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		MaxRetries: -1, DialerRetries: 1, PoolSize: 1, PipelinePoolSize: -1, ConnMaxIdleTime: -1,
		ReadTimeout: s.limit, WriteTimeout: s.limit, ContextTimeoutEnabled: true,
		// The server sends nothing unasked.
		Protocol: 2, DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	s.bound = s.client.EphemeralConn()
	return nil
}

// drop closes the connection; the turn is held.
func (s *session) drop() {
	if s.conn != nil {
		_ = errors.Join(s.bound.Close(), s.client.Close(), s.conn.Close()) // all answers are known
		s.conn = nil
	}
}

func (s *session) close() {
	if s.turn.Acquire(context.Background()) == nil {
		defer s.turn.Release()
		s.drop()
	}
}

// awaitPong waits until the server answers PING correctly.
func (s *session) awaitPong(ctx context.Context) error {
	return wait.Retry(ctx, func() error {
		answer, err := s.ask(ctx, "PING")
		if err == nil && answer != "PONG" {
			err = fmt.Errorf("the server %s answered PING with %q", s.address, answer)
		}
		return err
	})
}

// refused reports whether the server has answered with an error.
func refused(err error) bool {
	_, ok := errors.AsType[goredis.Error](err)
	return ok
}

// view is a server's state of its replication.
type view struct {
	primary bool
	history string // position in the history, in bytes
	offset  int64  // up to which it has the history, in bytes

	replicas int // of a primary: replicas that answered within min-replicas-max-lag; unknown without a minimum

	source  string // host:port that a replica follows
	up      bool   // it is connected, and had all data at that time
	syncing bool   // it is receiving a full copy
}

func look(ctx context.Context, s *session) (view, error) {
	text, err := s.ask(ctx, "INFO", "replication")
	if err != nil {
		return view{}, err
	}
	return parseView(text)
}

// parseView reads the section Replication of INFO: https://redis.io/docs/latest/commands/info/.
func parseView(text string) (v view, err error) {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	v.history = fields["master_replid"]
	offset := fields["slave_repl_offset"]
	switch fields["role"] {
	case "master":
		v.primary, offset = true, fields["master_repl_offset"]
		v.replicas, _ = strconv.Atoi(fields["min_slaves_good_slaves"]) // the server omits it without a minimum
	case "slave":
		v.source = fields["master_host"] + ":" + fields["master_port"]
		v.up = fields["master_link_status"] == "up"
		v.syncing = fields["master_sync_in_progress"] != "0"
	default:
		return v, fmt.Errorf("the server names its role %q, which is neither master nor slave", fields["role"])
	}
	if v.offset, err = strconv.ParseInt(offset, 10, 64); err != nil || v.history == "" {
		return v, fmt.Errorf("the server reports no replication ID and offset: %q and %q", v.history, offset)
	}
	return v, nil
}

// follows reports whether the server is a replica of the server with this address.
func (v view) follows(address string) bool { return !v.primary && v.source == address }
