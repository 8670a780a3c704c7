package cli

import (
	"github.com/spf13/cobra"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/disk"
)

// servants are what this program is when a cluster of it starts it once more.
func servants() []*cobra.Command {
	list := []*cobra.Command{
		servant(cluster.FaultFSCommand, "Serve the file system under a node's data", func([]string) error { return disk.Serve(disk.Standard{}) }),
	}
	for _, d := range databases() {
		if d.servant != nil {
			list = append(list, d.servant)
		}
	}
	return list
}

func servant(name, short string, serve func(args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Hidden: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return serve(args) },
	}
}
