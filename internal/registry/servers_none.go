//go:build embedded

package registry

import (
	"context"
	"net/netip"
	"stroppy/internal/cluster/host"

	"github.com/spf13/cobra"
)

// A build with the tag embedded has no databases with servers.
func servers() []Database { return nil }

func clusterServants() []*cobra.Command { return nil }

var clusterFolders map[[2]string]string

// Releasers returns nothing in this build.
func Releasers() []host.Releaser { return nil }

// ObjectsRemover returns nil in this build.
func ObjectsRemover() remover { return nil }

// ObjectsClearer returns nil in this build.
func ObjectsClearer() host.Clearer { return nil }

// ConnectFromThose returns ctx in this build.
func ConnectFromThose(ctx context.Context, _ []netip.Addr) (context.Context, error) { return ctx, nil }
