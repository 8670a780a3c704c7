package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stroppy/internal/cluster/cgroup"
	"stroppy/internal/cluster/system"
)

// clearOrder is the order in which things are removed: what uses another first.
var clearOrder = []LeftoverKind{LeftProcess, LeftShared, LeftGroup, LeftMount, LeftFolder, LeftObjects}

// Clearer removes one thing by the name that its record has, and says whether it was there.
type Clearer func(ctx context.Context, name string) (was bool, err error)

// Releaser gives back what servers that were killed have elsewhere in the machine than in a folder,
// which is removed next and says what that is. The servers may be ending just now.
type Releaser func(folder string) error

// Clear removes what programs of this user that were killed have left behind, as
// their records say, and returns one line for each thing that it removed. What
// belongs to a program that runs, and what no record names, is not touched. A
// record of which something could not be removed stays, for the next time. What is in
// Kubernetes is for ClearObjects. Every folder is shown to all releasers before it goes.
func Clear(ctx context.Context, releasers ...Releaser) ([]string, error) {
	return clearRecords(ctx, nil, releasers)
}

// ClearObjects is Clear for what is in Kubernetes, which may not be reached now.
func ClearObjects(ctx context.Context, remove Clearer) ([]string, error) {
	return clearRecords(ctx, remove, nil)
}

// clearRecords clears the records that name objects, by a Clearer, or without one the others.
func clearRecords(ctx context.Context, objects Clearer, releasers []Releaser) ([]string, error) {
	if _, err := os.Lstat(statePath()); errors.Is(err, os.ErrNotExist) || system.Supported() != nil {
		return nil, nil // nobody has started anything, and no folder is made, as where none can be
	}
	unlock, err := lockRecords()
	if err != nil {
		return nil, err
	}
	defer unlock()
	records, damaged, err := readRecords()
	if err != nil {
		return nil, err
	}
	boot := thisProcess().Boot
	var cleared []string
	for _, r := range slices.Backward(records) { // a later one of the same program may have mounts in a folder of an earlier one
		if r.Alive {
			continue
		}
		if ctx.Err() != nil {
			err = errors.Join(err, fmt.Errorf("clear what earlier runs left behind: %w", ctx.Err()))
			break
		}
		if names := slices.ContainsFunc(r.Made, func(l Leftover) bool { return l.Kind == LeftObjects }); names != (objects != nil) {
			continue
		}
		lines, errOne := r.clear(ctx, boot, objects, releasers)
		cleared = append(cleared, lines...)
		if errOne == nil {
			errOne = os.Remove(r.path)
		}
		if errOne != nil && objects != nil {
			errOne = fmt.Errorf("%w: where all of that Kubernetes cluster is gone, delete %s", errOne, r.path)
		}
		if errOne != nil {
			err = errors.Join(err, fmt.Errorf("clear what process %d left behind: %w", r.PID, errOne))
		}
	}
	for _, path := range damaged { // the owner was killed before it made anything, unless it is writing just now
		if info, errStat := os.Stat(path); errStat == nil && time.Since(info.ModTime()) > time.Minute {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return cleared, err
}

// lockRecords keeps two programs from clearing at once.
func lockRecords() (unlock func(), err error) {
	folder, err := stateFolder()
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = system.Lock(file)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the folder for records of what has to be cleared: %w", err)
	}
	return func() { file.Close() }, nil // which unlocks it
}

// clear removes what one record names. Processes, groups and mounts do not outlive a restart of
// the machine.
func (i RecordInfo) clear(ctx context.Context, boot string, objects Clearer, releasers []Releaser) (cleared []string, err error) {
	for _, kind := range clearOrder {
		for _, l := range slices.Backward(i.Made) { // what was made last first
			if l.Kind != kind || slices.Contains([]LeftoverKind{LeftProcess, LeftShared, LeftGroup, LeftMount}, kind) && i.Boot != boot {
				continue
			}
			was, errOne := l.clear(ctx, objects, releasers)
			if was {
				cleared = append(cleared, fmt.Sprintf("%s, left by process %d (%s)", l, i.PID, i.Kind))
			}
			err = errors.Join(err, errOne)
		}
	}
	return cleared, err
}

// clear removes one thing, and says whether it was there.
func (l Leftover) clear(ctx context.Context, objects Clearer, releasers []Releaser) (was bool, err error) {
	switch l.Kind {
	case LeftObjects:
		was, err = objects(ctx, l.Name)
	case LeftProcess:
		was, err = killTree(processID{pid: l.PID, start: l.Start})
	case LeftShared:
		if s, errOne := readStat(l.PID); errOne != nil || s.start == l.Start { // else the number is another process's
			was = forgetShared(l.PID)
		}
	case LeftGroup:
		was, err = cgroup.Removable(l.Name).Remove()
	case LeftMount:
		was, err = unmount(l.Name)
	case LeftFolder:
		was, err = removeFolder(l.Name, releasers...)
	}
	if err != nil {
		return false, fmt.Errorf("clear %s: %w", l, err)
	}
	return was, nil
}

// endLimit bounds the wait for processes that were sent SIGKILL; one that is
// in the middle of a disk's work ends when that is done, and a namespace when all in it have.
const endLimit = time.Minute

// removeFolder removes a folder with all that is in it, unless something is
// still mounted there. Servers that are just being killed may write meanwhile.
func removeFolder(path string, releasers ...Releaser) (bool, error) {
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
	for _, release := range releasers {
		if err := release(path); err != nil {
			return false, err
		}
	}
	return true, Until(context.Background(), endLimit, func() error { return os.RemoveAll(path) })
}

// unmount removes a mount even while it is in use, and reports whether it was there.
func unmount(path string) (bool, error) {
	mounts, err := mountsBelow(path)
	if err != nil || !slices.Contains(mounts, path) {
		return false, err
	}
	if err := detach(path); err != nil {
		return false, fmt.Errorf("unmount %s: %w", path, err)
	}
	return true, nil
}

// mountsBelow lists the mounts at a path and below it; see /proc/PID/mountinfo in
// proc(5). Asking the file system itself would hang or fail where the program behind
// a mount is dead.
func mountsBelow(path string) (found []string, err error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil && !errors.Is(err, os.ErrNotExist) { // mounts are made on Linux alone
		return nil, fmt.Errorf("list what is mounted: %w", err)
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range bytes.Lines(text) {
		if fields := strings.Fields(string(line)); len(fields) > 4 {
			if at := unescape.Replace(fields[4]); at == path || strings.HasPrefix(at, path+"/") {
				found = append(found, at)
			}
		}
	}
	return found, nil
}
