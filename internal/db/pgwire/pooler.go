package pgwire

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
)

// seePooler detects a pooler. If there is one, nothing is left in sessions, unless the URL says otherwise. A pooler
// that assigns a session for one transaction cannot be distinguished by a few queries from one that assigns it for
// the whole connection. So every pooler is treated like the first kind.
//
// The key for cancelling a session contains the number of its process (PostgreSQL documentation, 55.2.1). If another
// process answers, a pooler has invented the key.
func (d *Database) seePooler(ctx context.Context, c *Control) error {
	row, err := c.Row(ctx, "SELECT pg_backend_pid()")
	if err != nil {
		return err
	}
	if d.pooled = row[0] != strconv.FormatUint(uint64(c.Conn.PID()), 10); d.pooled && !d.chosen {
		d.stateless = new(stateless)
	}
	want := searchPathOf(d.config.RuntimeParams)
	if !d.pooled || want == "" {
		return nil
	}
	if row, err = c.Row(ctx, "SELECT current_setting('search_path'), COALESCE(current_schema(), 'no schema')"); err != nil {
		return err
	}
	if strings.ReplaceAll(row[0], " ", "") != strings.ReplaceAll(want, " ", "") {
		return db.Fatalf("open "+d.Location(), "the pooler drops search_path, so that tables would be in %s: take it out of the URL and set it for the user "+
			"(ALTER ROLE NAME SET search_path = SCHEMA)", row[1])
	}
	return nil
}

// searchPathOf returns the schemas that parameters of a session set, or an empty string. In options, a backslash
// precedes a space or a backslash within a value.
func searchPathOf(parameters map[string]string) string {
	if path := parameters[searchPath]; path != "" {
		return path
	}
	found := searchPathOption.FindAllStringSubmatch(parameters["options"], -1)
	if found == nil {
		return ""
	}
	return escaped.ReplaceAllString(found[len(found)-1][1], "$1")
}

var (
	searchPathOption = regexp.MustCompile(`(?:^|\s)(?:-c\s*|--)search_path=((?:\\.|\S)*)`)
	escaped          = regexp.MustCompile(`\\(.)`)
)

// Pooled reports whether there is a pooler between client and server. It is valid after Open.
func (d *Database) Pooled() bool { return d.pooled }

// consoleSettings lists the settings of PgBouncer that matter for measurements.
var consoleSettings = []string{"pool_mode", "default_pool_size", "max_client_conn", "query_wait_timeout"}

// namePooler asks PgBouncer's console ("Admin console" in its documentation) for its name and settings, which not
// every user may do.
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
