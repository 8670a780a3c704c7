//go:build !linux

package cluster

import "syscall"

// dieWith is of Linux alone: elsewhere a process outlives a program that was
// killed, and the next start clears it away.
func dieWith(*syscall.SysProcAttr, syscall.Signal) {}
