package cockroach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	askTimeout    = 3 * time.Second  // of a query to one node, which may hang
	changeTimeout = 20 * time.Second // of a change of the members
)

// database is the default database of every cluster.
const database = "defaultdb"

// Server is a node of an insecure cluster, as its clients reach it.
type Server struct {
	Name    string // for errors
	Address string // HOST:PORT of its SQL
}

// URLOf returns the URL of an insecure cluster; servers are HOST:PORT, separated by commas.
func URLOf(servers string) string {
	u := url.URL{Scheme: "cockroach", User: url.User("root"), Host: servers, Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Healthy returns nil if every server answers, regards all servers as alive, and finds all replicas of every range on
// them.
func Healthy(ctx context.Context, servers []Server) error {
	var ids []int64
	for _, s := range servers {
		id, err := s.ask(ctx)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for _, s := range servers {
		alive, err := s.alive(ctx)
		if err != nil {
			return err
		}
		for i, id := range ids {
			if !slices.Contains(alive, id) {
				return fmt.Errorf("%s regards %s as dead", s.Name, servers[i].Name)
			}
		}
		ranges, err := s.ranges(ctx)
		if err != nil {
			return err
		}
		for _, r := range ranges {
			if err := r.complete(ids); err != nil {
				return fmt.Errorf("%s reports: %w", s.Name, err)
			}
		}
	}
	return nil
}

// Set changes a cluster setting.
func (s Server) Set(ctx context.Context, name, value string) error {
	if err := s.exec(ctx, "SET CLUSTER SETTING "+name+" = '"+strings.ReplaceAll(value, "'", "''")+"'"); err != nil {
		return fmt.Errorf("set the cluster setting %s to %s: %w", name, value, err)
	}
	return nil
}

// with connects to the server for one query, so that no connection outlives the server process.
func (s Server) with(ctx context.Context, limit time.Duration, question func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return err
	}
	config, err := pgx.ParseConfig("user=root sslmode=disable dbname=" + database + " host=" + host + " port=" + port)
	if err != nil {
		return errors.New("describe a connection to CockroachDB: an environment variable that begins with PG is invalid")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		err = question(ctx, conn)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
		defer cancel()
		_ = conn.Close(closing) // the query is answered, and the server drops the rest
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", s.Name, err)
	}
	return nil
}

func (s Server) exec(ctx context.Context, statement string) error {
	return s.with(ctx, changeTimeout, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, statement)
		return err
	})
}

// ask reads through the server and returns CockroachDB's id of the node.
func (s Server) ask(ctx context.Context) (id int64, err error) {
	err = s.with(ctx, askTimeout, func(ctx context.Context, c *pgx.Conn) error {
		var text string
		if err := c.QueryRow(ctx, "SHOW node_id").Scan(&text); err != nil {
			return err
		}
		if id, err = strconv.ParseInt(text, 10, 64); err != nil {
			return err
		}
		_, err = c.Exec(ctx, "SELECT count(*) FROM system.namespace")
		return err
	})
	return id, err
}

// alive returns the ids of the nodes that this node regards as alive.
func (s Server) alive(ctx context.Context) (ids []int64, err error) {
	return collect[int64](ctx, s, "SELECT node_id FROM crdb_internal.gossip_nodes WHERE is_live", pgx.RowTo[int64])
}

// ranges returns all ranges, as seen by the server.
func (s Server) ranges(ctx context.Context) ([]replicated, error) {
	return collect(ctx, s, "SELECT range_id, replicas FROM crdb_internal.ranges_no_leases", func(row pgx.CollectableRow) (r replicated, err error) {
		err = row.Scan(&r.id, &r.replicas)
		return r, err
	})
}

// collect reads tables of crdb_internal. Versions from 25.4 on require a variable for this, which earlier versions do
// not know.
func collect[T any](ctx context.Context, s Server, query string, one pgx.RowToFunc[T]) (list []T, err error) {
	err = s.with(ctx, askTimeout, func(ctx context.Context, c *pgx.Conn) error {
		if _, err := c.Exec(ctx, "SET allow_unsafe_internals = on"); err != nil && c.IsClosed() {
			return err
		}
		rows, err := c.Query(ctx, query)
		if err == nil {
			list, err = pgx.CollectRows(rows, one)
		}
		return err
	})
	return list, err
}

// Now returns the server's own time.
func (s Server) Now(ctx context.Context) (now time.Time, err error) {
	err = s.with(ctx, askTimeout, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	})
	return now, err
}
