package cli

import (
	"github.com/spf13/cobra"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/disk"
)

// diskLayerCommand serves the file system under the data of one node, for the
// stroppy that starts it and speaks to it by standard input and output.
func (a *app) diskLayerCommand() *cobra.Command {
	return &cobra.Command{
		Use: cluster.FaultFSCommand, Short: "Serve the file system under a node's data", Hidden: true, Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return disk.Serve(disk.Standard{}) },
	}
}
