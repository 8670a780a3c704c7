package cluster

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
)

// FaultFSCommand is the argument with which this program is started to serve the
// file system of a FaultFS. It has to call disk.Serve then; so has the test program of
// a package that starts clusters with Options.FaultFS.
const FaultFSCommand = "disk-layer"

// FaultFSService is the name of the service that a fault file system's process offers.
const FaultFSService = "Disk"

// FaultFSMount says what to mount where.
type FaultFSMount struct {
	Point string // an empty folder
	Store string // a folder with the folder data, which is shown at Point
}

// faultFSLimit bounds whatever a fault file system's process is asked, in which it may write
// back much.
const faultFSLimit = time.Minute

// faultFS is a file system of ours under a folder, which can lose what was not
// synced, fill up, and be slow; see the package disk. What the folder held is in
// its store meanwhile, a folder beside it whose name begins with a dot.
type faultFS struct {
	point, store string
	process      *Process
	service      service
}

// service is a client of FaultFSService in another process.
type service interface {
	// ask calls a method, and sends what became of that once.
	ask(method string, args any) <-chan answer
	Close() error
}

// answer is the error of a call, and whether it is the other process that has said so.
type answer struct {
	err   error
	heard bool
}

// newFaultFS puts a file system under a folder, which it makes if need be. What the
// folder holds counts as synced: it is moved into the store.
func newFaultFS(ctx context.Context, record *Record, point string) (l *faultFS, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("put a file system under %s: %w", point, err)
		}
	}()
	l = &faultFS{point: point, store: filepath.Join(filepath.Dir(point), "."+filepath.Base(point)+".disk")}
	if err := record.Add(Leftover{Kind: LeftMount, Name: point}); err != nil {
		return nil, fmt.Errorf("the nodes' data have to be in a temporary folder for that: %w", err)
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

// start starts the process that serves the file system. It ends when its standard
// input does.
func (l *faultFS) start(record *Record) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, which is to serve it: %w", err)
	}
	if len(os.Args) > 1 && os.Args[1] == FaultFSCommand {
		return errors.New("a process that is to serve a file system starts another one: the program does not know its argument " + FaultFSCommand)
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

// Pipes are the ends of two pipes as one connection.
type Pipes struct {
	io.ReadCloser
	Out io.WriteCloser
}

func (p Pipes) Write(b []byte) (int, error) { return p.Out.Write(b) }

// Close closes both.
func (p Pipes) Close() error { return errors.Join(p.Out.Close(), p.ReadCloser.Close()) }

func (l *faultFS) call(ctx context.Context, what string, args any) error {
	ctx, cancel := context.WithTimeout(ctx, faultFSLimit)
	defer cancel()
	select {
	case a := <-l.service.ask(what, args):
		if a.err == nil || a.heard {
			return a.err
		}
		return errors.Join(l.gone(), a.err)
	case <-l.process.Done():
		return l.gone()
	case <-ctx.Done():
		return fmt.Errorf("the process that serves the file system under %s does not answer: %w", l.point, context.Cause(ctx))
	}
}

// gone is an error if the process has ended, and with it the disk.
func (l *faultFS) gone() error {
	select {
	case <-l.process.Done():
	default:
		return nil
	}
	text, _ := os.ReadFile(l.log())
	return fmt.Errorf("the file system under %s is gone, for the process that serves it has ended: %w; its log ends: %s",
		l.point, orCleanExit(l.process.Err()), LastLines(text))
}

// close takes the file system away and puts what it showed in its place.
func (l *faultFS) close() error {
	var err error
	if l.process != nil {
		if l.gone() == nil {
			err = l.call(context.Background(), "Unmount", struct{}{})
		}
		_ = l.service.Close() // closed already where the process has ended
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

// errNoFaultFS is what a node without a file system of ours says.
var errNoFaultFS = errors.New("its data have no file system of ours under them: start its cluster with layer=on, as in KIND:1?layer=on")

// mountFaultFS puts the file system under the node's data, if there has to be one,
// before the first start; life is held.
func (s *Server) mountFaultFS(ctx context.Context) error {
	if !s.program.FaultFS {
		return nil
	}
	if l := s.faultFS.Load(); l != nil {
		return l.gone()
	}
	l, err := newFaultFS(ctx, s.host.network.record, s.dir)
	s.faultFS.Store(l)
	return err
}

// DiskFaults says why the node's disk can have no faults, which is where its data have
// no file system of ours under them; nil if it can.
func (s *Server) DiskFaults() error {
	l := s.faultFS.Load()
	switch {
	case s.planned && s.program.FaultFS:
		return nil
	case l == nil:
		return errNoFaultFS
	}
	return l.gone()
}

// Fill lets what needs room on the node's disk fail with ENOSPC: writes that make
// a file longer, and new names.
func (s *Server) Fill(ctx context.Context) (heal func() error, err error) {
	return s.diskFault(ctx, "fill the disk of", "Fill", true, false)
}

// Slow lets every call to the node's disk take so much longer. What the kernel has
// in memory is read as fast as ever.
func (s *Server) Slow(ctx context.Context, perCall time.Duration) (heal func() error, err error) {
	return s.diskFault(ctx, "slow down the disk of", "Slow", perCall, time.Duration(0))
}

func (s *Server) diskFault(ctx context.Context, what, method string, on, off any) (heal func() error, err error) {
	heal = func() error { return s.ask(context.Background(), "heal the disk of", method, off) }
	return heal, s.ask(ctx, what, method, on)
}

// LoseUnsynced throws away what was written to the node's data and not synced, as
// a power cut does, and sees that a file of its own is gone. The node must be down.
func (s *Server) LoseUnsynced() error {
	s.life.Lock()
	defer s.life.Unlock()
	const what = "throw away what was not synced by"
	if s.Running() {
		return fmt.Errorf("%s %s: it is running: kill it first", what, s.Name())
	}
	if err := s.DiskFaults(); err != nil {
		return fmt.Errorf("%s %s: %w", what, s.Name(), err)
	}
	return losing(s.Name(), s.dir, func() error { return s.ask(context.Background(), what, "Lose", struct{}{}) })
}

// Sync takes all that is in the node's data now as synced. The node may be up.
func (s *Server) Sync() error {
	return s.ask(context.Background(), "take as synced what was written by", "Sync", struct{}{})
}

// ask asks for something of the disk; what says it, before the node's name.
func (s *Server) ask(ctx context.Context, what, method string, args any) error {
	err := s.DiskFaults()
	if err == nil {
		err = s.faultFS.Load().call(ctx, method, args)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, s.Name(), err)
	}
	return nil
}

// renewDisk gives a node that is replaced a disk without faults.
func (s *Server) renewDisk(ctx context.Context) error {
	if errors.Is(s.DiskFaults(), errNoFaultFS) {
		return nil
	}
	const what = "give a new disk to"
	return errors.Join(s.ask(ctx, what, "Fill", false), s.ask(ctx, what, "Slow", time.Duration(0)))
}

func (s *Server) removeFaultFS() error {
	if l := s.faultFS.Swap(nil); l != nil {
		return l.close()
	}
	return nil
}

const (
	probeName = "stroppy-probe" // is written to a node's data to see what becomes of it
	probeSize = 64 << 10
)

// FillDisk is Fill that sees by a write of its own to the node's data that there is
// no space, and after the heal that there is.
func (s *Server) FillDisk(ctx context.Context) (Effect, error) {
	heal, err := s.Fill(ctx)
	return diskEffect(s.Name(), s.Dir(), heal, err, seenFull)
}

// SlowDisk is Slow that sees by a file of its own in the node's data how long a call
// takes, and after the heal that it does not any more.
func (s *Server) SlowDisk(ctx context.Context, perCall time.Duration) (Effect, error) {
	heal, err := s.Slow(ctx, perCall)
	return diskEffect(s.Name(), s.Dir(), heal, err, seenSlow(perCall))
}

// diskEffect verifies a fault and its heal by what faulty sees of a file of ours in the
// node's data.
func diskEffect(name, dir string, heal func() error, err error, faulty func(path string) (bool, string, error)) (Effect, error) {
	if err != nil {
		return Effect{}, err
	}
	verify := func(want bool) (string, error) {
		is, seen, err := faulty(filepath.Join(dir, probeName))
		if err != nil {
			err = fmt.Errorf("write to the data of %s to see the state of its disk: %w", name, err)
		} else if is != want {
			err = fmt.Errorf("the disk of %s: %s", name, seen)
		}
		return seen, err
	}
	e := Effect{Heal: healing(SeenWithin, heal, func(context.Context) (string, error) { return verify(false) })}
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

// seenSlow reports whether a call takes its time. It makes a file, which no cache above
// a file system answers.
func seenSlow(perCall time.Duration) func(path string) (bool, string, error) {
	return func(path string) (bool, string, error) {
		began := time.Now()
		err := os.WriteFile(path, nil, 0o600)
		took := time.Since(began)
		return took >= perCall, fmt.Sprintf("a file took %v", took.Round(time.Microsecond)), errors.Join(err, os.Remove(path))
	}
}

// losing calls lose, which throws away what was written and not synced, and holds
// that a file of its own in the node's data is among that.
func losing(name, dir string, lose func() error) error {
	path := filepath.Join(dir, probeName)
	if err := os.WriteFile(path, make([]byte, probeSize), 0o600); err != nil {
		return fmt.Errorf("write to the data of %s, to see that it gets lost: %w", name, err)
	}
	if err := lose(); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	left, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the data of %s for what was not synced: %w", name, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove a file of ours from the data of %s: %w", name, err)
	}
	if len(left) == probeSize {
		return fmt.Errorf("a file in the data of %s that was not synced is there yet", name)
	}
	return nil
}
