//go:build unix

package system

import (
	"errors"
	"os"
	"syscall"
)

// The signals that not every system has.
const (
	Continue = syscall.SIGCONT
	Stop     = syscall.SIGSTOP
	User1    = syscall.SIGUSR1
)

// Kill sends a signal to a process; one that has ended ignores it.
func Kill(pid int, signal syscall.Signal) error {
	if err := syscall.Kill(pid, signal); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// Lock waits for the lock of a file, which ends with this process or when the file is closed.
func Lock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }

// TryLock is Lock without waiting.
func TryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// Locked says that another holds the lock of a file.
func Locked(file *os.File) bool {
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// Owner returns the number of the user whose file this is.
func Owner(info os.FileInfo) (uid int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(stat.Uid), true
}

// OwnGroup starts a process in a group of its own: an interrupt typed at a terminal is for
// this program alone.
func OwnGroup(attr *syscall.SysProcAttr) { attr.Setpgid = true }

// RunAs starts a process as another user.
func RunAs(attr *syscall.SysProcAttr, uid, gid uint32) {
	attr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
}
