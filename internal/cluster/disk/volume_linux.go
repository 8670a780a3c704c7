package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// cached is how long the kernel may cache names and attributes. All changes go through the kernel, and it is notified
// of the changes by a loss.
const cached = time.Hour

// volume is the file system. Its exported methods are the calls of a fuse.RawFileSystem. Several locks are taken in
// the order of the fields.
type volume struct {
	fuse.RawFileSystem // answers other calls with ENOSYS

	store  string // the folder with data, grave and saved pages
	grave  int    // descriptor of the folder for unlinked files whose unlinking is not safe yet
	root   *inode
	chown  bool // give new files to the caller
	kernel *fuse.Server

	full atomic.Bool
	slow atomic.Pointer[slowness]

	// gate is held for reading by every change, and for writing when no change may be under way.
	gate sync.RWMutex

	// names is held while a name is changed.
	names   sync.Mutex
	journal []change // changes that are not safe yet, in order
	last    uint64   // number of the last change

	// tab guards the fields below and is held only for moments.
	tab     sync.RWMutex
	nodes   map[uint64]*inode
	files   map[fileKey]*inode
	handles map[uint64]*handle
	given   uint64 // last number of a node or a handle
}

// fileKey identifies a file of the store while it is open.
type fileKey struct{ dev, ino uint64 }

type inode struct {
	id     uint64 // the kernel's number for it
	key    fileKey
	fd     int          // opened with O_PATH
	refs   int64        // by the kernel (its look-ups), the journal, handles and an image; guarded by tab
	buried atomic.Int32 // number of its names in the grave

	// Numbers of the last changes of names; guarded by names.
	changed uint64 // any change
	formed  uint64 // its creation or truncation

	mu    sync.Mutex
	io    int    // open for reading and writing; 0 until it is needed
	image *image // nil: all is safe
	epoch int    // counts images
	dirty bool   // the store's file was written since its last sync
}

type handle struct {
	*inode
	writes bool
	synced bool // O_SYNC or O_DSYNC
	folder int  // open for reading; only for folders
}

// newVolume opens a store. Only its subfolder data is shown.
func newVolume(store string) (v *volume, err error) {
	v = &volume{
		RawFileSystem: fuse.NewDefaultRawFileSystem(), store: store, chown: os.Geteuid() == 0,
		nodes: map[uint64]*inode{}, files: map[fileKey]*inode{}, handles: map[uint64]*handle{}, given: fuse.FUSE_ROOT_ID,
	}
	grave := filepath.Join(store, "grave")
	if err := os.RemoveAll(grave); err != nil { // unsafe changes of an earlier mount
		return nil, err
	}
	if err := os.Mkdir(grave, 0o700); err != nil {
		return nil, err
	}
	const folder = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	if v.grave, err = unix.Open(grave, folder, 0); err != nil {
		return nil, fmt.Errorf("open %s: %w", grave, err)
	}
	var st unix.Stat_t
	data := filepath.Join(store, "data")
	fd, err := unix.Open(data, folder, 0)
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", data, err)
	}
	v.root = &inode{id: fuse.FUSE_ROOT_ID, key: keyOf(&st), fd: fd, refs: 1}
	v.nodes[v.root.id], v.files[v.root.key] = v.root, v.root
	return v, nil
}

func keyOf(st *unix.Stat_t) fileKey { return fileKey{uint64(st.Dev), st.Ino} }

func (v *volume) String() string { return "stroppy" }

// Init is called when the kernel has mounted the file system.
func (v *volume) Init(kernel *fuse.Server) { v.kernel = kernel }

// node returns the inode of the kernel's number.
func (v *volume) node(id uint64) (*inode, bool) {
	v.tab.RLock()
	defer v.tab.RUnlock()
	in, ok := v.nodes[id]
	return in, ok
}

// take returns the inode of a name in the store with one more reference. The caller holds names.
func (v *volume) take(parent *inode, name string) (*inode, error) {
	fd, err := unix.Openat(parent.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	v.tab.Lock()
	defer v.tab.Unlock()
	if in, ok := v.files[keyOf(&st)]; ok {
		in.refs++
		unix.Close(fd)
		return in, nil
	}
	v.given++
	in := &inode{id: v.given, key: keyOf(&st), fd: fd, refs: 1}
	v.nodes[in.id], v.files[in.key] = in, in
	return in, nil
}

// keep adds a reference.
func (v *volume) keep(in *inode) {
	v.tab.Lock()
	in.refs++
	v.tab.Unlock()
}

func (v *volume) release(in *inode, count int64) {
	v.tab.Lock()
	defer v.tab.Unlock()
	if in.refs -= count; in.refs > 0 || in == v.root {
		return
	}
	delete(v.nodes, in.id)
	delete(v.files, in.key)
	unix.Close(in.fd)
	if in.io != 0 {
		unix.Close(in.io)
	}
}

// Forget is called when the kernel no longer needs a node.
func (v *volume) Forget(id, count uint64) {
	if in, ok := v.node(id); ok {
		v.release(in, int64(count))
	}
}

// open registers a handle, which has its own reference.
func (v *volume) open(h *handle) uint64 {
	v.tab.Lock()
	defer v.tab.Unlock()
	h.refs++
	v.given++
	v.handles[v.given] = h
	return v.given
}

// closed removes a handle.
func (v *volume) closed(number uint64) (*handle, bool) {
	v.tab.Lock()
	defer v.tab.Unlock()
	h, ok := v.handles[number]
	delete(v.handles, number)
	return h, ok
}

// onNode calls do with a node after the delay of a slow disk.
func (v *volume) onNode(cancel <-chan struct{}, header *fuse.InHeader, do func(*inode) error) fuse.Status {
	v.wait(cancel, header)
	in, ok := v.node(header.NodeId)
	if !ok {
		return fuse.ENOENT
	}
	return fuse.ToStatus(do(in))
}

// onHandle calls do with an open file or folder after the delay of a slow disk. A call without a header is not
// delayed.
func (v *volume) onHandle(cancel <-chan struct{}, header *fuse.InHeader, number uint64, do func(*handle) error) fuse.Status {
	if header != nil {
		v.wait(cancel, header)
	}
	v.tab.RLock()
	h, ok := v.handles[number]
	v.tab.RUnlock()
	if !ok {
		return fuse.EBADF
	}
	return fuse.ToStatus(do(h))
}

// path leads to the file of an inode, whatever its name is now.
func (in *inode) path() string { return fmt.Sprintf("/proc/self/fd/%d", in.fd) }

func (in *inode) attributes(out *fuse.Attr) error {
	var st syscall.Stat_t
	if err := syscall.Fstat(in.fd, &st); err != nil {
		return err
	}
	out.FromStat(&st)
	out.Nlink -= uint32(in.buried.Load())
	return nil
}

// entry answers with a node, to which the kernel then has one more reference.
func (v *volume) entry(in *inode, out *fuse.EntryOut) error {
	if err := in.attributes(&out.Attr); err != nil {
		v.release(in, 1)
		return err
	}
	out.NodeId, out.Generation = in.id, 1
	out.SetEntryTimeout(cached)
	out.SetAttrTimeout(cached)
	return nil
}
