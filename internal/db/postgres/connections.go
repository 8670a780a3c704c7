package postgres

import (
	"context"
	"fmt"
	"strconv"

	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
)

// freeQuery asks for the limits of connections and for the number that counts for each of them. Its columns match the
// fields of figures.
//
// Each client's process takes a slot of max_connections; before version 12 other processes did too. Some slots are
// reserved for superusers and, since 16, for a role (src/backend/utils/init/postinit.c, InitPostgres). CONNECTION
// LIMIT counts the sessions of a role or a database, including replication. It does not apply to superusers.
//
// A user without pg_read_all_stats does not see the kind of other users' processes. Processes that belong to a user
// but not to a client are bounded by max_worker_processes and max_wal_senders. So the count is never too high.
func freeQuery(version int) string {
	reserved := "0"
	if version >= 16 {
		reserved = "CASE WHEN pg_has_role(session_user, 'pg_use_reserved_connections', 'USAGE') THEN 0 ELSE current_setting('reserved_connections')::int END"
	}
	const hidden = "greatest(0, count(*) FILTER (WHERE backend_type IS NULL%s) - current_setting('max_worker_processes')::int - current_setting('max_wal_senders')::int)"
	const client = "count(*) FILTER (WHERE backend_type IN (%s)%s)"
	counted := func(kinds, which string) string {
		return fmt.Sprintf(client, kinds, which) + " + " + fmt.Sprintf(hidden, which)
	}
	const limited = "'client backend', 'walsender'"
	return "SELECT current_setting('max_connections')::int" +
		", CASE WHEN r.rolsuper THEN 0 ELSE current_setting('superuser_reserved_connections')::int + " + reserved + " END" +
		", a.clients" +
		", CASE WHEN r.rolsuper THEN -1 ELSE r.rolconnlimit END, a.own" +
		", CASE WHEN r.rolsuper THEN -1 ELSE d.datconnlimit END, a.here" +
		" FROM pg_roles r, pg_database d, (SELECT " +
		counted("'client backend'", "") + " AS clients, " +
		counted(limited, " AND usename = session_user") + " AS own, " +
		counted(limited, " AND datname = current_database()") + " AS here" +
		" FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datid IS NOT NULL AND usesysid IS NOT NULL) a" +
		" WHERE r.rolname = session_user AND d.datname = current_database()"
}

// FreeConnections implements db.ConnectionLimited. Behind a pooler, nothing is known.
func (d *Database) FreeConnections(ctx context.Context) (free db.FreeConnections, err error) {
	free.Server = d.Location()
	if d.Pooled() {
		return free, nil
	}
	err = d.Control(ctx, "ask "+d.Location()+" how many connections it takes", func(ctx context.Context, c *pgwire.Control) error {
		row, err := c.Row(ctx, freeQuery(major(c.Conn.ParameterStatus("server_version"))))
		if err != nil {
			return err
		}
		figures := make([]int, len(row))
		for i, text := range row {
			if figures[i], err = strconv.Atoi(text); err != nil {
				return db.Fatalf("read how many connections it takes", "%q is no number", text)
			}
		}
		most, reserved, clients := figures[0], figures[1], figures[2]
		limit := fmt.Sprintf("max_connections = %d", most)
		if reserved > 0 {
			limit += fmt.Sprintf(", %d of them reserved", reserved)
		}
		free.Tighten(most-reserved, clients, limit, "raise max_connections, or connect through a pooler")
		const raise = "raise it, or connect through a pooler"
		free.Tighten(figures[3], figures[4], fmt.Sprintf("the role's CONNECTION LIMIT is %d", figures[3]), raise)
		free.Tighten(figures[5], figures[6], fmt.Sprintf("the database's CONNECTION LIMIT is %d", figures[5]), raise)
		return nil
	})
	return free, err
}
