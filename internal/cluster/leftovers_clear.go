package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// clearOrder is in which order things are taken away: what uses another first.
var clearOrder = []LeftoverKind{LeftProcess, LeftMount, LeftFolder}

// Clear takes away what programs of this user that were killed have left
// behind, as their records say, and returns one line for each thing that it took
// away. What belongs to a program that runs, and what no record names, is not
// touched. A record of which something could not be taken away stays, for the
// next time.
func Clear(ctx context.Context) ([]string, error) {
	folder, err := stateFolder()
	if err != nil {
		return nil, err
	}
	unlock, err := lockFolder(folder)
	if err != nil {
		return nil, err
	}
	defer unlock()
	records, err := Records()
	if err != nil {
		return nil, err
	}
	var cleared []string
	for _, r := range slices.Backward(records) { // a later one of the same program may have mounts in a folder of an earlier one
		if r.Alive {
			continue
		}
		if ctx.Err() != nil {
			err = errors.Join(err, fmt.Errorf("clear what earlier runs left behind: %w", ctx.Err()))
			break
		}
		lines, errOne := r.clear()
		cleared = append(cleared, lines...)
		if errOne == nil {
			errOne = os.Remove(r.path)
		}
		if errOne != nil {
			err = errors.Join(err, fmt.Errorf("clear what process %d left behind: %w", r.PID, errOne))
		}
	}
	return cleared, errors.Join(err, removeEmptyRecords(folder))
}

// clear takes away what one record names.
func (i RecordInfo) clear() (cleared []string, err error) {
	sameBoot, err := i.owner.sameBoot()
	if err != nil {
		return nil, err
	}
	for _, kind := range clearOrder {
		for _, l := range slices.Backward(i.Made) { // what was made last first
			if l.Kind != kind || kind != LeftFolder && !sameBoot {
				continue // nothing but folders outlives a restart of the machine
			}
			was, errOne := l.clear()
			if was {
				cleared = append(cleared, fmt.Sprintf("%s, left by process %d (%s)", l, i.PID, i.Kind))
			}
			err = errors.Join(err, errOne)
		}
	}
	return cleared, err
}

// endPatience bounds the wait for processes that were sent SIGKILL; one that is
// in the middle of a disk's work ends when that is done.
const endPatience = 10 * time.Second

// removeFolder removes a folder with all that is in it, unless something is
// still mounted there. Servers that are just being killed may write meanwhile.
func removeFolder(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, fmt.Errorf("%s is not a folder any more: look at it and remove it", path)
	}
	mounts, err := mountsBelow(path)
	if err != nil {
		return false, err
	}
	if len(mounts) > 0 {
		return false, fmt.Errorf("something is mounted at %s: unmount it", mounts[0])
	}
	for limit := time.Now().Add(endPatience); ; time.Sleep(10 * time.Millisecond) {
		if err = os.RemoveAll(path); err == nil || time.Now().After(limit) {
			return true, err
		}
	}
}

// removeEmptyRecords removes records whose owner was killed before it wrote its
// name, and so before it made anything.
func removeEmptyRecords(folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*"+recordSuffix))
	if err != nil {
		return fmt.Errorf("list the records: %w", err)
	}
	for _, path := range paths {
		info, errStat := os.Stat(path)
		if errStat != nil || time.Since(info.ModTime()) < time.Minute {
			continue // it may be being written
		}
		text, errRead := os.ReadFile(path)
		if errRead != nil {
			continue // another program of the user has closed it
		}
		if _, whole := parseRecord(text); !whole {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}
