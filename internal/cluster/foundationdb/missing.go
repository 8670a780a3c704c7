//go:build !fdb

package foundationdb

import (
	"context"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

var errMissing = host.MissingError{Hint: "this stroppy was built without FoundationDB: install the packages foundationdb-clients and foundationdb-server, " +
	"and build with CGO_ENABLED=1 go build -tags fdb ./cmd/stroppy"}

// Start checks the parameters and returns an error that names the missing packages.
func Start(_ context.Context, o cluster.Options) (cluster.Cluster, error) {
	if _, err := parseParams(o.Params, o.Nodes); err != nil {
		return nil, err
	}
	return nil, errMissing
}
