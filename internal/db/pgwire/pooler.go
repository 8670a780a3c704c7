package pgwire

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// seePooler sees whether a pooler stands between, and leaves nothing in sessions then, unless
// the URL says what to do. A pooler that lends a session for one transaction cannot be distinguished
// by a few questions from one that lends it for as long as the client is there, for it may
// have lent the same one again; what works with the first works with both.
//
// The key with which a session is cancelled names its process (PostgreSQL documentation,
// 55.2.1). Where the process that answers is another one, a pooler has made up a key of its
// own.
func (d *Database) seePooler(ctx context.Context, c *Control) error {
	row, err := c.Row(ctx, "SELECT pg_backend_pid()")
	if err != nil {
		return err
	}
	if d.pooled = row[0] != strconv.FormatUint(uint64(c.Conn.PID()), 10); d.pooled && !d.chosen {
		d.stateless = new(stateless)
	}
	return nil
}

// Pooled says whether a pooler stands between client and server. It is known once the
// database is open.
func (d *Database) Pooled() bool { return d.pooled }

// consoleSettings are those of PgBouncer that a reader of measurements needs.
var consoleSettings = []string{"pool_mode", "default_pool_size", "max_client_conn", "query_wait_timeout"}

// namePooler asks the pooler for its name and settings on the console that PgBouncer has
// ("Admin console" in its documentation), to which not everybody has the right.
func (d *Database) namePooler(ctx context.Context) string {
	const unnamed = "there is one, which does not let this user see its name and settings"
	config := d.next()
	config.Database, config.RuntimeParams, config.ValidateConnect = "pgbouncer", nil, nil
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return unnamed
	}
	defer func() { _ = conn.Close(ctx) }() // it was only asked
	version, err := conn.Exec(ctx, "SHOW VERSION").ReadAll()
	if err != nil || len(version) != 1 || len(version[0].Rows) != 1 || len(version[0].Rows[0]) != 1 {
		return unnamed
	}
	parts := []string{string(version[0].Rows[0][0])}
	if config, err := conn.Exec(ctx, "SHOW CONFIG").ReadAll(); err == nil && len(config) == 1 {
		for _, row := range config[0].Rows {
			if len(row) > 1 && slices.Contains(consoleSettings, string(row[0])) {
				parts = append(parts, string(row[0])+" "+string(row[1]))
			}
		}
	}
	return strings.Join(parts, ", ")
}
