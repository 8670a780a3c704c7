//go:build !linux

package host

import (
	"errors"
	"syscall"
)

// dieWith does nothing: only Linux can end a process with its parent. The next start clears it.
func dieWith(*syscall.SysProcAttr, syscall.Signal) {}

func detach(string) error { return errors.New("file systems are mounted only on Linux") }
