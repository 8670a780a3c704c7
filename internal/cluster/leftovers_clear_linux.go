package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
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

// clear takes one thing away, and says so if it was there.
func (l Leftover) clear() (cleared []string, err error) {
	was := false
	switch l.Kind {
	case LeftProcess:
		was, err = killTree(processID{pid: l.PID, start: l.Start})
	case LeftNamespace:
		pids, errKill := killInNamespace(l.Name)
		for _, pid := range pids {
			cleared = append(cleared, "process "+strconv.Itoa(pid)+" in namespace "+l.Name)
		}
		if err = errKill; err == nil {
			_, errStat := os.Lstat(namespacePath(l.Name))
			was, err = errStat == nil, removeNamespace(l.Name)
		}
	case LeftLink:
		was, err = removeLink(l.Name)
	case LeftMount:
		was, err = unmount(l.Name)
	case LeftFolder:
		was, err = removeFolder(l.Name)
	}
	if err != nil {
		return cleared, fmt.Errorf("clear the %s: %w", l, err)
	}
	if was {
		cleared = append(cleared, l.String())
	}
	return cleared, nil
}

// killTree ends a process and its descendants.
func killTree(id processID) (bool, error) {
	if !id.alive() {
		return false, nil
	}
	tree := []processID{id}
	// A stopped process makes no children meanwhile.
	err := id.signal(syscall.SIGSTOP)
	for parents := []int{id.pid}; len(parents) > 0 && err == nil; {
		var children []processID
		children, err = childrenOf(parents)
		parents = nil
		for _, c := range children {
			err = errors.Join(err, c.signal(syscall.SIGSTOP))
			parents = append(parents, c.pid)
		}
		tree = append(tree, children...)
	}
	for _, p := range tree {
		err = errors.Join(err, p.signal(syscall.SIGKILL))
	}
	return true, errors.Join(err, awaitEnd(tree))
}

// endPatience bounds the wait for processes that were sent SIGKILL; one that is
// in the middle of a disk's work ends when that is done.
const endPatience = 10 * time.Second

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

// killInNamespace ends all processes in a named network namespace, but never
// this one, and returns their numbers.
func killInNamespace(name string) ([]int, error) {
	var at unix.Stat_t
	if err := unix.Stat(namespacePath(name), &at); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil, nil
		}
		return nil, fmt.Errorf("look at the network namespace %s: %w", name, err)
	}
	var killed []int
	for limit := time.Now().Add(endPatience); ; {
		ids, err := processesIn(at)
		if err != nil || len(ids) == 0 {
			return killed, err
		}
		for _, id := range ids {
			if err := id.signal(syscall.SIGKILL); err != nil {
				return killed, err
			}
			killed = append(killed, id.pid)
		}
		if err := awaitEnd(ids); err != nil {
			return killed, err
		}
		if time.Now().After(limit) {
			return killed, fmt.Errorf("processes in the network namespace %s start new ones faster than they can be ended", name)
		}
	}
}

// processesIn lists the living processes whose network namespace is this file.
func processesIn(namespace unix.Stat_t) ([]processID, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var ids []processID
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		s, err := readStat(pid)
		if err != nil || s.state == "Z" {
			continue // it has ended since
		}
		var at unix.Stat_t
		if unix.Stat("/proc/"+e.Name()+"/ns/net", &at) == nil && at.Dev == namespace.Dev && at.Ino == namespace.Ino {
			ids = append(ids, processID{pid: pid, start: s.start})
		}
	}
	return ids, nil
}

// removeNamespace takes a namespace's name away, if it is there.
func removeNamespace(name string) error {
	path := namespacePath(name)
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) { // EINVAL: no mount
		return fmt.Errorf("remove the network namespace %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the network namespace %s: %w", name, err)
	}
	return nil
}

// removeLink removes a link with its other end, and tells whether it was there.
func removeLink(name string) (bool, error) {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if notFound := (netlink.LinkNotFoundError{}); errors.As(err, &notFound) || errors.Is(err, unix.ENODEV) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("remove the link %s: %w", name, err)
	}
	return true, nil
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
