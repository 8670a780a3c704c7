package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"stroppy/internal/cluster"
)

// session asks one server one question at a time, over one connection, which it
// makes anew when that has broken.
type session struct {
	address string
	limit   time.Duration // of one question
	turn    cluster.Lock

	conn   net.Conn // nil while there is none
	reader *bufio.Reader
}

func newSession(address string, limit time.Duration) *session {
	return &session{address: address, limit: limit, turn: cluster.NewLock()}
}

// ask sends a command and returns the reply as text. A connection on which
// earlier questions were answered may be of a server that has ended since: then
// the command is sent once more, over a new one, so it must be one that does no
// harm when it is executed twice.
func (s *session) ask(ctx context.Context, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	if err := s.turn.Acquire(ctx); err != nil {
		return "", err
	}
	defer s.turn.Release()
	old := s.conn != nil
	text, err := s.try(ctx, words)
	if err != nil && old && s.conn == nil && ctx.Err() == nil {
		text, err = s.try(ctx, words)
	}
	if err != nil {
		return "", fmt.Errorf("%s on %s: %w", strings.Join(words, " "), s.address, err)
	}
	return text, nil
}

func (s *session) try(ctx context.Context, words []string) (string, error) {
	if s.conn == nil {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", s.address)
		if err != nil {
			return "", err
		}
		s.conn, s.reader = conn, bufio.NewReader(conn)
	}
	text, err := converse(ctx, s.conn, s.reader, words)
	if err != nil && !refused(err) {
		s.drop()
	}
	return text, err
}

// drop closes the connection; the turn is held.
func (s *session) drop() {
	if s.conn != nil {
		abandon(s.conn)
		s.conn = nil
	}
}

// abandon closes a connection and takes back what was sent and not received, so
// that no command of ours arrives after a cut is healed, when it is wrong.
func abandon(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (s *session) close() {
	if s.turn.Acquire(context.Background()) == nil {
		defer s.turn.Release()
		s.drop()
	}
}

// converse sends one command over a connection and reads the reply.
func converse(ctx context.Context, conn net.Conn, r *bufio.Reader, words []string) (string, error) {
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	// Whoever gives up does not wait for the deadline.
	release := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer release()
	var request strings.Builder
	command(&request, words...)
	if _, err := conn.Write([]byte(request.String())); err != nil {
		return "", err
	}
	return reply(r)
}

// refusal is an error that the server answered.
type refusal string

func (r refusal) Error() string { return string(r) }

// refused tells that the server has answered, though with an error.
func refused(err error) bool {
	_, ok := errors.AsType[refusal](err)
	return ok
}
