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

	"stroppy/internal/cluster/host"
)

// mostFiles is Linux's default limit of the open files of a process, fs.nr_open.
const mostFiles = 1 << 20

// service serves the file system by net/rpc, which calls its exported methods. host.Server documents them.
type service struct {
	mu     sync.Mutex
	point  string // where it is mounted; empty: not mounted
	volume *volume
}

// Serve serves one file system. A call over standard input and output mounts it. Serve ends when the input ends or a
// signal ends this process. Then it removes the mount.
func Serve() error {
	unix.Umask(0) // each call brings the mask of its caller
	// Every file that the kernel remembers is held open. If the limit cannot be raised, calls fail with EMFILE at the
	// limit.
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: mostFiles, Max: mostFiles}); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("serve a file system: raise the limit of open files: %w", err)
	}
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	s := &service{}
	server := rpc.NewServer()
	if err := server.RegisterName(host.FaultFSService, s); err != nil {
		return fmt.Errorf("serve a file system: %w", err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	ended := make(chan struct{})
	go func() {
		server.ServeCodec(jsonrpc.NewServerCodec(host.Pipes{ReadCloser: os.Stdin, Out: os.Stdout}))
		close(ended)
	}()
	select {
	case <-signals:
	case <-ended:
	}
	return s.Unmount(struct{}{}, nil)
}

func (s *service) Mount(args host.FaultFSMount, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.point != "" {
		return fmt.Errorf("mount at %s: already mounted at %s", args.Point, s.point)
	}
	v, err := newVolume(args.Store)
	if err != nil {
		return fmt.Errorf("open the store of a file system: %w", err)
	}
	server, err := fuse.NewServer(v, args.Point, &fuse.MountOptions{
		AllowOther: os.Geteuid() == 0, // a server may run as another user; only root may allow others
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

// Unmount removes the mount, even while it is in use.
func (s *service) Unmount(struct{}, *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.point == "" {
		return nil
	}
	s.volume.setSlow(0)
	err := unix.Unmount(s.point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EPERM) {
		err = s.volume.kernel.Unmount() // through fusermount, which mounted it
	}
	if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: somebody else has unmounted it
		return fmt.Errorf("unmount %s: %w", s.point, err)
	}
	s.point = ""
	return nil
}

// mounted calls ask with the volume if it is mounted.
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
