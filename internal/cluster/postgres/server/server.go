// Package server starts one real PostgreSQL server on this machine, and has what all kinds of
// PostgreSQL clusters need: sessions, the programs' folders, and shared memory that killed
// servers leave.
package server

import (
	"context"

	"stroppy/internal/cluster"
)

// Superuser is the superuser of every server, which needs no password.
const Superuser = "postgres"

// Product and DebianPackage name the server.
const (
	Product       = "PostgreSQL"
	DebianPackage = "postgresql"
	maxSocketPath = 90 // sun_path of unix(7) has 108 bytes, and the socket's name needs some
)

// PIDFile is in the data of a server from its start until it is shut down in good order.
const PIDFile = "postmaster.pid"

// Users are those of whom one runs the servers, which refuse root.
var Users = []string{"nobody", "postgres"}

// Server is a server alone.
type Server = cluster.Single

// Folders are where distributions keep PostgreSQL's programs.
var Folders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"}

// PGBin returns the path of one of PostgreSQL's programs for clients, such as pgbench:
// the first on PATH, else that of the newest version that is installed. If there is none the error is a
// cluster.MissingError.
func PGBin(name string) (string, error) {
	return cluster.Find(name, DebianPackage, Folders...)
}

// Start starts a server alone. max_connections is as PostgreSQL itself has it, unless the
// options say otherwise.
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
