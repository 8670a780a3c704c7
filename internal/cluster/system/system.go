// Package system wraps the operating system calls that clusters and their records need and that Unix systems share.
// Elsewhere it compiles, and Supported returns an error.
package system

import (
	"fmt"
	"runtime"
)

// Supported returns why no cluster can be started on this system, or nil. Linux is needed because faults and
// leftovers are verified through /proc.
func Supported() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("clusters and their faults need Linux, and this is %s: start the database otherwise, and name its URL with --db", runtime.GOOS)
	}
	return nil
}
