//go:build !unix

package system

import (
	"os"
	"syscall"
)

// Their numbers on Linux; nothing is sent here.
const (
	User1    = syscall.Signal(10)
	Continue = syscall.Signal(18)
	Stop     = syscall.Signal(19)
)

// Kill fails: no cluster has processes here.
func Kill(int, syscall.Signal) error { return Supported() }

// Lock fails: no cluster has records here.
func Lock(*os.File) error { return Supported() }

// TryLock fails as Lock does.
func TryLock(*os.File) error { return Supported() }

// Locked is false: nobody can hold a lock.
func Locked(*os.File) bool { return false }

// Owner is not known.
func Owner(os.FileInfo) (uid int, known bool) { return 0, false }

// OwnGroup changes nothing.
func OwnGroup(*syscall.SysProcAttr) {}

// RunAs changes nothing; nobody is root here.
func RunAs(_ *syscall.SysProcAttr, _, _ uint32) {}
