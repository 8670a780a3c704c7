//go:build !dqlite

package dqlite

import (
	"context"

	"stroppy/internal/cluster"
)

var errMissing = cluster.MissingError{Hint: "this stroppy was built without dqlite: install the Debian packages libdqlite-dev and libsqlite3-dev, " +
	"and build with CGO_LDFLAGS_ALLOW=-Wl,-z,now go build -tags 'dqlite libsqlite3' ./cmd/stroppy"}

// Start says what is missing.
func Start(context.Context, cluster.Options) (cluster.Cluster, error) { return nil, errMissing }

// Serve says what is missing.
func Serve([]string) error { return errMissing }
