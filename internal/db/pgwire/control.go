package pgwire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// Control is a connection of one goroutine that is no session.
type Control struct {
	Conn    *pgconn.PgConn
	flavor  *Flavor
	phase   wire.Phase // how far the call has gone, for its errors
	warning error      // what took the success from a commit
}

// Connect opens a Control.
func (d *Database) Connect(ctx context.Context, op string) (*Control, error) {
	c := &Control{flavor: d.flavor, phase: wire.Before}
	config := d.next()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if c.phase != wire.Committing || d.flavor.Warning == nil {
			return
		}
		if err := d.flavor.Warning(n.Routine, n.Code, n.Message, n.Detail); err != nil {
			c.warning = err
		}
	}
	var err error
	if c.Conn, err = pgconn.ConnectConfig(ctx, config); err != nil {
		return nil, d.flavor.fromPgconn(ctx, op, err, wire.Connecting)
	}
	return c, nil
}

// Close closes the connection and ignores errors: the caller has its answer.
func (c *Control) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Conn.Close(ctx)
}

// Failure returns the error of an operation that failed with err.
func (c *Control) Failure(ctx context.Context, op string, err error) error {
	if c.warning != nil {
		return &db.Error{Class: db.Unknown, Final: true, Op: op, Err: c.warning}
	}
	if own, ok := errors.AsType[*db.Error](err); ok {
		return own
	}
	return c.flavor.fromPgconn(ctx, op, err, c.phase)
}

// Control opens a connection, passes it to do, closes it, and converts the error to a *db.Error.
func (d *Database) Control(ctx context.Context, op string, do func(context.Context, *Control) error) error {
	c, err := d.Connect(ctx, op)
	if err != nil {
		return err
	}
	defer c.Close()
	guarded, release := d.guard(ctx, c.Conn.Conn().RemoteAddr())
	defer release()
	if err = do(guarded, c); err != nil {
		return c.Failure(guarded, op, err)
	}
	return nil
}

// Row runs a query and returns its only row as text. NULL becomes an empty string.
func (c *Control) Row(ctx context.Context, sql string) ([]string, error) {
	results, err := c.Conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, fmt.Errorf("%s did not return one row", sql)
	}
	row := make([]string, len(results[0].Rows[0]))
	for i, v := range results[0].Rows[0] {
		row[i] = string(v)
	}
	return row, nil
}

// Run runs statements one by one.
func (c *Control) Run(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := c.Conn.Exec(ctx, s).ReadAll(); err != nil {
			return c.flavor.fromPgconn(ctx, "execute "+db.Shorten(s), err, c.phase)
		}
	}
	return nil
}

// Commit commits. It succeeds only if the server answers COMMIT without a relevant warning.
func (c *Control) Commit(ctx context.Context) error {
	c.phase = wire.Committing
	results, err := c.Conn.Exec(ctx, "COMMIT").ReadAll()
	switch {
	case err != nil:
		return err
	case c.warning != nil:
		return c.warning
	case len(results) != 1 || results[0].CommandTag.String() != "COMMIT":
		return &db.Error{Class: db.Aborted, Op: "commit on " + c.flavor.Name, Err: errRolledBack}
	}
	return nil
}

// guard returns a context that ends when the server at the address stops answering. It asks whether the
// server supports TLS, which needs neither a password nor a session (PostgreSQL documentation 55.2.11, "SSL
// Session Encryption").
func (d *Database) guard(ctx context.Context, address net.Addr) (context.Context, func()) {
	return wire.Guard(ctx, d.timeout, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, d.config.ConnectTimeout)
		defer cancel()
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, address.Network(), address.String())
		if err != nil {
			return err
		}
		defer conn.Close()
		deadline, _ := ctx.Deadline()
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
		const sslRequest = 80877103
		message := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), sslRequest)
		if _, err := conn.Write(message); err != nil {
			return err
		}
		_, err = io.ReadFull(conn, message[:1])
		return err
	})
}
