package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Session is a connection to one server that is renewed when it breaks. Its methods may be called from several
// goroutines, which take turns.
type Session struct {
	config *pgx.ConnConfig
	limit  time.Duration // of one query, including the connection

	mu   sync.Mutex
	conn *pgx.Conn // nil before the first query
}

// NewSession describes a session; host may be the folder of a Unix socket. Its commits wait for no standby.
func NewSession(host string, port uint16, limit time.Duration) (*Session, error) {
	config, err := pgx.ParseConfig("host=localhost user=" + Superuser + " dbname=" + Superuser + " sslmode=disable target_session_attrs=any")
	if err != nil {
		return nil, errors.New("describe a connection to PostgreSQL: an environment variable that begins with PG is invalid")
	}
	config.Host, config.Port, config.Fallbacks = host, port, nil
	config.RuntimeParams = map[string]string{"application_name": "stroppy", "synchronous_commit": "local"}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // one round trip per query
	return &Session{config: config, limit: limit}, nil
}

// do calls question with the connection. If the connection is broken, do repeats the call on a new one, so question
// must allow repetition.
func (s *Session) do(ctx context.Context, question func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		kept := s.conn != nil && !s.conn.IsClosed()
		if !kept {
			conn, err := pgx.ConnectConfig(ctx, s.config)
			if err != nil {
				return err
			}
			s.conn = conn
		}
		if err := question(ctx, s.conn); err == nil || !kept || ctx.Err() != nil || !s.conn.IsClosed() {
			return err
		}
	}
}

// Ask runs a query and ignores its result.
func (s *Session) Ask(ctx context.Context, sql string) error {
	return s.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

// One runs a query and returns the only value of its only row.
func One[T any](ctx context.Context, s *Session, sql string) (value T, err error) {
	err = s.do(ctx, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, sql).Scan(&value) })
	return value, err
}

// Close closes the connection; a later query makes a new one.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = s.conn.Close(ctx) // the server may be gone, and drops what is left
	s.conn = nil
}

const closeLimit = 100 * time.Millisecond
