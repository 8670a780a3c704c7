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
	askTimeout    = 3 * time.Second  // of a question to one node, which may hang
	changeTimeout = 20 * time.Second // of a change of the nodes
)

// database is the one that every cluster has.
const database = "defaultdb"

// Server is a node of an insecure cluster as its clients reach it.
type Server struct {
	Name    string // for errors
	Address string // HOST:PORT of its SQL
}

// URLOf is the URL of an insecure cluster, whose servers are HOST:PORT with commas.
func URLOf(servers string) string {
	u := url.URL{Scheme: "cockroach", User: url.User("root"), Host: servers, Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Healthy is nil when every server answers, takes all of them for alive, and finds that every
// range has all its replicas, on them alone.
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
				return fmt.Errorf("%s takes %s for dead", s.Name, servers[i].Name)
			}
		}
		ranges, err := s.ranges(ctx)
		if err != nil {
			return err
		}
		for _, r := range ranges {
			if err := r.complete(ids); err != nil {
				return fmt.Errorf("%s says that %w", s.Name, err)
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

// with connects to the server for one question, so that no connection outlives the process
// at its other end.
func (s Server) with(ctx context.Context, limit time.Duration, question func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return err
	}
	config, err := pgx.ParseConfig("user=root sslmode=disable dbname=" + database + " host=" + host + " port=" + port)
	if err != nil {
		return errors.New("describe a connection to CockroachDB: one of the variables of the environment that begin with PG is wrong")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		err = question(ctx, conn)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
		defer cancel()
		_ = conn.Close(closing) // the question is answered, and the server drops what is left
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

// ask reads something by the server, and returns the id that CockroachDB gave to it.
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

// alive returns the ids of the nodes that this one takes for alive.
func (s Server) alive(ctx context.Context) (ids []int64, err error) {
	return collect[int64](ctx, s, "SELECT node_id FROM crdb_internal.gossip_nodes WHERE is_live", pgx.RowTo[int64])
}

// ranges returns all ranges as the server finds them.
func (s Server) ranges(ctx context.Context) ([]replicated, error) {
	return collect(ctx, s, "SELECT range_id, replicas FROM crdb_internal.ranges_no_leases", func(row pgx.CollectableRow) (r replicated, err error) {
		err = row.Scan(&r.id, &r.replicas)
		return r, err
	})
}

// collect reads tables of crdb_internal. Versions from 25.4 on want to be asked for them, by a
// variable that earlier ones do not know.
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

// Now is the time that the server says it is.
func (s Server) Now(ctx context.Context) (now time.Time, err error) {
	err = s.with(ctx, askTimeout, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	})
	return now, err
}
