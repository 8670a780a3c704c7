//go:build !linux

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// owner names the program that made a record.
type owner struct {
	PID int `json:"pid"`
}

type life int

const (
	dead life = iota
	alive
	elsewhere
)

func thisProcess() (owner, error) { return owner{PID: os.Getpid()}, nil }

// life takes any process that has the owner's number for the owner, so that
// nothing of a living program is cleared.
func (o owner) life() (life, error) {
	err := syscall.Kill(o.PID, 0)
	if err == nil || errors.Is(err, syscall.EPERM) {
		return alive, nil
	}
	return dead, nil
}

func (o owner) sameBoot() (bool, error) { return true, nil }

func lockFolder(folder string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the folder for records of what has to be cleared: %w", err)
	}
	return func() { file.Close() }, nil // which unlocks it
}

// clear takes folders away. Processes cannot be told from others that have got
// their numbers since, and the other kinds are made on Linux alone.
func (l Leftover) clear() (was bool, err error) {
	if l.Kind != LeftFolder {
		return false, nil
	}
	if was, err = removeFolder(l.Name); err != nil {
		return false, fmt.Errorf("clear the %s: %w", l, err)
	}
	return was, nil
}

func mountsBelow(string) ([]string, error) { return nil, nil }
