package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockFolder keeps two programs from clearing at once.
func lockFolder(folder string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the folder for records of what has to be cleared: %w", err)
	}
	return func() { file.Close() }, nil // which unlocks it
}

// clear takes one thing away, and says whether it was there.
func (l Leftover) clear() (was bool, err error) {
	switch l.Kind {
	case LeftProcess:
		was, err = killTree(processID{pid: l.PID, start: l.Start})
	case LeftMount:
		was, err = unmount(l.Name)
	case LeftFolder:
		was, err = removeFolder(l.Name)
	}
	if err != nil {
		return false, fmt.Errorf("clear the %s: %w", l, err)
	}
	return was, nil
}

// killTree ends a process and its descendants.
func killTree(id processID) (bool, error) {
	if !id.alive() {
		return false, nil
	}
	err := id.signal(syscall.SIGSTOP)
	if err != nil {
		return true, err
	}
	tree, err := descendants(id.pid, true)
	tree = append(tree, id)
	for _, p := range tree {
		err = errors.Join(err, p.signal(syscall.SIGKILL))
	}
	return true, errors.Join(err, awaitEnd(tree))
}

func awaitEnd(ids []processID) error {
	limit := time.Now().Add(endPatience)
	for _, id := range ids {
		for id.alive() {
			if time.Now().After(limit) {
				return fmt.Errorf("process %d has not ended %v after SIGKILL", id.pid, endPatience)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// unmount takes a mount away even while it is in use, and tells whether it was
// there.
func unmount(path string) (bool, error) {
	mounts, err := mountsBelow(path)
	if err != nil {
		return false, err
	}
	if len(mounts) == 0 || mounts[0] != path {
		return false, nil
	}
	err = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EPERM) {
		for _, program := range []string{"fusermount3", "fusermount"} { // how users unmount what they mounted by FUSE
			if err = exec.Command(program, "-u", "-z", path).Run(); err == nil {
				break
			}
		}
	}
	if err != nil {
		return false, fmt.Errorf("unmount %s: %w", path, err)
	}
	return true, nil
}

// mountsBelow lists the mounts at a path and below it, that at the path first;
// see /proc/PID/mountinfo in proc(5). Asking the file system itself would hang
// or fail where the program behind a mount is dead.
func mountsBelow(path string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list what is mounted: %w", err)
	}
	var found []string
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 5 {
			continue
		}
		switch at := unescape(fields[4]); {
		case at == path:
			found = append([]string{at}, found...)
		case strings.HasPrefix(at, path+"/"):
			found = append(found, at)
		}
	}
	return found, nil
}

// unescape reads the octal escapes of blanks, tabs, line ends and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// owner names the program that made a record, for ever and across machines'
// restarts and containers.
type owner struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // see processID
	Boot  string `json:"boot"`  // the kernel's id of the time since it was started
	Space string `json:"space"` // the namespace of process numbers
}

type life int

const (
	dead life = iota
	alive
	elsewhere // in a namespace of process numbers that is not ours
)

func thisProcess() (owner, error) {
	s, err := readStat(os.Getpid())
	if err != nil {
		return owner{}, fmt.Errorf("look at this process: %w", err)
	}
	boot, space, err := bootAndSpace()
	return owner{PID: os.Getpid(), Start: s.start, Boot: boot, Space: space}, err
}

// bootAndSpace reads random(4)'s boot_id and namespaces(7)'s link.
func bootAndSpace() (boot, space string, err error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", "", fmt.Errorf("look at when this machine was started: %w", err)
	}
	if space, err = os.Readlink("/proc/self/ns/pid"); err != nil {
		return "", "", fmt.Errorf("look at this process: %w", err)
	}
	return string(bytes.TrimSpace(id)), space, nil
}

func (o owner) life() (life, error) {
	boot, space, err := bootAndSpace()
	switch {
	case err != nil:
		return elsewhere, err
	case o.Boot != boot:
		return dead, nil
	case o.Space != space:
		return elsewhere, nil
	case processID{pid: o.PID, start: o.Start}.alive():
		return alive, nil
	}
	return dead, nil
}

// sameBoot tells that the machine was not started again since.
func (o owner) sameBoot() (bool, error) {
	boot, _, err := bootAndSpace()
	return boot == o.Boot, err
}
