package postgres

import (
	"context"

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

// Server is a server alone.
type Server = cluster.Single

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
	return cluster.NewSingle(c, Superuser)
}
