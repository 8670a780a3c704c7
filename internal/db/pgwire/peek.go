package pgwire

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db/wire"
)

// Peek is a connection for queries of one row, opened on demand. It must be used by one goroutine at a time.
type Peek struct {
	database *Database
	conn     *pgconn.PgConn // nil: there is none now
}

// Peek returns a Peek without a connection.
func (d *Database) Peek() *Peek { return &Peek{database: d} }

// Connected reports whether the next query uses the connection of the last one.
func (p *Peek) Connected() bool { return p.conn != nil && !p.conn.IsClosed() }

// Row returns the only row of a query as text; NULL becomes an empty string. query returns the text for a
// connection. After an error, the connection is closed.
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

// Close closes the connection; a later query opens another one.
func (p *Peek) Close() {
	if p.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.conn.Close(ctx) // the server drops what is left
	p.conn = nil
}
