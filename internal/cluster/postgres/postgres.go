package postgres

import (
	"context"
	"net/url"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// Options say how a server is made.
type Options = cluster.StandaloneOptions

// Superuser is the superuser of every server, which needs no password.
const Superuser = "postgres"

const (
	product       = "PostgreSQL"
	debianPackage = "postgresql"
	stopLimit     = 20 * time.Second // for a fast shutdown, which writes a checkpoint
	maxSocketPath = 90               // sun_path of unix(7) has 108 bytes, and the socket's name needs some
)

// users are those of whom one runs the servers, which refuse root.
var users = []string{"nobody", "postgres"}

// Server is a PostgreSQL server. Its methods may be called from several
// goroutines.
type Server struct {
	*cluster.Standalone
	postmaster *exec.Cmd // started last
}

// PGBin returns the path of one of PostgreSQL's programs, such as pgbench: the
// newest version that is installed. If there is none the error is a
// cluster.MissingError.
func PGBin(name string) (string, error) {
	return cluster.Find(name, debianPackage, "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
}

// Start makes a server and returns when it answers.
func Start(ctx context.Context, o Options) (*Server, error) {
	initdb, err := PGBin("initdb")
	if err != nil {
		return nil, err
	}
	postgres, err := PGBin("postgres")
	if err != nil {
		return nil, err
	}
	s := &Server{}
	s.Standalone = &cluster.Standalone{
		Product: product, Users: users, Mark: "data",
		Prepare: func(ctx context.Context, settings map[string]string) error { return s.prepare(ctx, initdb, settings) },
		Clean:   func() error { return releaseMemory(s.data()) },
		Program: cluster.Program{
			Command: func(context.Context) (*exec.Cmd, error) {
				s.postmaster = s.User().Command(context.Background(), s.Dir(), postgres, "-D", s.data())
				return s.postmaster, nil
			},
			Ready: s.ready,
			// SIGQUIT is the immediate shutdown, in which the postmaster takes its
			// children along; SIGINT is the fast one, which ends all sessions.
			Death: syscall.SIGQUIT, Shutdown: syscall.SIGINT, Patience: stopLimit,
		},
	}
	if err := s.Make(ctx, o, "stroppy-postgres-"); err != nil {
		return nil, err
	}
	return s, nil
}

// URL is the address of the database postgres for the superuser.
func (s *Server) URL() string { return s.URLFor(Superuser, "", Superuser) }

// URLFor is the address of a database for a user; an empty password is left out.
func (s *Server) URLFor(user, password, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(user), Host: "127.0.0.1:" + strconv.Itoa(s.Port()),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}
