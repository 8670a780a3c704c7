//go:build !unix

package system

import (
	"os"
	"syscall"
)

// Linux's numbers of these signals; nothing is sent here.
const (
	User1    = syscall.Signal(10)
	Continue = syscall.Signal(18)
	Stop     = syscall.Signal(19)
)

// Kill fails, because clusters have no processes here.
func Kill(int, syscall.Signal) error { return Supported() }

// Lock fails, because clusters have no records here.
func Lock(*os.File) error { return Supported() }

// TryLock fails like Lock.
func TryLock(*os.File) error { return Supported() }

// Locked returns false, because nobody can hold a lock.
func Locked(*os.File) bool { return false }

// Owner returns false, because the owner is not known.
func Owner(os.FileInfo) (uid int, known bool) { return 0, false }

// OwnGroup does nothing.
func OwnGroup(*syscall.SysProcAttr) {}

// RunAs does nothing, because nobody is root here.
func RunAs(_ *syscall.SysProcAttr, _, _ uint32) {}
