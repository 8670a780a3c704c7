package disk

import (
	"errors"
	"fmt"
	"log"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"stroppy/internal/cluster"
)

// mostFiles is Linux's own bound on the open files of a process, fs.nr_open,
// where nobody has changed it.
const mostFiles = 1 << 20

// service is what a program can ask of the file system that it has started. Its
// exported methods are those of net/rpc; what they do is said at cluster.Server.
type service struct {
	mu     sync.Mutex
	point  string // where it is mounted; empty: nowhere
	volume *volume
}

// Serve serves one file system, which is mounted by a call over this process's standard
// input and output, until the input ends or this process is sent a signal to end. Then
// it removes the mount.
func Serve() error {
	unix.Umask(0) // callers' masks come with their calls
	// Every file that the kernel remembers is held open. Where the limit cannot be
	// raised, calls fail with EMFILE once it is reached.
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: mostFiles, Max: mostFiles}); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("serve a file system: allow for many open files: %w", err)
	}
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	s := &service{}
	server := rpc.NewServer()
	if err := server.RegisterName(cluster.FaultFSService, s); err != nil {
		return fmt.Errorf("serve a file system: %w", err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	ended := make(chan struct{})
	go func() {
		server.ServeCodec(jsonrpc.NewServerCodec(cluster.Pipes{ReadCloser: os.Stdin, Out: os.Stdout}))
		close(ended)
	}()
	select {
	case <-signals:
	case <-ended:
	}
	return s.Unmount(struct{}{}, nil)
}

func (s *service) Mount(args cluster.FaultFSMount, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.point != "" {
		return fmt.Errorf("mount at %s: it is mounted at %s", args.Point, s.point)
	}
	v, err := newVolume(args.Store)
	if err != nil {
		return fmt.Errorf("open the store of a file system: %w", err)
	}
	server, err := fuse.NewServer(v, args.Point, &fuse.MountOptions{
		AllowOther: os.Geteuid() == 0, // a server may run as another user; others than root may not ask for it
		Options:    []string{"default_permissions"},
		FsName:     "stroppy", Name: "stroppy",
		DirectMount:              true,
		DisableXAttrs:            true,
		DisableReadDirPlus:       true,
		ExplicitDataCacheControl: true,
		MaxBackground:            64,
		MaxWrite:                 1 << 20,
	})
	if err != nil {
		return fmt.Errorf("mount a FUSE file system at %s: %w", args.Point, err)
	}
	s.volume, s.point = v, args.Point
	go server.Serve()
	return nil
}

// Unmount takes the mount away, even while somebody uses it.
func (s *service) Unmount(struct{}, *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.point == "" {
		return nil
	}
	s.volume.setSlow(0)
	err := unix.Unmount(s.point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EPERM) {
		err = s.volume.kernel.Unmount() // by fusermount, as it was mounted
	}
	if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: somebody else has unmounted it
		return fmt.Errorf("unmount %s: %w", s.point, err)
	}
	s.point = ""
	return nil
}

// mounted asks something of the volume.
func (s *service) mounted(ask func(v *volume) error) error {
	s.mu.Lock()
	v, mounted := s.volume, s.point != ""
	s.mu.Unlock()
	if !mounted {
		return errors.New("the file system is not mounted")
	}
	return ask(v)
}

func (s *service) Lose(struct{}, *struct{}) error { return s.mounted((*volume).lose) }

func (s *service) Sync(struct{}, *struct{}) error { return s.mounted((*volume).syncAll) }

func (s *service) Fill(full bool, _ *struct{}) error {
	return s.mounted(func(v *volume) error { v.full.Store(full); return nil })
}

func (s *service) Slow(perCall time.Duration, _ *struct{}) error {
	return s.mounted(func(v *volume) error { v.setSlow(perCall); return nil })
}
