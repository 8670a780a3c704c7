// Package postgres starts real PostgreSQL servers on this machine: a Server is
// one of them alone, a Cluster is a primary with its standbys and a supervisor of our
// own, for the reasons that cluster.Failover gives; what it does is what Patroni does
// with synchronous_mode.
//
// # Which standby may be promoted
//
// One that is registered, which means: it has everything that the primary has
// acknowledged, and the primary acknowledges nothing before it has it. A standby
// is registered when that has become true (see Cluster.admit), and loses its
// registration before the primary stops waiting for it. So whatever moment the
// primary is lost at, either the registered standby has everything, or none is
// registered and the primary is waited for, or started again on its own data.
// With sync=off there is no such rule, and a fail-over can lose what was
// acknowledged.
//
// A primary that was given up comes back as a standby, with a new copy of the
// data, for its own may hold what nobody else ever had.
package postgres

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
	return cluster.NewSingle(c, Superuser)
}
