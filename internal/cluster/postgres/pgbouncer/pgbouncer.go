// Package pgbouncer starts PgBouncer, which shares a few sessions of a PostgreSQL server among many clients.
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

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

// Pooler is a running PgBouncer. Its methods may be called from several goroutines.
type Pooler struct {
	*host.Server
	address  string
	config   string // its configuration file
	user     host.User
	as       string // the user of all clients at the server
	settings map[string]string
}

const shutdownLimit = 5 * time.Second // for SIGTERM, which drops all connections

// Start starts a pooler in transaction mode and returns when it answers. All clients work as the user, without a
// password. The settings go into the section [pgbouncer] (PgBouncer documentation, "Configuration"). The error is a
// host.MissingError if PgBouncer is not installed.
func Start(ctx context.Context, server netip.AddrPort, as string, settings map[string]string) (*Pooler, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "stroppy-pgbouncer-")
	if err != nil {
		return nil, err
	}
	return start(ctx, program, dir, server, as, settings)
}

func find() (string, error) { return host.Find("pgbouncer", "pgbouncer", "/usr/sbin") }

// start is like Start with a given program and an empty folder, which Stop removes.
func start(ctx context.Context, program, dir string, server netip.AddrPort, as string, settings map[string]string) (p *Pooler, err error) {
	defer func() {
		if err != nil {
			p, err = nil, errors.Join(fmt.Errorf("start PgBouncer in %s: %w", dir, err), os.RemoveAll(dir))
		}
	}()
	user, err := host.UserFor("PgBouncer", "nobody")
	if err != nil {
		return nil, err
	}
	port, err := host.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	p = &Pooler{
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), config: filepath.Join(dir, "pgbouncer.ini"),
		user: user, as: as, settings: allSettings(port, as, settings),
	}
	p.Server = host.NewServer(context.Background(), 0, nil, dir, filepath.Join(dir, "server.log"), host.Program{
		Command: func(context.Context) (*exec.Cmd, error) {
			return user.Command(context.Background(), dir, program, p.config), nil
		},
		Ready: p.Ready,
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit,
	})
	if err = errors.Join(user.Give(dir), p.write(server)); err == nil {
		err = p.Restart(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// allSettings returns the settings, with this package's defaults.
func allSettings(port int, as string, settings map[string]string) map[string]string {
	all := map[string]string{
		"listen_addr": "127.0.0.1", "listen_port": strconv.Itoa(port), "unix_socket_dir": "",
		"auth_type":   "any", // the user's name does not matter, because everybody works as one user
		"admin_users": as,
		"pool_mode":   "transaction",
		// Startup parameters of PostgreSQL clients that a pooler does not know.
		"ignore_startup_parameters": "extra_float_digits",
	}
	maps.Copy(all, settings)
	return all
}

// write replaces the configuration file atomically.
func (p *Pooler) write(server netip.AddrPort) error {
	text := fmt.Sprintf("[databases]\n* = host=%s port=%d user=%s\n[pgbouncer]\n", server.Addr(), server.Port(), p.as) +
		settingLines(p.settings)
	made := p.config + ".new"
	if err := os.WriteFile(made, []byte(text), 0o644); err != nil {
		return err
	}
	return errors.Join(p.user.Give(made), os.Rename(made, p.config))
}

// settingLines formats settings for the configuration.
func settingLines(settings map[string]string) string {
	return cluster.SettingLines(settings, func(name, value string) string { return name + " = " + value })
}

// Follow sends all transactions from now on to another server, and returns when the pooler's console confirms this.
func (p *Pooler) Follow(ctx context.Context, server netip.AddrPort) error {
	err := p.write(server)
	if err == nil {
		err = p.onConsole(ctx, func(conn *pgconn.PgConn) error {
			_, err := conn.Exec(ctx, "RELOAD").ReadAll()
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("make PgBouncer follow the primary at %s: %w", server, err)
	}
	return nil
}

// onConsole calls do with a connection to the pooler's console ("Admin console" in its documentation).
func (p *Pooler) onConsole(ctx context.Context, do func(*pgconn.PgConn) error) error {
	conn, err := pgconn.Connect(ctx, p.URL(p.as, "pgbouncer", ""))
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(ctx))
}

// Stop ends the pooler and removes its folder.
func (p *Pooler) Stop() error { return p.Erase() }

// Ready returns when the pooler accepts connections.
func (p *Pooler) Ready(ctx context.Context) error {
	return wait.Retry(ctx, func() error {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", p.address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// URL returns the address of a database for a user; parameters may be empty.
func (p *Pooler) URL(user, database, parameters string) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Host: p.address, Path: "/" + database, RawQuery: "sslmode=disable"}
	if parameters != "" {
		u.RawQuery += "&" + parameters
	}
	return u.String()
}
