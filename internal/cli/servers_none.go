//go:build embedded

package cli

// servers and clusterFolders are empty in a build with the tag embedded.
func servers() []database { return nil }

var clusterFolders map[[2]string]string
