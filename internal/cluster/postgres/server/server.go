// Package server starts one real PostgreSQL server on this machine. It also holds the parts that all PostgreSQL
// clusters share: sessions, the folders of the programs, and the release of killed servers' shared memory.
package server

import (
	"context"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

// Superuser is the superuser of every server, which needs no password.
const Superuser = "postgres"

// Product and DebianPackage name the server.
const (
	Product       = "PostgreSQL"
	DebianPackage = "postgresql"
	maxSocketPath = 90 // sun_path of unix(7) has 108 bytes, and the socket's name needs some
)

// PIDFile exists in the data of a server from its start until a clean shutdown.
const PIDFile = "postmaster.pid"

// Users are the candidates for the user of the servers, which refuse root.
var Users = []string{"nobody", "postgres"}

// Server is a single server.
type Server = cluster.Single

// Folders are the folders of PostgreSQL's programs in distributions.
var Folders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"}

// PGBin returns the path of one of PostgreSQL's client programs, such as pgbench: the first on PATH, or else the
// newest installed version. The error is a host.MissingError if there is none.
func PGBin(name string) (string, error) {
	return host.Find(name, DebianPackage, Folders...)
}

// Start starts a single server. max_connections has PostgreSQL's default, unless the options set it.
func Start(ctx context.Context, o cluster.Options) (*Server, error) {
	if !o.Params.Has("set.max_connections") {
		o.Params.Set("set.max_connections", "100")
	}
	c, err := StartCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	return cluster.NewSingle(c, Superuser)
}
