package cli

import (
	"github.com/spf13/cobra"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/disk"
	"stroppy/internal/cluster/dqlite"
)

// servants are what this program is when a cluster of it starts it once more.
func servants() []*cobra.Command {
	servant := func(name, short string, serve func(args []string) error) *cobra.Command {
		return &cobra.Command{
			Use: name, Short: short, Hidden: true, Args: cobra.ArbitraryArgs,
			RunE: func(_ *cobra.Command, args []string) error { return serve(args) },
		}
	}
	return []*cobra.Command{
		servant(cluster.FaultFSCommand, "Serve the file system under a node's data", func([]string) error { return disk.Serve(disk.Standard{}) }),
		servant(dqlite.NodeCommand, "Be a node of dqlite", dqlite.Serve),
	}
}
