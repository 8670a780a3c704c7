// Package mariadb starts a real MariaDB server on this machine.
package mariadb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/cluster"
)

// Options say how a server is made.
type Options = cluster.StandaloneOptions

// Superuser is the superuser of every server, which needs no password and can
// come from this machine only.
const Superuser = "root"

const (
	product       = "MariaDB"
	debianPackage = "mariadb-server"
	stopLimit     = 20 * time.Second // for a shutdown in good order, which writes dirty pages
)

// users are those of whom one runs the servers, which refuse root.
var users = []string{"nobody", "mysql"}

// Server is a MariaDB server. Its methods may be called from several
// goroutines.
type Server struct {
	*cluster.Standalone
	flags []string
}

// Bin returns the path of one of MariaDB's programs, such as mariadb, the
// client. If there is none the error is a cluster.MissingError.
func Bin(name string) (string, error) {
	return cluster.Find(name, debianPackage, "/usr/sbin", "/usr/bin", "/usr/libexec")
}

// Start makes a server and returns when it answers.
func Start(ctx context.Context, o Options) (*Server, error) {
	programs, err := findPrograms(false)
	if err != nil {
		return nil, err
	}
	s := &Server{}
	s.Standalone = &cluster.Standalone{
		Product: product, Users: users, Mark: mark,
		Prepare: func(ctx context.Context, settings map[string]string) error {
			return s.prepare(ctx, programs.install, settings)
		},
		Program: cluster.Program{
			Command: func(context.Context) (*exec.Cmd, error) {
				return s.User().Command(context.Background(), s.Dir(), programs.server, s.flags...), nil
			},
			Ready: func(ctx context.Context) error {
				return cluster.Retry(ctx, func() error { return s.answers(ctx) })
			},
			// SIGTERM is the shutdown in good order
			// (https://mariadb.com/docs/server/server-management/starting-and-stopping-mariadb/mariadbd-options).
			Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, Patience: stopLimit,
		},
	}
	if err := s.Make(ctx, o, "stroppy-mariadb-"); err != nil {
		return nil, err
	}
	if _, err := s.SQL(ctx, "CREATE DATABASE IF NOT EXISTS test"); err != nil {
		return nil, errors.Join(fmt.Errorf("start MariaDB in %s: %w", s.Dir(), err), s.Stop())
	}
	return s, nil
}

// answers is nil when the server takes connections, whomever it lets in.
func (s *Server) answers(ctx context.Context) error {
	db, err := open(s.address(), askLimit)
	if err != nil {
		return err
	}
	defer db.Close()
	err = db.PingContext(ctx)
	if _, refused := errors.AsType[*client.MySQLError](err); refused {
		return nil
	}
	return err
}

func (s *Server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())) }

// URL is the address of the database named test for the superuser.
func (s *Server) URL() string { return s.URLFor(Superuser, "", "test") }

// URLFor is the address of a database for a user; an empty password is left out.
func (s *Server) URLFor(user, password, database string) string {
	u := url.URL{Scheme: "mysql", User: url.User(user), Host: s.address(), Path: "/" + database}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// SQL runs statements as the superuser by MariaDB's own client and returns what
// they print, one row a line with tabs between the columns.
func (s *Server) SQL(ctx context.Context, statements string) (string, error) {
	program, err := Bin("mariadb")
	if err != nil {
		return "", err
	}
	cmd := s.User().Command(ctx, s.Dir(), program, "--no-defaults", "--batch", "--skip-column-names", "--protocol=tcp",
		"--host=127.0.0.1", "--port="+strconv.Itoa(s.Port()), "--user="+Superuser, "--execute="+statements)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run SQL on MariaDB in %s: %w: %s", s.Dir(), err, cluster.LastLines(out))
	}
	return strings.TrimSpace(string(out)), nil
}
