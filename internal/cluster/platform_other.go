//go:build !linux

package cluster

import (
	"errors"
	"syscall"
)

// dieWith is of Linux alone: elsewhere a process outlives a program that was
// killed, and the next start clears it away.
func dieWith(*syscall.SysProcAttr, syscall.Signal) {}

func detach(string) error { return errors.New("file systems are mounted on Linux alone") }
