package postgres

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster"
)

// params are what a cluster takes behind its question mark.
type params struct {
	synchronous bool          // sync: the primary waits for a standby
	strict      bool          // strict: it waits even when there is none
	timeout     time.Duration // timeout: how long a silent server is waited for
	settings    map[string]string
}

// OwnSettings are those by which a cluster finds its nodes and their roles, and leaves nothing in
// /dev/shm of a server that was killed.
var OwnSettings = []string{
	"config_file", "data_directory", "dynamic_shared_memory_type", "hba_file", "hot_standby", "ident_file", "listen_addresses", "port",
	"primary_conninfo", "primary_slot_name", "recovery_target", "recovery_target_timeline", "synchronous_standby_names",
	"unix_socket_directories",
}

// parseParams reads the parameters. The error is a *cluster.ParamError.
func parseParams(values url.Values) (params, error) {
	p := params{synchronous: true, timeout: time.Second, settings: map[string]string{}}
	var fsync bool
	err := cluster.Params{
		Kind: "PostgreSQL's cluster",
		Known: map[string]func(string) error{
			"sync":   cluster.OnOff(&p.synchronous),
			"strict": cluster.OnOff(&p.strict),
			"fsync": func(value string) error {
				p.settings["fsync"] = value
				return cluster.OnOff(&fsync)(value)
			},
			"timeout": cluster.AnswerTimeout(&p.timeout),
		},
		Set: cluster.Settings(Product, "_.", OwnSettings, p.settings),
	}.Read(values)
	if err == nil && p.strict && !p.synchronous {
		err = &cluster.ParamError{Param: "strict", Reason: "a primary that waits for no standby cannot be strict about it: leave out sync=off"}
	}
	return p, err
}

func (n *node) conf() string { return filepath.Join(n.folder, "postgresql.conf") }

// hba is the file that says who may connect.
func (n *node) hba() string { return filepath.Join(n.folder, "pg_hba.conf") }

// configure writes the configuration with which the server starts: as a standby it
// follows the present primary, unless its receiver was stopped.
func (n *node) configure() error { return n.apply(func() error { return nil }) }

// reconfigure is configure for a running server.
func (n *node) reconfigure(ctx context.Context) error {
	return n.apply(func() error { return n.orders.Ask(ctx, "SELECT pg_reload_conf()") })
}

// apply writes the configuration and has the server read it by read.
func (n *node) apply(read func() error) error {
	c := n.cluster
	c.Mu.Lock()
	names, source := c.waitsFor(n), c.source(n)
	c.Mu.Unlock()
	all := map[string]string{
		"listen_addresses":             n.Host().Addr().String(),
		"port":                         n.port(),
		"unix_socket_directories":      n.sockets,
		"cluster_name":                 n.Name(),
		"hot_standby":                  "on",
		"max_connections":              strconv.Itoa(c.Options.MaxConnections(500)),
		"dynamic_shared_memory_type":   "mmap", // files of the data folder, which a kill does not leave elsewhere
		"hot_standby_feedback":         "on",   // a look at a standby shall not stop its replay
		"wal_receiver_status_interval": "1s",
		"wal_receiver_timeout":         "3s",
		"wal_sender_timeout":           "3s",
		"wal_retrieve_retry_interval":  "100ms",
		"wal_keep_size":                "1GB",
		"synchronous_commit":           "local",
		"synchronous_standby_names":    names,
		"primary_conninfo":             "",
	}
	if c.params.synchronous {
		all["synchronous_commit"] = "remote_apply"
	}
	if source != nil {
		all["primary_conninfo"] = source.conninfo(n.Name())
	}
	maps.Copy(all, c.params.settings)
	text := "include " + quoted(filepath.Join(n.Dir(), "postgresql.conf")) + "\n" +
		cluster.SettingLines(all, func(name, value string) string { return name + " = " + quoted(value) })
	draft := n.conf() + ".new"
	err := os.WriteFile(draft, []byte(text), 0o644)
	if err == nil {
		err = os.Rename(draft, n.conf())
	}
	if err == nil {
		err = read()
	}
	if err != nil {
		return fmt.Errorf("configure %s: %w", n.Name(), err)
	}
	c.Mu.Lock()
	n.following = source
	c.Mu.Unlock()
	return nil
}

// waitsFor is the synchronous_standby_names of a node; Mu is held. A primary that waits
// for none of the nodes waits for ever if it is strict.
func (c *Cluster) waitsFor(n *node) string {
	switch {
	case n == c.Primary && c.standby != nil:
		return "FIRST 1 (" + c.standby.Name() + ")"
	case c.params.strict:
		return "FIRST 1 (nobody)"
	}
	return ""
}

// source is whom a node has to follow, nil for nobody; Mu is held.
func (c *Cluster) source(n *node) *node {
	if n.cut || n == c.Primary {
		return nil
	}
	return c.Primary
}

// quoted is a value of postgresql.conf.
func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

// conninfo is how a standby of this name reaches the node.
func (n *node) conninfo(standby string) string {
	return fmt.Sprintf("host=%s port=%d user=%s application_name=%s connect_timeout=2 sslmode=disable gssencmode=disable",
		n.Host().Addr(), n.endpoint.Port(), Superuser, standby)
}
