package disk

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Lookup returns the file of a name. The kernel asks again each time for a name that does not exist.
func (v *volume) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return v.onNode(cancel, header, func(parent *inode) error {
		v.names.Lock()
		in, err := v.take(parent, name)
		v.names.Unlock()
		if err != nil {
			return err
		}
		return v.entry(in, out)
	})
}

func (v *volume) GetAttr(cancel <-chan struct{}, input *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return v.onNode(cancel, &input.InHeader, func(in *inode) error {
		out.SetTimeout(cached)
		return in.attributes(&out.Attr)
	})
}

func (v *volume) SetAttr(cancel <-chan struct{}, input *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return v.onNode(cancel, &input.InHeader, func(in *inode) error {
		v.gate.RLock()
		defer v.gate.RUnlock()
		if err := v.setAttributes(in, input); err != nil {
			return err
		}
		out.SetTimeout(cached)
		return in.attributes(&out.Attr)
	})
}

func (v *volume) setAttributes(in *inode, input *fuse.SetAttrIn) error {
	if size, ok := input.GetSize(); ok {
		if err := v.truncate(in, int64(size)); err != nil {
			return err
		}
	}
	owner := [2]int{-1, -1} // chown(2) keeps the owner
	if uid, ok := input.GetUID(); ok {
		owner[0] = int(uid)
	}
	if gid, ok := input.GetGID(); ok {
		owner[1] = int(gid)
	}
	if owner != [2]int{-1, -1} {
		if err := unix.Fchownat(in.fd, "", owner[0], owner[1], unix.AT_EMPTY_PATH); err != nil {
			return err
		}
	}
	if mode, ok := input.GetMode(); ok { // after chown, which clears bits
		if err := unix.Chmod(in.path(), mode&0o7777); err != nil {
			return err
		}
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_OMIT}}
	if access, ok := input.GetATime(); ok {
		times[0] = unix.NsecToTimespec(access.UnixNano())
	}
	if modified, ok := input.GetMTime(); ok {
		times[1] = unix.NsecToTimespec(modified.UnixNano())
	}
	return unix.UtimesNanoAt(in.fd, "", times, unix.AT_EMPTY_PATH)
}

// make makes a name through create, gives its file to the caller, and records the change. The inode that it returns
// has a reference for the kernel.
func (v *volume) make(parent *inode, caller *fuse.InHeader, name string, create func(parent int) error) (*inode, error) {
	if v.full.Load() {
		return nil, unix.ENOSPC
	}
	defer v.changing()()
	if err := create(parent.fd); err != nil {
		return nil, err
	}
	in, err := v.take(parent, name)
	if err == nil {
		err = v.born(in, parent, caller)
	}
	undo := func() error { return unlink(parent.fd, name) }
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	v.record(change{touched: []*inode{parent, in}, names: []place{{parent, name}}, undo: undo})
	in.formed = v.last
	return in, nil
}

// born gives a new file to the caller.
func (v *volume) born(in, parent *inode, caller *fuse.InHeader) error {
	if v.chown {
		var above unix.Stat_t
		if err := unix.Fstat(parent.fd, &above); err != nil {
			return err
		}
		gid := caller.Gid
		if above.Mode&unix.S_ISGID != 0 {
			gid = above.Gid
		}
		if err := unix.Fchownat(in.fd, "", int(caller.Uid), int(gid), unix.AT_EMPTY_PATH); err != nil {
			return err
		}
	}
	in.mu.Lock()
	in.dirty = true
	in.mu.Unlock()
	return nil
}

// unlink removes the name of a file or of an empty folder.
func unlink(folder int, name string) error {
	err := unix.Unlinkat(folder, name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(folder, name, unix.AT_REMOVEDIR)
	}
	return err
}

func (v *volume) Create(cancel <-chan struct{}, input *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return v.onNode(cancel, &input.InHeader, func(parent *inode) error {
		in, err := v.make(parent, &input.InHeader, name, func(parent int) error {
			return unix.Mknodat(parent, name, unix.S_IFREG|input.Mode&0o7777, 0)
		})
		if err != nil {
			return err
		}
		if err := v.entry(in, &out.EntryOut); err != nil {
			return err
		}
		if err = v.opened(in, input.Flags, &out.OpenOut); err != nil {
			v.release(in, 1)
		}
		return err
	})
}

func (v *volume) Mknod(cancel <-chan struct{}, input *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return v.made(cancel, &input.InHeader, name, out, func(parent int) error {
		return unix.Mknodat(parent, name, input.Mode, int(input.Rdev))
	})
}

func (v *volume) Mkdir(cancel <-chan struct{}, input *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return v.made(cancel, &input.InHeader, name, out, func(parent int) error { return unix.Mkdirat(parent, name, input.Mode&0o7777) })
}

func (v *volume) Symlink(cancel <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return v.made(cancel, header, name, out, func(parent int) error { return unix.Symlinkat(target, parent, name) })
}

func (v *volume) made(
	cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut, create func(parent int) error,
) fuse.Status {
	return v.onNode(cancel, header, func(parent *inode) error {
		in, err := v.make(parent, header, name, create)
		if err != nil {
			return err
		}
		return v.entry(in, out)
	})
}

func (v *volume) Link(cancel <-chan struct{}, input *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return v.onNode(cancel, &input.InHeader, func(parent *inode) error {
		in, known := v.node(input.Oldnodeid)
		switch {
		case !known:
			return unix.ENOENT
		case v.full.Load():
			return unix.ENOSPC
		}
		defer v.changing()()
		if err := unix.Linkat(unix.AT_FDCWD, in.path(), parent.fd, name, unix.AT_SYMLINK_FOLLOW); err != nil {
			return err
		}
		undo := func() error { return unlink(parent.fd, name) }
		v.record(change{touched: []*inode{parent, in}, names: []place{{parent, name}}, undo: undo})
		v.keep(in)
		return v.entry(in, out)
	})
}

func (v *volume) Unlink(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return v.onNode(cancel, header, func(parent *inode) error { return v.remove(parent, name) })
}

func (v *volume) Rmdir(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return v.Unlink(cancel, header, name)
}

func (v *volume) remove(parent *inode, name string) error {
	defer v.changing()()
	in, err := v.take(parent, name)
	if err != nil {
		return err
	}
	defer v.release(in, 1)
	if err := in.mayGo(); err != nil {
		return err
	}
	at := place{parent, name}
	unbury, rot, err := v.bury(at, in)
	if err != nil {
		return err
	}
	v.record(change{touched: []*inode{parent, in}, names: []place{at}, undo: unbury, settle: rot})
	return nil
}

// mayGo fails for a folder that is not empty.
func (in *inode) mayGo() error {
	var st unix.Stat_t
	if err := unix.Fstat(in.fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return err
	}
	entries, err := os.ReadDir(in.path())
	if err == nil && len(entries) > 0 {
		err = unix.ENOTEMPTY
	}
	return err
}

// Rename moves a name, possibly over another one, or exchanges two.
func (v *volume) Rename(cancel <-chan struct{}, input *fuse.RenameIn, oldName, newName string) fuse.Status {
	return v.onNode(cancel, &input.InHeader, func(from *inode) error {
		to, known := v.node(input.Newdir)
		switch {
		case !known:
			return unix.ENOENT
		case input.Flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0:
			return unix.EINVAL
		}
		defer v.changing()()
		return v.rename(place{from, oldName}, place{to, newName}, uint(input.Flags))
	})
}

func (v *volume) rename(from, to place, flags uint) error {
	moved, err := v.take(from.parent, from.name)
	if err != nil {
		return err
	}
	defer v.release(moved, 1)
	c := change{touched: []*inode{from.parent, to.parent, moved}, names: []place{from, to}}
	target, err := v.take(to.parent, to.name)
	switch {
	case errors.Is(err, unix.ENOENT):
		target = nil
	case err != nil:
		return err
	default:
		defer v.release(target, 1)
		c.touched = append(c.touched, target)
	}
	unbury := func() error { return nil }
	switch {
	case flags&unix.RENAME_EXCHANGE != 0, target == nil:
	case flags&unix.RENAME_NOREPLACE != 0:
		return unix.EEXIST
	case target == moved:
		return nil // two names of one file: rename(2) does nothing
	default:
		if err := target.mayGo(); err != nil {
			return err
		}
		if unbury, c.settle, err = v.bury(to, target); err != nil {
			return err
		}
	}
	exchange := flags & unix.RENAME_EXCHANGE
	if err := unix.Renameat2(from.parent.fd, from.name, to.parent.fd, to.name, exchange); err != nil {
		return errors.Join(err, unbury())
	}
	c.undo = func() error {
		return errors.Join(unix.Renameat2(to.parent.fd, to.name, from.parent.fd, from.name, exchange), unbury())
	}
	v.record(c)
	return nil
}

func (v *volume) Readlink(cancel <-chan struct{}, header *fuse.InHeader) (target []byte, status fuse.Status) {
	status = v.onNode(cancel, header, func(in *inode) error {
		buffer := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(in.fd, "", buffer)
		target = buffer[:max(n, 0)]
		return err
	})
	return target, status
}

func (v *volume) StatFs(cancel <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	v.wait(cancel, header)
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(v.root.fd, &st); err != nil {
		return fuse.ToStatus(err)
	}
	out.FromStatfsT(&st)
	if v.full.Load() {
		out.Bfree, out.Bavail = 0, 0
	}
	return fuse.OK
}

func (v *volume) OpenDir(cancel <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return v.onNode(cancel, &input.InHeader, func(in *inode) error {
		fd, err := unix.Openat(in.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			out.Fh = v.open(&handle{inode: in, folder: fd})
		}
		return err
	})
}

// ReadDir lists a folder from an offset. The kernel asks for one part after the other.
func (v *volume) ReadDir(cancel <-chan struct{}, input *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return v.onHandle(cancel, &input.InHeader, input.Fh, func(h *handle) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if _, err := unix.Seek(h.folder, int64(input.Offset), io.SeekStart); err != nil {
			return err
		}
		buffer := make([]byte, max(input.Size, pageSize))
		for {
			n, err := unix.Getdents(h.folder, buffer)
			if err != nil || n == 0 {
				return err
			}
			for rest := buffer[:n]; len(rest) > 0; {
				var e fuse.DirEntry
				rest = rest[e.Parse(rest):]
				if !out.AddDirEntry(e) {
					return nil
				}
			}
		}
	})
}

func (v *volume) ReleaseDir(input *fuse.ReleaseIn) {
	if h, ok := v.closed(input.Fh); ok {
		unix.Close(h.folder)
		v.release(h.inode, 1)
	}
}

func (v *volume) FsyncDir(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	return v.onHandle(cancel, &input.InHeader, input.Fh, func(h *handle) error {
		v.gate.RLock()
		defer v.gate.RUnlock()
		return v.sync(h.inode, false, func() error { return unix.Fsync(h.folder) })
	})
}
