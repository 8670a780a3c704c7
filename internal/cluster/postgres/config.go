package postgres

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

func (n *node) conf() string { return filepath.Join(n.folder, "postgresql.conf") }

// hba is the file that says who may connect.
func (n *node) hba() string { return filepath.Join(n.folder, "pg_hba.conf") }

// configure writes the server's configuration as names and source say. A running
// server has to be told to read it.
func (n *node) configure() error {
	c := n.cluster
	c.Mu.Lock()
	names, source := n.names, n.source
	c.Mu.Unlock()
	all := map[string]string{
		"listen_addresses":             n.Host().Addr().String(),
		"port":                         n.port(),
		"unix_socket_directories":      n.sockets,
		"cluster_name":                 n.Name(),
		"hot_standby":                  "on",
		"max_connections":              "500",
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
	text := "include " + quoted(filepath.Join(n.Dir(), "postgresql.conf")) + "\n" + settingsText(all)
	draft := n.conf() + ".new"
	if err := os.WriteFile(draft, []byte(text), 0o644); err != nil {
		return fmt.Errorf("configure %s: %w", n.Name(), err)
	}
	if err := os.Rename(draft, n.conf()); err != nil {
		return fmt.Errorf("configure %s: %w", n.Name(), err)
	}
	return nil
}

// reconfigure is configure for a running server.
func (n *node) reconfigure(ctx context.Context) error {
	if err := n.configure(); err != nil {
		return err
	}
	if _, err := n.orders.ask(ctx, "SELECT pg_reload_conf()"); err != nil {
		return fmt.Errorf("have %s read its configuration again: %w", n.Name(), err)
	}
	return nil
}

// conninfo is how a standby of this name reaches the node.
func (n *node) conninfo(standby string) string {
	return fmt.Sprintf("host=%s port=%d user=%s application_name=%s connect_timeout=2 sslmode=disable gssencmode=disable",
		n.Host().Addr(), n.endpoint.Port(), Superuser, standby)
}
