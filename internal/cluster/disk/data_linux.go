package disk

import (
	"fmt"
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// data returns the store's file, open for reading and writing; the caller holds mu.
func (in *inode) data() (fd int, err error) {
	if in.io == 0 {
		in.io, err = unix.Open(in.path(), unix.O_RDWR|unix.O_CLOEXEC, 0)
		in.io = max(in.io, 0)
	}
	return in.io, err
}

func (in *inode) size() (int64, error) {
	var st unix.Stat_t
	err := unix.Fstat(in.fd, &st)
	return st.Size, err
}

// protect saves the safe content of a file before a range of it changes. It makes an image if there is none, and
// copies the unchanged safe pages of the range into it. The caller holds in.mu.
func (v *volume) protect(in *inode, off, length int64) error {
	if in.image == nil {
		size, err := in.size()
		if err != nil {
			return err
		}
		v.keep(in)
		in.image = newImage(size)
	}
	in.dirty = true
	end := min(off+length, in.image.size)
	if off >= end {
		return nil
	}
	fd, err := in.data()
	if err != nil {
		return err
	}
	var page [pageSize]byte
	for number := off / pageSize; number*pageSize < end; number++ {
		if in.image.pages[number] {
			continue
		}
		n, err := unix.Pread(fd, page[:], number*pageSize)
		if err != nil {
			return err
		}
		clear(page[n:])
		if err := in.image.keep(v.store, number, page[:]); err != nil {
			return err
		}
	}
	return nil
}

// secure makes the present content safe; the caller holds in.mu.
func (v *volume) secure(in *inode) {
	if in.image == nil {
		return
	}
	in.image.drop()
	in.image = nil
	in.epoch++
	v.release(in, 1)
}

// restore restores the safe content; the caller holds in.mu.
func (v *volume) restore(in *inode) (err error) {
	if in.image == nil {
		return nil
	}
	fd, err := in.data()
	if err != nil {
		return err
	}
	var page [pageSize]byte
	for number := range in.image.pages {
		begin := number * pageSize
		if _, err := in.image.file.ReadAt(page[:], begin); err != nil {
			return err
		}
		if n := min(in.image.size-begin, pageSize); n > 0 {
			if _, err := unix.Pwrite(fd, page[:n], begin); err != nil {
				return err
			}
		}
	}
	if err := unix.Ftruncate(fd, in.image.size); err != nil {
		return err
	}
	v.secure(in)
	return nil
}

// Open opens a file. The kernel checks permissions and truncates by itself.
func (v *volume) Open(cancel <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return v.onNode(cancel, &input.InHeader, func(in *inode) error { return v.opened(in, input.Flags, out) })
}

func (v *volume) opened(in *inode, flags uint32, out *fuse.OpenOut) error {
	in.mu.Lock()
	_, err := in.data()
	in.mu.Unlock()
	if err != nil {
		return err
	}
	out.Fh = v.open(&handle{
		inode: in, writes: flags&unix.O_ACCMODE != unix.O_RDONLY,
		synced: flags&unix.O_DSYNC != 0, // O_DSYNC is a part of O_SYNC
	})
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return nil
}

func (v *volume) Release(_ <-chan struct{}, input *fuse.ReleaseIn) {
	if h, ok := v.closed(input.Fh); ok {
		v.release(h.inode, 1)
	}
}

func (v *volume) Read(cancel <-chan struct{}, input *fuse.ReadIn, buffer []byte) (result fuse.ReadResult, status fuse.Status) {
	status = v.onHandle(cancel, &input.InHeader, input.Fh, func(h *handle) error {
		n, err := unix.Pread(h.io, buffer, int64(input.Offset))
		if err == nil {
			result = fuse.ReadResultData(buffer[:n])
		}
		return err
	})
	return result, status
}

// Write writes to a file. The kernel gives the offset even for O_APPEND.
func (v *volume) Write(cancel <-chan struct{}, input *fuse.WriteIn, data []byte) (written uint32, status fuse.Status) {
	caller := &input.InHeader
	if input.WriteFlags&fuse.WRITE_CACHE != 0 {
		// Nobody waits for writes through a memory map, except the end of a process. On other file systems it does
		// not wait either.
		caller = nil
	}
	status = v.onHandle(cancel, caller, input.Fh, func(h *handle) error {
		v.gate.RLock()
		defer v.gate.RUnlock()
		n, err := v.write(h, int64(input.Offset), data)
		if err == nil && h.synced {
			err = v.syncFile(h.inode, true)
		}
		if err == nil {
			written = uint32(n)
		}
		return err
	})
	return written, status
}

func (v *volume) write(h *handle, off int64, data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := v.room(h.inode, off+int64(len(data))); err != nil {
		return 0, err
	}
	if err := v.protect(h.inode, off, int64(len(data))); err != nil {
		return 0, err
	}
	return unix.Pwrite(h.io, data, off)
}

// room fails if a file would grow on a full disk.
func (v *volume) room(in *inode, size int64) error {
	if !v.full.Load() {
		return nil
	}
	if before, err := in.size(); err != nil || before >= size {
		return err
	}
	return unix.ENOSPC
}

// sync makes a file or folder safe through flush. The journal becomes safe up to the last change of the file or
// folder that had returned before.
func (v *volume) sync(in *inode, dataOnly bool, flush func() error) error {
	v.names.Lock()
	upTo := in.changed
	if dataOnly {
		upTo = in.formed
	}
	v.names.Unlock()
	if err := flush(); err != nil {
		return err
	}
	v.names.Lock()
	defer v.names.Unlock()
	return v.settle(upTo)
}

// syncFile syncs the store's file, unless it was not written since the last sync: after a write with O_DSYNC, kernels
// also call fsync. Nobody writes meanwhile, so the extent of the sync is known.
func (v *volume) syncFile(in *inode, dataOnly bool) error {
	return v.sync(in, dataOnly, func() error {
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.dirty {
			fd, err := in.data()
			switch {
			case err != nil:
			case dataOnly:
				err = unix.Fdatasync(fd)
			default:
				err = unix.Fsync(fd)
			}
			if err != nil {
				return err
			}
			in.dirty = false
		}
		v.secure(in)
		return nil
	})
}

// onlyData is the flag of fsync for fdatasync; FUSE_FSYNC_FDATASYNC.
const onlyData = 1

func (v *volume) Fsync(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	return v.onHandle(cancel, &input.InHeader, input.Fh, func(h *handle) error {
		v.gate.RLock()
		defer v.gate.RUnlock()
		return v.syncFile(h.inode, input.FsyncFlags&onlyData != 0)
	})
}

// Fallocate allocates space for a file, or frees space in its middle.
func (v *volume) Fallocate(cancel <-chan struct{}, input *fuse.FallocateIn) fuse.Status {
	return v.onHandle(cancel, &input.InHeader, input.Fh, func(h *handle) error {
		var changed int64
		switch input.Mode &^ unix.FALLOC_FL_KEEP_SIZE {
		case 0:
			if v.full.Load() {
				return unix.ENOSPC
			}
		case unix.FALLOC_FL_PUNCH_HOLE, unix.FALLOC_FL_ZERO_RANGE:
			changed = int64(input.Length)
		default:
			return unix.EOPNOTSUPP
		}
		v.gate.RLock()
		defer v.gate.RUnlock()
		h.mu.Lock()
		defer h.mu.Unlock()
		off := int64(input.Offset)
		if input.Mode&unix.FALLOC_FL_KEEP_SIZE == 0 {
			if err := v.room(h.inode, off+int64(input.Length)); err != nil {
				return err
			}
		}
		if err := v.protect(h.inode, off, changed); err != nil {
			return err
		}
		return unix.Fallocate(h.io, input.Mode, off, int64(input.Length))
	})
}

func (v *volume) truncate(in *inode, size int64) error {
	v.names.Lock()
	defer v.names.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	fd, err := in.data()
	if err != nil {
		return err
	}
	before, err := in.size()
	if err != nil || before == size {
		return err
	}
	if err := v.room(in, size); err != nil {
		return err
	}
	cut := before
	if in.image != nil {
		cut = in.image.size
	}
	if err := v.protect(in, size, max(cut-size, 0)); err != nil {
		return err
	}
	if err := unix.Ftruncate(fd, size); err != nil {
		return err
	}
	if size >= cut {
		return nil
	}
	epoch := in.epoch
	v.record(change{touched: []*inode{in}, settle: func() error {
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.image != nil && in.epoch == epoch { // otherwise a later sync has made it safe
			in.image.cut(size)
		}
		return nil
	}})
	in.formed = v.last
	return nil
}

// writable returns an error that names a file that is open for writing, if there is one.
func (v *volume) writable() error {
	v.tab.RLock()
	defer v.tab.RUnlock()
	for _, h := range v.handles {
		if h.writes {
			return fmt.Errorf("a process has %s open for writing: end it first", v.describe(h.inode))
		}
	}
	return nil
}

// pageSize is the unit of saved content in bytes.
const pageSize = 4096

// image is the safe content of a file that has changed since: its size, and the pages that were overwritten or cut
// off.
type image struct {
	size  int64
	pages map[int64]bool // numbers of the saved pages
	file  *os.File       // holds the saved pages; it has no name, and is nil before the first page
}

func newImage(size int64) *image { return &image{size: size, pages: map[int64]bool{}} }

// keep saves a page of pageSize bytes. The pages are in a file in a folder, because they need not fit into memory.
func (i *image) keep(folder string, number int64, page []byte) (err error) {
	if i.file == nil {
		if i.file, err = os.CreateTemp(folder, "pages-"); err == nil {
			err = os.Remove(i.file.Name())
		}
		if err != nil {
			return fmt.Errorf("make a file for overwritten pages: %w", err)
		}
	}
	if _, err = i.file.WriteAt(page, number*pageSize); err == nil {
		i.pages[number] = true
	}
	return err
}

// cut makes a truncation safe.
func (i *image) cut(size int64) {
	if size >= i.size {
		return
	}
	i.size = size
	for number := range i.pages {
		if number*pageSize >= size {
			delete(i.pages, number)
		}
	}
}

func (i *image) drop() {
	if i.file != nil {
		i.file.Close()
	}
}
