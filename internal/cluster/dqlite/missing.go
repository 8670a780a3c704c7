//go:build !dqlite

package dqlite

import (
	"context"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

var errMissing = host.MissingError{Hint: "this stroppy was built without dqlite: install the Debian packages gcc, " +
	"libdqlite-dev, libraft-dev, libuv1-dev and libsqlite3-dev, and build with CGO_LDFLAGS_ALLOW=-Wl,-z,now go build -tags 'dqlite libsqlite3' ./cmd/stroppy"}

// Start returns an error that names the missing packages.
func Start(context.Context, cluster.Options) (cluster.Cluster, error) { return nil, errMissing }

// Serve returns an error that names the missing packages.
func Serve([]string) error { return errMissing }
