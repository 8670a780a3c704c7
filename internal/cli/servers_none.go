//go:build embedded

package cli

import (
	"context"

	"stroppy/internal/db"
)

// servers is what a build with the tag embedded has in place of all databases with servers.
func servers() []database {
	return []database{{
		schemes: []string{"postgres", "postgresql", "cockroach", "cockroachdb", "etcd", "fdb", "dqlite", "mysql", "mongodb", "voltdb", "infinisql", "redis", "rediss"},
		about:   "postgres://, mysql://, etcd:// and the others  " + onlyEmbedded,
		open: func(context.Context, string) (db.Database, error) {
			return nil, usagef("open the database: %s", onlyEmbedded)
		},
	}}
}

const onlyEmbedded = "not in this build, whose tag embedded leaves out all databases with servers: build it without that tag"

var clusterFolders map[[2]string]string
