package disk

import (
	"context"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// directory is the list of an open folder.
type directory struct {
	stream fs.DirStream
	fd     int    // of the stream, which closes it
	at     uint64 // where the stream is
}

// OpenDir opens a folder.
func (v *volume) OpenDir(cancel <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return v.onNode(cancel, &input.InHeader, func(in *inode) error {
		fd, err := unix.Openat(in.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		stream, errno := fs.NewLoopbackDirStreamFd(fd)
		if errno != 0 {
			unix.Close(fd)
			return errno
		}
		out.Fh = v.open(&handle{inode: in, list: &directory{stream: stream, fd: fd}})
		return nil
	})
}

// ReadDir lists a folder from a place in it. The kernel asks for one part after
// the other, one at a time.
func (v *volume) ReadDir(cancel <-chan struct{}, input *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return v.onHandle(cancel, &input.InHeader, input.Fh, func(h *handle) error {
		if h.list == nil {
			return unix.EBADF
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		list := h.list
		if seeker, ok := list.stream.(fs.FileSeekdirer); ok && list.at != input.Offset {
			if errno := seeker.Seekdir(context.Background(), input.Offset); errno != 0 {
				return errno
			}
			list.at = input.Offset
		}
		for list.stream.HasNext() {
			e, errno := list.stream.Next()
			if errno != 0 {
				return errno
			}
			if !out.AddDirEntry(e) {
				list.at = ^uint64(0) // one was taken that did not fit
				break
			}
			list.at = e.Off
		}
		return nil
	})
}

// ReleaseDir closes a folder.
func (v *volume) ReleaseDir(input *fuse.ReleaseIn) {
	h, ok := v.closed(input.Fh)
	if !ok {
		return
	}
	h.list.stream.Close()
	v.release(h.inode, 1)
}

// FsyncDir makes a folder's names safe.
func (v *volume) FsyncDir(cancel <-chan struct{}, input *fuse.FsyncIn) fuse.Status {
	return v.onHandle(cancel, &input.InHeader, input.Fh, func(h *handle) error {
		if h.list == nil {
			return unix.EBADF
		}
		v.gate.RLock()
		defer v.gate.RUnlock()
		v.names.Lock()
		upTo := h.changed
		v.names.Unlock()
		if err := unix.Fsync(h.list.fd); err != nil {
			return err
		}
		v.names.Lock()
		defer v.names.Unlock()
		return v.settle(upTo)
	})
}
