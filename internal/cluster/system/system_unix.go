//go:build unix

package system

import (
	"errors"
	"os"
	"syscall"
)

// Signals that not every system has.
const (
	Continue = syscall.SIGCONT
	Stop     = syscall.SIGSTOP
	User1    = syscall.SIGUSR1
)

// Kill sends a signal to a process. It returns nil if the process has ended.
func Kill(pid int, signal syscall.Signal) error {
	if err := syscall.Kill(pid, signal); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// Lock waits for the lock of a file. The lock ends with this process, or when the file is closed.
func Lock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }

// TryLock is like Lock, but does not wait.
func TryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// Locked reports whether another process holds the lock of a file.
func Locked(file *os.File) bool {
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// Owner returns the user id of a file's owner.
func Owner(info os.FileInfo) (uid int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(stat.Uid), true
}

// OwnGroup starts a process in its own process group, so that an interrupt at the terminal reaches only this program.
func OwnGroup(attr *syscall.SysProcAttr) { attr.Setpgid = true }

// RunAs starts a process as another user.
func RunAs(attr *syscall.SysProcAttr, uid, gid uint32) {
	attr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
}
