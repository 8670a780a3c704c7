//go:build embedded

package cli

import (
	"github.com/spf13/cobra"

	"stroppy/internal/cluster"
)

// What concerns databases with servers is empty in a build with the tag embedded.
func servers() []database { return nil }

func clusterServants() []*cobra.Command { return nil }

var clusterFolders map[[2]string]string

func objectsRemover() remover { return nil }

func objectsClearer() cluster.Clearer { return nil }
