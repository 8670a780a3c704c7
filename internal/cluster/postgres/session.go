package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// session is a connection to one server that is kept, and made anew when it has
// broken. Its methods may be called from several goroutines, one of which at a
// time has the connection.
type session struct {
	config *pgconn.Config
	limit  time.Duration // of one question, connecting included

	mu   sync.Mutex
	conn *pgconn.PgConn // nil before the first question
}

// newSession describes a session; host may be the folder of a Unix socket.
// commit is its synchronous_commit.
func newSession(host string, port uint16, commit string, limit time.Duration) (*session, error) {
	config, err := pgconn.ParseConfig("host=localhost user=" + Superuser + " dbname=" + Superuser + " sslmode=disable target_session_attrs=any")
	if err != nil {
		return nil, errors.New("describe a connection to PostgreSQL: one of the variables of the environment that begin with PG is wrong")
	}
	config.Host, config.Port, config.Fallbacks = host, port, nil
	config.RuntimeParams = map[string]string{"application_name": "stroppy", "synchronous_commit": commit}
	return &session{config: config, limit: limit}, nil
}

// ask runs one query and returns its rows as text, NULL as an empty one. A
// question on a connection that turns out to be broken is asked again on a new
// one, so it must be one that may be asked twice.
func (s *session) ask(ctx context.Context, sql string) ([][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.conn != nil && !s.conn.IsClosed()
	rows, err := s.try(ctx, sql)
	if err != nil && kept && ctx.Err() == nil && s.conn.IsClosed() {
		rows, err = s.try(ctx, sql)
	}
	return rows, err
}

func (s *session) try(ctx context.Context, sql string) ([][]string, error) {
	if s.conn == nil || s.conn.IsClosed() {
		conn, err := pgconn.ConnectConfig(ctx, s.config)
		if err != nil {
			return nil, err
		}
		s.conn = conn
	}
	results, err := s.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, r := range results {
		for _, values := range r.Rows {
			row := make([]string, len(values))
			for i, v := range values {
				row[i] = string(v)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// close drops the connection; a later question makes a new one.
func (s *session) close() {
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

// health is how a server answers those who come over the network, as clients do.
type health struct {
	session *session

	mu    sync.Mutex
	since time.Time // when the first question was asked that has no answer yet
}

// askEvery is the time between two questions for a server's health.
const askEvery = 100 * time.Millisecond

// watch asks until ctx ends, while running says that the server's process is
// there.
func (h *health) watch(ctx context.Context, running func() bool) {
	defer h.session.close()
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !running() {
			h.reset()
			continue
		}
		h.begin()
		_, err := h.session.ask(ctx, "SELECT")
		if err == nil || isFull(err) {
			h.reset()
		}
	}
}

// isFull says that a server refused a connection because clients have them all,
// which is an answer.
func isFull(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "53300" // too_many_connections
}

func (h *health) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since = time.Now()
	}
}

// reset notes that the server has answered.
func (h *health) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since = time.Time{}
}

// silence is how long the server has not answered, zero if it has.
func (h *health) silence() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		return 0
	}
	return time.Since(h.since)
}
