//go:build unix

package session

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"stroppy/internal/exit"
)

// LockDirectory keeps other calls of stroppy out of a directory until the
// function that it returns is called, or this process ends.
func LockDirectory(path string) (unlock func(), err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		dir.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, exit.Usagef("another stroppy works in %s: wait for its end, or take another directory", path)
		}
		return nil, fmt.Errorf("lock the directory %s: %w", path, err)
	}
	return func() { dir.Close() }, nil
}
