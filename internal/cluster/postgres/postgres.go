package postgres

import (
	"context"
	"net/url"

	"stroppy/internal/cluster"
)

// Superuser is the superuser of every server, which needs no password.
const Superuser = "postgres"

const (
	product       = "PostgreSQL"
	debianPackage = "postgresql"
	maxSocketPath = 90 // sun_path of unix(7) has 108 bytes, and the socket's name needs some
)

// users are those of whom one runs the servers, which refuse root.
var users = []string{"nobody", "postgres"}

// Server is the one node of a cluster, as cluster.Alone describes it. Its methods may
// be called from several goroutines.
type Server struct{ *node }

// PGBin returns the path of one of PostgreSQL's programs, such as pgbench: the
// newest version that is installed. If there is none the error is a
// cluster.MissingError.
func PGBin(name string) (string, error) {
	return cluster.Find(name, debianPackage, "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
}

// Start is StartCluster for a server alone. What a cluster sets for its standbys is as
// PostgreSQL itself has it, unless the options say otherwise.
func Start(ctx context.Context, o cluster.Options) (*Server, error) {
	for name, value := range map[string]string{
		"synchronous_commit": "on", "wal_keep_size": "0", "hot_standby_feedback": "off", "max_connections": "100",
	} {
		if name = "set." + name; !o.Params.Has(name) {
			o.Params.Set(name, value)
		}
	}
	c, err := StartCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Server{c.List()[0]}, nil
}

// Stop ends the server and removes all that was made for it.
func (s *Server) Stop() error { return s.cluster.Stop() }

// Restart shuts the server down in good order if it runs, and starts it again with the
// same data.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Terminate(ctx); err != nil {
		return err
	}
	return s.node.Restart(ctx)
}

// Port is the server's TCP port on 127.0.0.1.
func (s *Server) Port() int { return int(s.endpoint.Port()) }

// URL is the address of the database postgres for the superuser.
func (s *Server) URL() string { return s.URLFor(Superuser, "", Superuser) }

// URLFor is the address of a database for a user; an empty password is left out.
func (s *Server) URLFor(user, password, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(user), Host: s.address(),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}
