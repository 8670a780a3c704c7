package pgwire

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

func (d *Database) connect(ctx context.Context, options db.SessionOptions) (*link, error) {
	op := d.opConnect + " at " + d.where
	conn, err := pgconn.ConnectConfig(ctx, d.next())
	if err != nil {
		return nil, d.flavor.fromPgconn(ctx, op, err, wire.Connecting)
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	err = d.EnableNotices(ctx, conn)
	if err == nil && d.stateless == nil {
		err = d.prepareSession(ctx, conn, options.Isolation)
	}
	if err == nil {
		err = conn.SyncConn(ctx)
	}
	var h *pgconn.HijackedConn
	if err == nil {
		h, err = conn.Hijack()
	}
	if err != nil {
		_ = conn.Close(ctx) // the first error is more informative
		own, ok := errors.AsType[*db.Error](err)
		if !ok {
			own = d.flavor.fromPgconn(ctx, op, err, wire.Before)
		}
		return nil, own
	}
	socket := h.Conn
	if options.Blocking {
		if socket, err = wire.Block(socket); err != nil {
			return nil, d.flavor.fromPgconn(ctx, op, err, wire.Before)
		}
	}
	return &link{
		connection: &connection{Deadlines: wire.Deadlines{Conn: socket, Limit: d.timeout}, reader: reader{source: socket}, ended: endedCheck(socket)},
		statements: make(map[*db.Statement]*prepared),
		status:     h.TxStatus,
	}, nil
}

// next returns the configuration of the next connection, which the caller may change. If
// connections are balanced, it starts with the next of the servers.
func (d *Database) next() *pgconn.Config {
	config := d.config.Copy()
	if !d.balanced || len(config.Fallbacks) == 0 {
		return config
	}
	tries := tries(config)
	var servers []int // where the tries of each begin: one with TLS may stand before one without
	for i, t := range tries {
		if i == 0 || t.Host != tries[i-1].Host || t.Port != tries[i-1].Port {
			servers = append(servers, i)
		}
	}
	at := servers[int(d.made.Add(1))%len(servers)]
	first := tries[at]
	config.Host, config.Port, config.TLSConfig = first.Host, first.Port, first.TLSConfig
	config.Fallbacks = slices.Concat(tries[at+1:], tries[:at])
	return config
}

// prepareSession sets what the session's transactions need. Behind a pooler, the isolation is named by each
// transaction instead, because the next transaction may be in another session of the server.
func (d *Database) prepareSession(ctx context.Context, conn *pgconn.PgConn, isolation string) error {
	named := ""
	if d.pooled {
		named = isolation
	} else if isolation != "" {
		if err := conn.Exec(ctx, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL "+isolation).Close(); err != nil {
			return err
		}
	}
	for _, c := range controlStatements(named) {
		if _, err := conn.Prepare(ctx, c.name, c.sql, nil); err != nil {
			return err
		}
	}
	return nil
}

// enableWarnings restores warnings in a session whose client_min_messages hides them because of its URL or its user.
// Other sessions keep their value.
const (
	enableWarnings = "SELECT set_config('client_min_messages', 'warning', false)" + whereHidden
	hidingSession  = "SELECT 1" + whereHidden
	whereHidden    = " WHERE current_setting('client_min_messages', true) IN ('error', 'fatal', 'panic')"
)

// EnableNotices makes the server send its warnings on a connection, because one of them revokes the success of a
// commit (see Flavor.Warning). A server that does not support this is not PostgreSQL and has no such warning.
//
// If no setting can be left in a session, a session that hides warnings is refused.
func (d *Database) EnableNotices(ctx context.Context, conn *pgconn.PgConn) error {
	sql, keeps := enableWarnings, d.stateless == nil && !d.pooled
	if !keeps {
		sql = hidingSession
	}
	results, err := conn.Exec(ctx, sql).ReadAll()
	switch {
	case Refused(err):
		return nil
	case err == nil && !keeps && len(results) == 1 && len(results[0].Rows) > 0:
		return db.Fatalf(d.opConnect+" at "+d.where, "it hides warnings, and one of them takes the success from a commit: set client_min_messages to warning for this user")
	}
	return err
}

// Refused reports whether the server answered with an error and continues.
func Refused(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && !isFatal(e)
}

// keepsImplicit reports whether all statements up to one Sync, and no others, form one transaction: a setting for the
// rest of the transaction must exist for the next statement and be gone after the Sync. PostgreSQL guarantees this.
// Some other servers and proxies send a Sync after each statement. Then a part of a transfer would be committed and
// the rest refused (ProxySQL issue 5118, CockroachDB issue 74187, Materialize pull request 37932). Without a clear
// yes, the answer is no.
func (c *Control) keepsImplicit(ctx context.Context) (bool, error) {
	const value = "one"
	const read = "SELECT current_setting('stroppy.transaction', true)"
	var two pgconn.Batch
	two.ExecParams("SELECT set_config('stroppy.transaction', '"+value+"', true)", nil, nil, nil, nil)
	two.ExecParams(read, nil, nil, nil, nil)
	results, err := c.Conn.ExecBatch(ctx, &two).ReadAll()
	switch {
	case Refused(err):
		return false, nil
	case err != nil:
		return false, err
	case len(results) != 2 || len(results[1].Rows) != 1 || string(bytes.Join(results[1].Rows[0], nil)) != value:
		return false, nil
	}
	after, err := c.Row(ctx, read)
	return err == nil && after[0] != value, err
}
