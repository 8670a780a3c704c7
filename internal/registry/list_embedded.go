//go:build embedded

package registry

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/db/memory"
	"stroppy/internal/db/noop"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/exit"
)

// Databases returns the databases that need no server.
func Databases() []Database {
	return []Database{{Driver: sqlite.Driver}, {Driver: memory.Driver}, {Driver: noop.Driver}}
}

func clusterServants() []*cobra.Command { return nil }

var clusterFolders map[[2]string]string

// ownKinds returns nothing in this build.
func ownKinds() []ClusterKind { return nil }

// Serving returns an error in this build.
func Serving(string, bool) (cluster.Cluster, error) {
	return nil, exit.Usagef("this build cannot reach servers, because %s", leftOut)
}

// Releasers returns nothing in this build.
func Releasers() []host.Releaser { return nil }

// ObjectsRemover returns nil in this build.
func ObjectsRemover() remover { return nil }

// ObjectsClearer returns nil in this build.
func ObjectsClearer() host.Clearer { return nil }

// ConnectFromThose returns ctx in this build.
func ConnectFromThose(ctx context.Context, _ []netip.Addr) (context.Context, error) { return ctx, nil }
