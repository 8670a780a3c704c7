package pgwire

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db/wire"
)

// Peek is a connection that is kept for questions of one row, and made when it is needed.
// One goroutine uses it at a time.
type Peek struct {
	database *Database
	conn     *pgconn.PgConn // nil: there is none now
}

// Peek returns one without a connection.
func (d *Database) Peek() *Peek { return &Peek{database: d} }

// Connected says that the next question goes over the connection of the last one.
func (p *Peek) Connected() bool { return p.conn != nil && !p.conn.IsClosed() }

// Row asks for the one row of the query that a connection is given, as text; NULL is empty.
// The connection is dropped after an error.
func (p *Peek) Row(ctx context.Context, op string, query func(*pgconn.PgConn) string) ([]string, error) {
	flavor := p.database.flavor
	if !p.Connected() {
		conn, err := pgconn.ConnectConfig(ctx, p.database.next())
		if err != nil {
			return nil, flavor.fromPgconn(ctx, op, err, wire.Connecting)
		}
		p.conn = conn
	}
	c := &Control{Conn: p.conn, flavor: flavor}
	row, err := c.Row(ctx, query(p.conn))
	if err != nil {
		p.Close()
		return nil, flavor.fromPgconn(ctx, op, err, wire.Before)
	}
	return row, nil
}

// Close drops the connection; a question makes another one.
func (p *Peek) Close() {
	if p.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.conn.Close(ctx) // the server drops what is left
	p.conn = nil
}
