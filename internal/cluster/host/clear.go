package host

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
	"stroppy/internal/cluster/wait"
	"stroppy/internal/cluster/wrap"
)

// clearOrder is the order of removal: a thing is removed before the things that it uses.
var clearOrder = []LeftoverKind{LeftFault, LeftProcess, LeftShared, LeftGroup, LeftMount, LeftFolder, LeftObjects}

// Clearer removes the thing that a record names and reports whether it existed.
type Clearer func(ctx context.Context, name string) (was bool, err error)

// Releaser gives back resources outside a folder that belong to killed servers with data in the folder. It is called
// before the folder is removed, and the servers may still be ending.
type Releaser func(folder string) error

// Clear removes what killed programs of this user left behind, according to their records. It returns one line for
// each thing that it removed. Clear does not touch things that no record names, or that belong to a running program.
// The record of a thing that could not be removed stays, so the next call tries again. Objects in Kubernetes are left
// to ClearObjects. Each folder is passed to all releasers before it is removed.
func Clear(ctx context.Context, releasers ...Releaser) ([]string, error) {
	return clearRecords(ctx, nil, releasers)
}

// ClearObjects is like Clear, but for objects in Kubernetes, which may be unreachable.
func ClearObjects(ctx context.Context, remove Clearer) ([]string, error) {
	return clearRecords(ctx, remove, nil)
}

// clearRecords clears the records that name objects if a Clearer is given, and all other records if not.
func clearRecords(ctx context.Context, objects Clearer, releasers []Releaser) ([]string, error) {
	if _, err := os.Lstat(statePath()); errors.Is(err, os.ErrNotExist) || system.Supported() != nil {
		return nil, nil // nothing was ever started by this user; do not create the folder
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
	for _, r := range slices.Backward(records) { // newest first: a later record may have mounts in a folder of an earlier one
		if r.Alive {
			continue
		}
		if ctx.Err() != nil {
			err = errors.Join(err, fmt.Errorf("clear the leftovers of earlier runs: %w", ctx.Err()))
			break
		}
		if r.has(LeftObjects) != (objects != nil) {
			continue
		}
		lines, errOne := r.clear(ctx, boot, objects, releasers)
		cleared = append(cleared, lines...)
		if errOne == nil {
			errOne = os.Remove(r.path)
		}
		switch {
		case errOne != nil && objects != nil:
			errOne = fmt.Errorf("%w: if that Kubernetes cluster no longer exists, delete %s", errOne, r.path)
		case errOne != nil && r.has(LeftFault):
			errOne = fmt.Errorf("%w, and then delete %s", errOne, r.path)
		}
		if errOne != nil {
			err = errors.Join(err, fmt.Errorf("clear the leftovers of process %d: %w", r.PID, errOne))
		}
	}
	for _, path := range damaged { // the owner was killed before it started anything, unless it is writing just now
		if info, errStat := os.Stat(path); errStat == nil && time.Since(info.ModTime()) > time.Minute {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return cleared, err
}

// lockRecords prevents two programs from clearing at the same time.
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
		return nil, fmt.Errorf("lock the folder of cleanup records: %w", err)
	}
	return func() { file.Close() }, nil // closing releases the lock
}

// has reports whether the record names a thing of a kind.
func (i RecordInfo) has(kind LeftoverKind) bool {
	return slices.ContainsFunc(i.Made, func(l Leftover) bool { return l.Kind == kind })
}

// clear removes what one record names. Processes, groups and mounts of an earlier boot are skipped, because they did
// not survive the restart.
func (i RecordInfo) clear(ctx context.Context, boot string, objects Clearer, releasers []Releaser) (cleared []string, err error) {
	for _, kind := range clearOrder {
		for _, l := range slices.Backward(i.Made) { // newest first
			if l.Kind != kind || slices.Contains([]LeftoverKind{LeftProcess, LeftShared, LeftGroup, LeftMount}, kind) && i.Boot != boot {
				continue
			}
			was, errOne := l.clear(ctx, objects, releasers)
			if was && errOne == nil {
				cleared = append(cleared, fmt.Sprintf("%s, left by process %d (%s)", l, i.PID, i.Kind))
			}
			err = errors.Join(err, errOne)
		}
	}
	return cleared, err
}

// clear removes one thing and reports whether it existed.
func (l Leftover) clear(ctx context.Context, objects Clearer, releasers []Releaser) (was bool, err error) {
	defer wrap.Error(&err, "clear %s", l)
	switch l.Kind {
	case LeftObjects:
		was, err = objects(ctx, l.Name)
	case LeftFault:
		was = true
		limited, cancel := context.WithTimeout(ctx, healLimit)
		defer cancel()
		if _, err = Shell(limited, l.Name); err != nil {
			err = fmt.Errorf("%w: run it by hand", err)
		}
	case LeftProcess:
		was, err = killTree(processID{pid: l.PID, start: l.Start})
	case LeftShared:
		if s, errOne := readStat(l.PID); errOne != nil || s.start == l.Start { // otherwise the number belongs to another process
			was = forgetShared(l.PID)
		}
	case LeftGroup:
		was, err = cgroup.Removable(l.Name).Remove()
	case LeftMount:
		was, err = unmount(l.Name)
	case LeftFolder:
		was, err = removeFolder(l.Name, releasers...)
	}
	return was, err
}

// healLimit bounds the command that heals a fault of a killed program.
const healLimit = 2 * time.Minute

// EndLimit bounds the wait for processes after SIGKILL. A process in the middle of a disk operation ends when the
// operation does. A namespace ends with its last process.
const EndLimit = time.Minute

// removeFolder removes a folder and its contents, unless something is still mounted there. Servers that are being
// killed may still write to it.
func removeFolder(path string, releasers ...Releaser) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, fmt.Errorf("%s is no longer a folder: inspect it and remove it", path)
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
	return true, wait.Until(context.Background(), EndLimit, func() error { return os.RemoveAll(path) })
}

// unmount removes a mount, even one in use, and reports whether it existed.
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

// mountsBelow lists the mounts at a path and below it; see /proc/PID/mountinfo in proc(5). It does not ask the file
// system, because the call would hang or fail if the program behind the mount is dead.
func mountsBelow(path string) (found []string, err error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil && !errors.Is(err, os.ErrNotExist) { // only Linux has mounts of ours
		return nil, fmt.Errorf("list mounts: %w", err)
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
