package disk

import (
	"io"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

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
