// Package cgroup puts processes into control groups of Linux that share processors, of version 1 (cpu.shares) and
// version 2 (cpu.weight).
//
// A group is made below the group of its processes. So it competes there like one process, or like one process per
// processor. Version 2 allows groups below a group with processes only if they are threaded
// (https://docs.kernel.org/admin-guide/cgroup-v2.html, "Threads"). So they are made threaded.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster/system"
	"stroppy/internal/cluster/wrap"
)

// Group is a control group for processors.
type Group struct {
	dir     string
	unified bool // version 2
}

// Files of a group. Version 1 has no files for controllers and types.
const (
	processes   = "cgroup.procs"
	threads     = "cgroup.threads"
	controllers = "cgroup.controllers"
	below       = "cgroup.subtree_control"
	typeFile    = "cgroup.type" // the root group has none
	onlyOfRoot  = "release_agent"
	shares      = "cpu.shares"
	weight      = "cpu.weight"
	controller  = "cpu"
)

// Weights of one ordinary process and of the heaviest group, see sched(7).
const (
	oneShare, mostShares  = 1024, 1 << 18
	oneWeight, mostWeight = 100, 10000
)

// Prefix begins the names of the groups that Make makes.
const Prefix = "stroppy-"

// ByPID returns the control group for processors of a process.
func ByPID(pid int) (g Group, err error) {
	defer wrap.Error(&err, "find the control group of process %d", pid)
	if err := system.Supported(); err != nil {
		return g, err
	}
	own, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return g, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return g, err
	}
	return find(string(own), string(mounts))
}

// find finds a group through /proc/PID/cgroup, see cgroups(7), and /proc/PID/mountinfo, see proc(5). It uses version
// 1 if a hierarchy of version 1 has the controller, otherwise version 2.
func find(own, mounts string) (Group, error) {
	paths := map[bool]string{} // by whether they are of version 2
	for line := range strings.Lines(own) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			return Group{}, fmt.Errorf("%q is not a valid line", line)
		}
		if fields[0] == "0" && fields[1] == "" {
			paths[true] = fields[2]
		} else if slices.Contains(strings.Split(fields[1], ","), controller) {
			paths[false] = fields[2]
		}
	}
	for _, unified := range []bool{false, true} {
		if path, is := paths[unified]; is {
			return mounted(mounts, path, unified)
		}
	}
	return Group{}, errors.New("the kernel has no control groups of processors")
}

// mounted returns the group of a path of a hierarchy, in the folder where it is mounted.
func mounted(mounts, path string, unified bool) (Group, error) {
	kind := map[bool]string{false: "cgroup", true: "cgroup2"}[unified]
	for line := range strings.Lines(mounts) {
		place, source, found := strings.Cut(line, " - ")
		at, of := strings.Fields(place), strings.Fields(source)
		if !found || len(at) < 5 || len(of) < 3 || of[0] != kind || !unified && !slices.Contains(strings.Split(of[2], ","), controller) {
			continue
		}
		root := strings.TrimSuffix(at[3], "/")
		if inside, is := strings.CutPrefix(path, root); is && (inside == "" || inside[0] == '/') && !strings.HasPrefix(inside, "/..") {
			return Group{filepath.Join(at[4], inside), unified}, nil
		}
	}
	return Group{}, fmt.Errorf("%s of %s, which is not mounted here: mount it below /sys/fs/cgroup", path, kind)
}

// Dir returns the folder of the group.
func (g Group) Dir() string { return g.dir }

// Child returns the group of a name below, which need not exist.
func (g Group) Child(name string) Group { return Group{filepath.Join(g.dir, Prefix+name), g.unified} }

// Make makes a group that competes with others in its parent like one ordinary process per processor. After an error
// nothing is left of it.
func (g Group) Make(processors int) (err error) {
	defer wrap.Error(&err, "make the control group %s", g.dir)
	return g.parent().locked(func() error {
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			return err
		}
		if err := g.share(processors); err != nil {
			return errors.Join(err, g.remove())
		}
		return nil
	})
}

func (g Group) parent() Group { return Group{filepath.Dir(g.dir), g.unified} }

// locked calls do while no other program makes or removes a group below.
func (g Group) locked(do func() error) error {
	folder, err := os.Open(g.dir)
	if err != nil {
		return err
	}
	defer folder.Close() // closing releases the lock
	if err := system.Lock(folder); err != nil {
		return err
	}
	return do()
}

// share sets the weight of the group.
func (g Group) share(processors int) error {
	above := g.parent()
	if above.sessions() {
		processors = 1 // the competitors are whole sessions, each with the weight of one process
	}
	if !g.unified {
		return g.set(shares, min(processors*oneShare, mostShares))
	}
	has, err := above.words(controllers)
	if err != nil {
		return err
	}
	if !slices.Contains(has, controller) {
		return fmt.Errorf("%s has no controller of processors: start this program by `systemd-run --scope -p Delegate=cpu`", above.dir)
	}
	gives, err := above.words(below)
	if err != nil {
		return err
	}
	if !above.root() {
		if err := g.write(typeFile, "threaded"); err != nil {
			return err
		}
	}
	switch {
	case slices.Contains(gives, controller):
	case above.root(): // it would change the shares of all other groups of the machine
		return fmt.Errorf("the groups below %s have no controller of processors: `echo +cpu > %s`", above.dir, filepath.Join(above.dir, below))
	default:
		if err := above.write(below, "+"+controller); err != nil {
			return err
		}
	}
	return g.set(weight, min(processors*oneWeight, mostWeight))
}

// root reports whether the group is the root of its hierarchy.
func (g Group) root() bool {
	name := onlyOfRoot
	if g.unified {
		name = typeFile
	}
	_, err := os.Stat(filepath.Join(g.dir, name))
	return (err == nil) != g.unified
}

// sessions reports whether the kernel groups the processes of this group by session: see sched(7), "The autogroup
// feature".
func (g Group) sessions() bool {
	text, err := os.ReadFile("/proc/sys/kernel/sched_autogroup_enabled")
	return err == nil && strings.TrimSpace(string(text)) == "1" && g.root()
}

// set writes a number and verifies it.
func (g Group) set(name string, number int) error {
	want := strconv.Itoa(number)
	if err := g.write(name, want); err != nil {
		return err
	}
	is, err := g.words(name)
	if err == nil && !slices.Equal(is, []string{want}) {
		err = fmt.Errorf("%s is %s instead of %s", filepath.Join(g.dir, name), strings.Join(is, " "), want)
	}
	return err
}

func (g Group) write(name, text string) error {
	file, err := os.OpenFile(filepath.Join(g.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

func (g Group) words(name string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, name))
	return strings.Fields(string(text)), err
}

// Add puts a process with all its threads into the group. Its later children belong to the group too.
func (g Group) Add(pid int) error {
	if err := g.write(processes, strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("put process %d into a control group: %w", pid, err)
	}
	return nil
}

// removeLimit bounds the time for which new processes may appear while a group is removed.
const removeLimit, removeEvery = 5 * time.Second, 10 * time.Millisecond

// Remove moves the processes of the group to its parent and removes the group. It reports whether the group existed.
func (g Group) Remove() (was bool, err error) {
	err = g.parent().locked(func() error {
		if _, err := os.Lstat(g.dir); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		was = true
		for until := time.Now().Add(removeLimit); ; time.Sleep(removeEvery) {
			err := g.empty()
			if err == nil {
				err = g.remove()
			}
			if err == nil || time.Now().After(until) {
				return err
			}
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return was, fmt.Errorf("remove the control group %s: %w", g.dir, err)
	}
	return was, nil
}

// empty moves all processes to the parent. A threaded group lists only threads. Moving a thread by its process moves
// the other threads too.
func (g Group) empty() error {
	members := processes
	if g.unified {
		members = threads
	}
	list, err := g.words(members)
	if err != nil {
		return err
	}
	for _, id := range list {
		if moved := g.parent().write(processes, id); moved != nil {
			err = errors.Join(err, moved) // a process that has ended is not in the next list
		}
	}
	return err
}

// remove removes the group. If it was the last one, remove also disables the controller in the parent.
func (g Group) remove() error {
	if err := os.Remove(g.dir); err != nil || !g.unified {
		return err
	}
	above := g.parent()
	entries, err := os.ReadDir(above.dir)
	if err != nil || above.root() || slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
		return err
	}
	gives, err := above.words(below)
	if err == nil && slices.Contains(gives, controller) {
		err = above.write(below, "-"+controller)
	}
	return err
}

// Removable returns the group of a path that Make may have made.
func Removable(dir string) Group {
	_, err := os.Stat(filepath.Join(dir, shares))
	return Group{dir, err != nil}
}
