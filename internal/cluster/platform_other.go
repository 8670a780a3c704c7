//go:build !linux

package cluster

import (
	"errors"
	"runtime"
	"syscall"
)

// dieWith is of Linux alone: elsewhere a process outlives a program that was
// killed, and the next start clears it away.
func dieWith(*syscall.SysProcAttr, syscall.Signal) {}

func detach(string) error { return errors.New("file systems are mounted on Linux alone") }

func newBackend() (backend, error) {
	return nil, errors.New("network namespaces are of Linux, and this is " + runtime.GOOS)
}
