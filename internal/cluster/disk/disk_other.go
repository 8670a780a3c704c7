//go:build !linux

package disk

import "errors"

// Serve fails: it needs Linux.
func Serve() error {
	return errors.New("a fault file system needs FUSE on Linux")
}
