// Package pgbouncer starts PgBouncer, which lends many clients a few sessions of a
// PostgreSQL server.
package pgbouncer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// Pooler is a running PgBouncer. Its methods may be called from several goroutines.
type Pooler struct {
	*cluster.Server
	address string
}

const shutdownLimit = 5 * time.Second // for SIGTERM, which drops all connections

// Start makes a pooler, which lends a session of a server for one transaction, and
// returns when it answers. All clients work there as the user, without a password.
// The settings go into the section [pgbouncer] (PgBouncer documentation,
// "Configuration"). If it is not installed the error is a cluster.MissingError.
func Start(ctx context.Context, server netip.AddrPort, as string, settings map[string]string) (*Pooler, error) {
	program, err := cluster.Find("pgbouncer", "pgbouncer", "/usr/sbin")
	if err != nil {
		return nil, err
	}
	user, err := cluster.UserFor("PgBouncer", "nobody")
	if err != nil {
		return nil, err
	}
	port, err := cluster.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "stroppy-pgbouncer-")
	if err != nil {
		return nil, err
	}
	p := &Pooler{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	config := filepath.Join(dir, "pgbouncer.ini")
	p.Server = cluster.NewServer(0, nil, dir, filepath.Join(dir, "server.log"), cluster.Program{
		Command: func(context.Context) (*exec.Cmd, error) {
			return user.Command(context.Background(), dir, program, config), nil
		},
		Ready: p.ready,
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit,
	})
	err = errors.Join(os.WriteFile(config, []byte(text(port, server, as, settings)), 0o644), user.Give(dir), user.Give(config))
	if err == nil {
		err = p.Restart(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PgBouncer in %s: %w", dir, err), p.Stop())
	}
	return p, nil
}

// text is the configuration file.
func text(port int, server netip.AddrPort, as string, settings map[string]string) string {
	all := map[string]string{
		"listen_addr": "127.0.0.1", "listen_port": strconv.Itoa(port), "unix_socket_dir": "",
		"auth_type": "any", // the user's name is not asked for, for as is everybody's
		"pool_mode": "transaction",
		// What clients of PostgreSQL send at their start and a pooler does not know.
		"ignore_startup_parameters": "extra_float_digits",
	}
	maps.Copy(all, settings)
	return fmt.Sprintf("[databases]\n* = host=%s port=%d user=%s\n[pgbouncer]\n", server.Addr(), server.Port(), as) +
		cluster.SettingLines(all, func(name, value string) string { return name + " = " + value })
}

// Stop ends the pooler and removes its folder.
func (p *Pooler) Stop() error { return p.Erase() }

// ready returns nil once the pooler takes connections.
func (p *Pooler) ready(ctx context.Context) error {
	return cluster.Retry(ctx, func() error {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", p.address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// URL is the address of a database for a user. parameters may be empty.
func (p *Pooler) URL(user, database, parameters string) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Host: p.address, Path: "/" + database, RawQuery: "sslmode=disable"}
	if parameters != "" {
		u.RawQuery += "&" + parameters
	}
	return u.String()
}
