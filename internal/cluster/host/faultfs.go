package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"stroppy/internal/cluster/wait"
	"stroppy/internal/cluster/wrap"
	"stroppy/internal/fault"
)

// FaultFSCommand is the argument that makes this program serve the file system of a FaultFS. The program must then
// call disk.Serve. So must the test program of a package that starts clusters with Options.FaultFS.
const FaultFSCommand = "disk-layer"

// FaultFSService is the name of the RPC service that a fault file system's process offers.
const FaultFSService = "Disk"

// FaultFSMount describes a mount.
type FaultFSMount struct {
	Point string // an empty folder
	Store string // its subfolder data is shown at Point
}

// faultFSLimit bounds a call to a fault file system's process, which may have to write back much data.
const faultFSLimit = time.Minute

// faultFS is a file system under a folder that can lose unsynced writes, fill up, and be slow; see package disk.
// While it is mounted, the contents are in its store, a folder beside it whose name begins with a dot.
type faultFS struct {
	point, store string
	process      *Process
	service      service
}

// service is a client of FaultFSService in another process: an rpc.Client, if the build has net/rpc.
type service interface {
	Call(method string, args, reply any) error
	Close() error
}

// newFaultFS puts a file system under a folder, which it makes if needed. The present contents count as synced and
// move into the store.
func newFaultFS(ctx context.Context, record *Record, point string) (l *faultFS, err error) {
	defer wrap.Error(&err, "put a file system under %s", point)
	l = &faultFS{point: point, store: filepath.Join(filepath.Dir(point), "."+filepath.Base(point)+".disk")}
	if err := record.Add(Leftover{Kind: LeftMount, Name: point}); err != nil {
		return nil, fmt.Errorf("the nodes' data must be in a temporary folder: %w", err)
	}
	if err := errors.Join(os.MkdirAll(point, 0o700), os.Mkdir(l.store, 0o700)); err != nil {
		return nil, err
	}
	if err := os.Rename(point, l.data()); err != nil {
		return nil, errors.Join(err, os.Remove(l.store))
	}
	if err = os.Mkdir(point, 0o700); err == nil {
		err = l.start(record)
	}
	if err == nil {
		err = l.call(ctx, "Mount", FaultFSMount{Point: point, Store: l.store})
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *faultFS) data() string { return filepath.Join(l.store, "data") }

func (l *faultFS) log() string { return filepath.Join(l.store, "log") }

// start starts the process that serves the file system. The process ends when its standard input does.
func (l *faultFS) start(record *Record) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program that serves it: %w", err)
	}
	if len(os.Args) > 1 && os.Args[1] == FaultFSCommand {
		return errors.New("a file system process was asked to start another one: the program does not handle the argument " + FaultFSCommand)
	}
	cmd := exec.Command(program, FaultFSCommand)
	ask, errAsk := cmd.StdinPipe()
	answers, errAnswer := cmd.StdoutPipe()
	log, err := os.OpenFile(l.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err = errors.Join(errAsk, errAnswer, err); err != nil {
		return err
	}
	defer log.Close()
	cmd.Stderr = log
	if l.process, err = StartProcess(cmd, syscall.SIGTERM); err != nil {
		return err
	}
	l.service = newService(Pipes{answers, ask})
	return record.Add(ProcessLeftover(l.process))
}

// Pipes joins the ends of two pipes into one connection.
type Pipes struct {
	io.ReadCloser
	Out io.WriteCloser
}

func (p Pipes) Write(b []byte) (int, error) { return p.Out.Write(b) }

func (p Pipes) Close() error { return errors.Join(p.Out.Close(), p.ReadCloser.Close()) }

func (l *faultFS) call(ctx context.Context, what string, args any) error {
	ctx, cancel := context.WithTimeout(ctx, faultFSLimit)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- l.service.Call(FaultFSService+"."+what, args, nil) }()
	select {
	case err := <-answered:
		if err != nil {
			err = errors.Join(l.gone(), err)
		}
		return err
	case <-l.process.Done():
		return l.gone()
	case <-ctx.Done():
		return fmt.Errorf("the process that serves the file system under %s does not answer: %w", l.point, context.Cause(ctx))
	}
}

// gone returns an error if the serving process has ended, and the disk with it.
func (l *faultFS) gone() error {
	select {
	case <-l.process.Done():
	default:
		return nil
	}
	text, _ := os.ReadFile(l.log())
	return fmt.Errorf("the file system under %s is gone because its process has ended: %w; its log ends: %s",
		l.point, orCleanExit(l.process.Err()), LastLines(text))
}

// close unmounts the file system and moves its contents back.
func (l *faultFS) close() error {
	var err error
	if l.process != nil {
		if l.gone() == nil {
			err = l.call(context.Background(), "Unmount", struct{}{})
		}
		_ = l.service.Close() // the connection is closed already if the process has ended
		err = errors.Join(err, l.process.Kill())
	}
	_, errClear := unmount(l.point)
	if errClear == nil {
		errClear = os.Remove(l.point)
	}
	if errClear != nil && !errors.Is(errClear, os.ErrNotExist) {
		return errors.Join(err, errClear)
	}
	return errors.Join(err, os.Rename(l.data(), l.point), os.RemoveAll(l.store))
}

// errNoFaultFS is the refusal of a node without a fault file system.
var errNoFaultFS = errors.New("its data are not on a fault file system: start its cluster with layer=on, as in KIND:1?layer=on")

// mountFaultFS puts the file system under the node's data before the first start, if the program wants one; life is
// held.
func (s *Server) mountFaultFS(ctx context.Context) error {
	if !s.program.FaultFS {
		return nil
	}
	if l := s.faultFS.Load(); l != nil {
		return l.gone()
	}
	l, err := newFaultFS(ctx, s.host.record, s.dir)
	s.faultFS.Store(l)
	s.unmounted.Store(false)
	return err
}

// DiskFaults returns why the node's disk cannot have faults, or nil if it can.
func (s *Server) DiskFaults() error {
	l := s.faultFS.Load()
	switch {
	case !s.program.FaultFS, s.unmounted.Load():
		return errNoFaultFS
	case l == nil: // before the first start
		return nil
	}
	return l.gone()
}

// Fill makes operations that need space fail with ENOSPC: writes that extend a file, and new names.
func (s *Server) Fill(ctx context.Context) (heal func() error, err error) {
	return s.diskFault(ctx, "fill the disk of", "Fill", true, false)
}

// Slow makes every call to the node's disk take longer by perCall. Data in the kernel's cache is read as fast as
// before.
func (s *Server) Slow(ctx context.Context, perCall time.Duration) (heal func() error, err error) {
	return s.diskFault(ctx, "slow down the disk of", "Slow", perCall, time.Duration(0))
}

func (s *Server) diskFault(ctx context.Context, what, method string, on, off any) (heal func() error, err error) {
	heal = func() error { return s.ask(context.Background(), "heal the disk of", method, off) }
	return heal, s.ask(ctx, what, method, on)
}

// LoseUnsynced discards the node's unsynced writes, as a power failure does. It verifies that a file of its own is
// gone. The node must be down.
func (s *Server) LoseUnsynced() error {
	s.life.Lock()
	defer s.life.Unlock()
	const what = "discard unsynced writes of"
	if s.Running() {
		return fmt.Errorf("%s %s: it is running: kill it first", what, s.Name())
	}
	if err := s.DiskFaults(); err != nil {
		return fmt.Errorf("%s %s: %w", what, s.Name(), err)
	}
	return losing(s.Name(), s.dir, func() error { return s.ask(context.Background(), what, "Lose", struct{}{}) })
}

// Sync marks all of the node's present data as synced. The node may be running.
func (s *Server) Sync() error {
	return s.ask(context.Background(), "mark as synced the data of", "Sync", struct{}{})
}

// ask calls a method of the disk; what describes it in errors, before the node's name.
func (s *Server) ask(ctx context.Context, what, method string, args any) (err error) {
	defer wrap.Error(&err, "%s %s", what, s.Name())
	if err := s.DiskFaults(); err != nil {
		return err
	}
	l := s.faultFS.Load()
	if l == nil {
		return errors.New("it has never been started")
	}
	return l.call(ctx, method, args)
}

// renewDisk removes all disk faults of a node that is being replaced.
func (s *Server) renewDisk(ctx context.Context) error {
	if errors.Is(s.DiskFaults(), errNoFaultFS) {
		return nil
	}
	const what = "give a new disk to"
	return errors.Join(s.ask(ctx, what, "Fill", false), s.ask(ctx, what, "Slow", time.Duration(0)))
}

func (s *Server) removeFaultFS() error {
	if l := s.faultFS.Swap(nil); l != nil {
		s.unmounted.Store(true)
		return l.close()
	}
	return nil
}

const (
	probeName = "stroppy-probe" // name of the file that is written to a node's data to verify a fault
	probeSize = 64 << 10
)

// FillDisk is like Fill. It verifies with a write that there is no space, and after the heal that there is.
func (s *Server) FillDisk(ctx context.Context) (fault.Effect, error) {
	heal, err := s.Fill(ctx)
	return diskEffect(s.Name(), s.Dir(), heal, err, seenFull)
}

// SlowDisk is like Slow. It verifies with a new file how long a call takes, before and after the heal.
func (s *Server) SlowDisk(ctx context.Context, perCall time.Duration) (fault.Effect, error) {
	heal, err := s.Slow(ctx, perCall)
	return diskEffect(s.Name(), s.Dir(), heal, err, seenSlow(perCall))
}

// diskEffect verifies a disk fault and its heal. faulty reports whether an operation on a file in the node's data
// shows the fault.
func diskEffect(name, dir string, heal func() error, err error, faulty func(path string) (bool, string, error)) (fault.Effect, error) {
	if err != nil {
		return fault.Effect{}, err
	}
	verify := func(want bool) (string, error) {
		is, seen, err := faulty(filepath.Join(dir, probeName))
		if err != nil {
			err = fmt.Errorf("verify the disk of %s by a write: %w", name, err)
		} else if is != want {
			err = fmt.Errorf("the disk of %s: %s", name, seen)
		}
		return seen, err
	}
	e := fault.Effect{Heal: wait.Healing(wait.SeenWithin, heal, func(context.Context) (string, error) { return verify(false) })}
	e.Seen, err = verify(true)
	return e, err
}

// seenFull reports whether a write finds no space.
func seenFull(path string) (bool, string, error) {
	err := os.WriteFile(path, make([]byte, probeSize), 0o600)
	errRemove := os.Remove(path)
	if errors.Is(err, syscall.ENOSPC) {
		return true, "a write found no space", nil
	}
	return false, "a write found space", errors.Join(err, errRemove)
}

// seenSlow returns a function that reports whether making a file takes at least perCall. No cache above a file system
// answers that call.
func seenSlow(perCall time.Duration) func(path string) (bool, string, error) {
	return func(path string) (bool, string, error) {
		began := time.Now()
		err := os.WriteFile(path, nil, 0o600)
		took := time.Since(began)
		return took >= perCall, fmt.Sprintf("a file took %v", took.Round(time.Microsecond)), errors.Join(err, os.Remove(path))
	}
}

// losing calls lose, which discards unsynced writes. It verifies that a file of its own in the node's data is lost.
func losing(name, dir string, lose func() error) error {
	path := filepath.Join(dir, probeName)
	if err := os.WriteFile(path, make([]byte, probeSize), 0o600); err != nil {
		return fmt.Errorf("write the file that %s must lose: %w", name, err)
	}
	if err := lose(); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	left, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for the unsynced file of %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the unsynced file of %s: %w", name, err)
	}
	if len(left) == probeSize {
		return fmt.Errorf("an unsynced file in the data of %s was not lost", name)
	}
	return nil
}
