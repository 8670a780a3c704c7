package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	client "github.com/go-sql-driver/mysql"
)

// askLimit bounds one query to a node, including the connection.
const askLimit = 2 * time.Second

// open returns a database for queries to a node; limit bounds each step of a query. Each query has its own
// connection, because a fault may have broken a kept one.
func open(address string, limit time.Duration) (*sql.DB, error) {
	config := client.NewConfig()
	config.User, config.Net, config.Addr = Superuser, "tcp", address
	config.Timeout, config.ReadTimeout, config.WriteTimeout = limit, limit, limit
	config.Logger = &client.NopLogger{} // its messages are in the errors
	connector, err := client.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("describe a connection to MariaDB at %s: %w", address, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(-1)
	return db, nil
}

func (n *node) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := n.db.PingContext(ctx); err != nil {
		return fmt.Errorf("%s does not answer: %w", n.Name(), err)
	}
	return nil
}

func (n *node) now(ctx context.Context) (time.Time, error) { return Now(ctx, n.db, n.Name()) }

// Now asks a server for its time. SYSDATE is the time of the call, NOW the time of the statement.
func Now(ctx context.Context, db *sql.DB, name string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var micros int64 // since 1970
	if err := db.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)").Scan(&micros); err != nil {
		return time.Time{}, fmt.Errorf("ask %s for its time: %w", name, err)
	}
	return time.UnixMicro(micros), nil
}

// status is the known state of a Galera node, by its own answer if it answers
// (https://galeracluster.com/library/documentation/galera-status-variables.html).
type status struct {
	name      string // of the node
	answers   bool
	ready     bool
	connected bool   // to the group; false after it has left
	component string // Primary, or another kind
	state     string // such as Synced, or stateInconsistent
	synchron  bool   // wsrep_local_state is 4
	size      int    // of its component
	members   string // client addresses of its component's nodes, with commas between
	position  position
}

// stateSynced is the wsrep_local_state of a synchronized node.
const stateSynced = "4"

// stateInconsistent is the wsrep_local_state_comment of a node whose data differ from the others' data. It has left
// the group and marked its data as unusable.
const stateInconsistent = "Inconsistent"

func (n *node) status(ctx context.Context) (status, error) {
	fail := func(err error) (status, error) {
		return status{}, fmt.Errorf("%s does not report its state: %w", n.Name(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	rows, err := n.db.QueryContext(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_connected', 'wsrep_cluster_status', 'wsrep_cluster_size', "+
		"'wsrep_incoming_addresses', 'wsrep_local_state', 'wsrep_local_state_comment', 'wsrep_local_state_uuid', 'wsrep_last_committed')")
	if err != nil {
		return fail(err)
	}
	defer rows.Close()
	values := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return fail(err)
		}
		values[name] = value
	}
	if err := rows.Err(); err != nil {
		return fail(err)
	}
	s := status{
		name: n.Name(), answers: true, ready: values["wsrep_ready"] == "ON", connected: values["wsrep_connected"] == "ON", component: values["wsrep_cluster_status"],
		state: values["wsrep_local_state_comment"], synchron: values["wsrep_local_state"] == stateSynced,
		members: values["wsrep_incoming_addresses"],
	}
	if s.size, err = strconv.Atoi(values["wsrep_cluster_size"]); err != nil {
		return fail(err)
	}
	if s.position.seqno, err = strconv.ParseInt(values["wsrep_last_committed"], 10, 64); err != nil {
		return fail(err)
	}
	s.position.history = values["wsrep_local_state_uuid"]
	if s.state == stateInconsistent {
		s.position = position{}
	}
	return s, nil
}

func (s status) primary() bool { return s.connected && s.component == "Primary" }

// synced returns why the node does not accept writes, or nil.
func (s status) synced() error {
	if s.ready && s.primary() && s.synchron {
		return nil
	}
	if !s.connected {
		return fmt.Errorf("%s left its group on its own (its state is %s) and does not return: restart it", s.name, s.state)
	}
	return fmt.Errorf("%s is not synchronized: it is %s in a component that is %s, ready: %t", s.name, s.state, s.component, s.ready)
}

// checkHealthy returns nil if all nodes answer. With Galera they must be synchronized in one primary component, and
// each must have committed all that any of them had when it was asked. Without writes their data are equal; under
// load they never stand still.
func (c *Cluster) checkHealthy(ctx context.Context) error {
	if !c.galera() {
		return c.Each(func(n *node) error { return n.ping(ctx) })
	}
	before, err := c.look(ctx)
	if err != nil {
		return err
	}
	after, err := c.look(ctx)
	if err != nil {
		return err
	}
	for _, old := range before {
		for _, s := range after {
			switch {
			case s.position.history != old.position.history:
				return fmt.Errorf("%s and %s have data of different histories", s.name, old.name)
			case s.position.seqno < old.position.seqno:
				return fmt.Errorf("%s has committed %d, but %s had %d before", s.name, s.position.seqno, old.name, old.position.seqno)
			}
		}
	}
	return nil
}

// look asks all nodes for their status. It returns an error if one is not a synchronized member of a component of all
// nodes.
func (c *Cluster) look(ctx context.Context) ([]status, error) {
	nodes := len(c.List())
	all := make([]status, nodes)
	err := c.Each(func(n *node) error {
		s, err := n.status(ctx)
		if err == nil {
			err = s.synced()
		}
		if err == nil && s.size != nodes {
			err = fmt.Errorf("%s sees %d of %d nodes", n.Name(), s.size, nodes)
		}
		all[n.Number()] = s
		return err
	})
	return all, err
}

// bootstrap makes the component of a node the primary one
// (https://galeracluster.com/library/documentation/quorum-reset.html).
func (n *node) bootstrap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if _, err := n.db.ExecContext(ctx, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'"); err != nil {
		return errors.Join(fmt.Errorf("make the component of %s the primary one", n.Name()), err)
	}
	return nil
}
