// Package system is what the operating system does for clusters and their records, as far as
// Unix systems agree. Elsewhere everything compiles, and Supported refuses it.
package system

import (
	"fmt"
	"runtime"
)

// Supported says why no cluster can be started here. Kill, pause and what a crash has left
// are seen in /proc, so that a fault would not be verified without it.
func Supported() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("clusters and their faults need Linux, and this is %s: start the database otherwise, and name its URL with --db", runtime.GOOS)
	}
	return nil
}
