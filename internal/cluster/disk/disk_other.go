//go:build !linux

package disk

import "errors"

// Serve is for Linux alone.
func Serve() error {
	return errors.New("put a file system under the data of a node: that needs FUSE on Linux")
}
