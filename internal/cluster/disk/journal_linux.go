package disk

import (
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// change is a change of names that is not safe yet.
type change struct {
	number  uint64
	touched []*inode     // each has a reference for it
	names   []place      // names that the kernel must look up again after undo
	undo    func() error // called after all later changes are undone; nil: nothing to do
	settle  func() error // called when it and all earlier changes are safe; nil: nothing to do
}

type place struct {
	parent *inode
	name   string
}

// record appends a change to the journal; the caller holds names.
func (v *volume) record(c change) {
	v.last++
	c.number = v.last
	for _, in := range c.touched {
		v.keep(in)
		in.changed = c.number
	}
	v.journal = append(v.journal, c)
}

// changing begins a change of names, of which only one is made at a time, and ends with done.
func (v *volume) changing() (done func()) {
	v.gate.RLock()
	v.names.Lock()
	return func() {
		v.names.Unlock()
		v.gate.RUnlock()
	}
}

// settle makes the journal safe up to a change; the caller holds names.
func (v *volume) settle(upTo uint64) (err error) {
	done := 0
	for _, c := range v.journal {
		if c.number > upTo {
			break
		}
		done++
		if c.settle != nil {
			err = errors.Join(err, c.settle())
		}
		for _, in := range c.touched {
			v.release(in, 1)
		}
	}
	v.journal = slices.Delete(v.journal, 0, done)
	return err
}

// bury removes a name and keeps its file in the grave. unbury restores the name, and rot makes the loss final. The
// caller holds names.
func (v *volume) bury(p place, in *inode) (unbury, rot func() error, err error) {
	plot := strconv.FormatUint(v.last+1, 10)
	if err := unix.Renameat(p.parent.fd, p.name, v.grave, plot); err != nil {
		return nil, nil, err
	}
	in.buried.Add(1)
	unbury = func() error {
		err := unix.Renameat(v.grave, plot, p.parent.fd, p.name)
		if err == nil {
			in.buried.Add(-1)
		}
		return err
	}
	rot = func() error {
		err := unlink(v.grave, plot)
		if err == nil {
			in.buried.Add(-1)
		}
		return err
	}
	return unbury, rot, nil
}

// openLimit bounds the wait until the kernel has closed the files of a process that has just ended.
const openLimit = 5 * time.Second

// lose restores the safe state of the volume. It fails while a process has a file open for writing.
func (v *volume) lose() error {
	for limit := time.Now().Add(openLimit); ; time.Sleep(time.Millisecond) {
		v.gate.Lock()
		err := v.writable()
		if err == nil {
			break
		}
		v.gate.Unlock()
		if time.Now().After(limit) {
			return err
		}
	}
	stale, err := v.rollBack()
	known := v.known()
	v.gate.Unlock()
	// No lock is held, because the kernel may need an answer from here before it forgets.
	for _, p := range stale {
		v.forgotten(v.kernel.EntryNotify(p.parent.id, p.name))
	}
	for _, in := range known {
		v.forgotten(v.kernel.InodeNotify(in.id, 0, 0))
	}
	return err
}

// rollBack restores contents and names; the caller holds gate.
func (v *volume) rollBack() (stale []place, err error) {
	v.names.Lock()
	defer v.names.Unlock()
	for _, in := range v.known() {
		in.mu.Lock()
		errOne := v.restore(in)
		in.mu.Unlock()
		if errOne != nil {
			err = errors.Join(err, fmt.Errorf("restore the synced content of %s: %w", v.describe(in), errOne))
		}
	}
	for _, c := range slices.Backward(v.journal) {
		if c.undo != nil {
			if errOne := c.undo(); errOne != nil {
				err = errors.Join(err, fmt.Errorf("undo a change of names: %w", errOne))
			}
		}
		stale = append(stale, c.names...)
		for _, in := range c.touched {
			v.release(in, 1)
		}
	}
	v.journal = nil
	return stale, err
}

// syncAll makes the whole state safe at one moment.
func (v *volume) syncAll() error {
	v.gate.Lock()
	defer v.gate.Unlock()
	v.names.Lock()
	defer v.names.Unlock()
	for _, in := range v.known() {
		in.mu.Lock()
		v.secure(in)
		in.mu.Unlock()
	}
	return v.settle(v.last)
}

// known returns all files that the kernel or the volume refers to.
func (v *volume) known() []*inode {
	v.tab.RLock()
	defer v.tab.RUnlock()
	list := make([]*inode, 0, len(v.nodes))
	for _, in := range v.nodes {
		list = append(list, in)
	}
	return list
}

// forgotten checks the kernel's answer to a request to forget something. It need not have known it.
func (v *volume) forgotten(status fuse.Status) {
	if !status.Ok() && status != fuse.ENOENT {
		log.Printf("the kernel did not drop its cache of a file: %v", status)
	}
}

// describe returns the name of a file below the mount.
func (v *volume) describe(in *inode) string {
	path, err := os.Readlink(in.path())
	if err != nil {
		return "a file"
	}
	if root, err := os.Readlink(v.root.path()); err == nil {
		path = strings.TrimPrefix(path, root+"/")
	}
	return path
}
