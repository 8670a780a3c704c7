//go:build !linux

package cluster

import (
	"errors"
	"runtime"
)

func newBackend() (backend, error) {
	return nil, errors.New("network namespaces are of Linux, and this is " + runtime.GOOS)
}
