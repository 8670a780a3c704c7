package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// FaultFSCommand is the argument with which this program is started to serve the
// file system of a FaultFS. It has to call disk.Serve then, with its standard input
// and output; so has the test program of a package that starts clusters with
// Options.FaultFS.
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
	client       *rpc.Client
}

// newFaultFS puts a file system under a folder, which it makes if need be. What the
// folder holds counts as synced.
func newFaultFS(ctx context.Context, record *Record, point string) (*faultFS, error) {
	l := &faultFS{point: point, store: filepath.Join(filepath.Dir(point), "."+filepath.Base(point)+".disk")}
	err := l.prepare(record)
	if err == nil {
		if err = l.start(record); err == nil {
			err = l.call(ctx, "Mount", FaultFSMount{Point: l.point, Store: l.store})
		}
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("put a file system under %s: %w", point, err)
	}
	return l, nil
}

// prepare moves the folder into the store and makes an empty one in its place.
func (l *faultFS) prepare(record *Record) error {
	if err := record.Add(MountLeftover(l.point)); err != nil {
		return fmt.Errorf("the nodes' data have to be in a temporary folder for that: %w", err)
	}
	if err := os.MkdirAll(l.point, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(l.store, 0o700); err != nil {
		return err
	}
	if err := os.Rename(l.point, l.data()); err != nil {
		return errors.Join(err, os.Remove(l.store))
	}
	if err := os.Mkdir(l.point, 0o700); err != nil {
		return errors.Join(err, os.Rename(l.data(), l.point), os.Remove(l.store))
	}
	return nil
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
	questions, ask, err := os.Pipe()
	if err != nil {
		return err
	}
	answers, answer, err := os.Pipe()
	if err != nil {
		return errors.Join(err, questions.Close(), ask.Close())
	}
	cmd := exec.Command(program, FaultFSCommand)
	cmd.Stdin, cmd.Stdout = questions, answer
	log, err := os.OpenFile(l.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		cmd.Stderr = log
		l.process, err = StartProcess(cmd, syscall.SIGTERM)
		err = errors.Join(err, log.Close())
	}
	err = errors.Join(err, questions.Close(), answer.Close())
	l.client = jsonrpc.NewClient(pipes{answers, ask})
	if err != nil {
		return err
	}
	return record.Add(ProcessLeftover(l.process))
}

// pipes are the ends of two pipes.
type pipes struct {
	io.ReadCloser
	out io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.out.Write(b) }

func (p pipes) Close() error { return errors.Join(p.out.Close(), p.ReadCloser.Close()) }

// call asks the process for something.
func (l *faultFS) call(ctx context.Context, what string, args any) error {
	ctx, cancel := context.WithTimeout(ctx, faultFSLimit)
	defer cancel()
	done := l.client.Go(FaultFSService+"."+what, args, nil, make(chan *rpc.Call, 1)).Done
	select {
	case call := <-done:
		var said rpc.ServerError
		if call.Error == nil || errors.As(call.Error, &said) {
			return call.Error
		}
		return errors.Join(l.gone(), call.Error)
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
		err = errors.Join(err, l.client.Close(), l.process.Kill())
	}
	if _, errClear := MountLeftover(l.point).clear(); errClear != nil {
		return errors.Join(err, errClear)
	}
	if errRemove := os.Remove(l.point); errRemove != nil {
		return errors.Join(err, errRemove)
	}
	return errors.Join(err, os.Rename(l.data(), l.point), os.RemoveAll(l.store))
}

// errNoFaultFS is what a node without a file system of ours says.
var errNoFaultFS = errors.New("its cluster was started without one: start it with layer=on, as in postgres:1?layer=on")

// disk returns the file system under the node's data.
func (s *Server) disk() (*faultFS, error) {
	s.mu.Lock()
	l := s.faultFS
	s.mu.Unlock()
	if l == nil {
		return nil, errNoFaultFS
	}
	return l, l.gone()
}

// mountFaultFS puts the file system under the node's data, if there has to be one,
// before the first start; life is held.
func (s *Server) mountFaultFS(ctx context.Context) error {
	if !s.program.FaultFS {
		return nil
	}
	s.mu.Lock()
	l := s.faultFS
	s.mu.Unlock()
	if l != nil {
		return l.gone()
	}
	l, err := newFaultFS(ctx, s.host.network.record, s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.faultFS = l
	s.mu.Unlock()
	return nil
}

// Layered says why there is no file system of ours under the node's data, nil if
// there is.
func (s *Server) Layered() error {
	_, err := s.disk()
	return err
}

// Fill lets what needs room on the node's disk fail with ENOSPC: writes that make
// a file longer, and new names.
func (s *Server) Fill(ctx context.Context) (heal func() error, err error) {
	if err := s.ask(ctx, "fill the disk of", "Fill", true); err != nil {
		return nil, err
	}
	return func() error { return s.ask(context.Background(), "give room back to the disk of", "Fill", false) }, nil
}

// Slow lets every call to the node's disk take so much longer. What the kernel has
// in memory is read as fast as ever.
func (s *Server) Slow(ctx context.Context, perCall time.Duration) (heal func() error, err error) {
	if err := s.ask(ctx, "slow down the disk of", "Slow", perCall); err != nil {
		return nil, err
	}
	return func() error {
		return s.ask(context.Background(), "give its speed back to the disk of", "Slow", time.Duration(0))
	}, nil
}

// LoseUnsynced throws away what was written to the node's data and not synced, as
// a power cut does. The node must be down.
func (s *Server) LoseUnsynced() error {
	s.life.Lock()
	defer s.life.Unlock()
	const what = "throw away what was not synced by"
	if s.Running() {
		return fmt.Errorf("%s %s: it is running: kill it first", what, s.Name())
	}
	return s.ask(context.Background(), what, "Lose", struct{}{})
}

// Sync takes all that is in the node's data now as synced. The node may be up.
func (s *Server) Sync() error {
	return s.ask(context.Background(), "take as synced what was written by", "Sync", struct{}{})
}

// ask asks for something of the disk; what says it, before the node's name.
func (s *Server) ask(ctx context.Context, what, method string, args any) error {
	l, err := s.disk()
	if err == nil {
		err = l.call(ctx, method, args)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, s.Name(), err)
	}
	return nil
}

// renewDisk gives a node that is replaced a disk without faults.
func (s *Server) renewDisk(ctx context.Context) error {
	if errors.Is(s.Layered(), errNoFaultFS) {
		return nil
	}
	const what = "give a new disk to"
	return errors.Join(s.ask(ctx, what, "Fill", false), s.ask(ctx, what, "Slow", time.Duration(0)))
}

// removeFaultFS takes the file system away.
func (s *Server) removeFaultFS() error {
	s.mu.Lock()
	l := s.faultFS
	s.faultFS = nil
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.close()
}
