//go:build unix

package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockDirectory keeps other calls of stroppy out of a directory until the
// function that it returns is called, or this process ends.
func lockDirectory(path string) (unlock func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		dir.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, usagef("another stroppy works in %s: wait for its end, or take another directory", path)
		}
		return nil, fmt.Errorf("lock the directory %s: %w", path, err)
	}
	return func() { dir.Close() }, nil
}

// detached lets a process live on after the terminal of its parent is gone.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
