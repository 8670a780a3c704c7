package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"stroppy/internal/cluster/wait"
	"stroppy/internal/cluster/wrap"
)

// Program describes the server of one node to a Server.
type Program struct {
	// Command returns the command that starts the server on its data. Output goes to the node's log unless the
	// command redirects it.
	Command func(ctx context.Context) (*exec.Cmd, error)
	// Ready waits until the server answers. When ctx ends it returns the cause.
	Ready func(ctx context.Context) error
	// Join prepares an empty data folder so that the server becomes a member again. It is called while the server is
	// down.
	Join func(ctx context.Context) error
	// Replacing calls replace, which kills the server, removes its data and lets it Join, when the cluster is prepared
	// for the loss; nil: at once.
	Replacing func(ctx context.Context, replace func(context.Context) error) error
	// Death is the signal that the kernel sends when this program ends. Shutdown is the signal for a clean shutdown.
	Death, Shutdown syscall.Signal
	// ShutdownLimit bounds a clean shutdown; it depends on the product. Insist is the interval at which Shutdown is
	// repeated, for a server that may refuse it; 0 means never.
	ShutdownLimit, Insist time.Duration
	// FaultFS puts a fault file system under the data at the first start; the present data count as synced. Close
	// removes it.
	FaultFS bool
	// Clock lets the server's clock be changed, if the machine and the program allow it.
	Clock bool
	// Now asks the server for its time; nil if it cannot be asked.
	Now func(ctx context.Context) (time.Time, error)
}

// Server is one node's server process. It is a Node. Create it with NewServer.
type Server struct {
	number  int
	name    string // such as n0
	host    *Host  // nil: this machine
	dir     string // folder of the data
	log     string
	program Program
	being   context.Context // ends with the node's membership
	end     context.CancelCauseFunc

	life       sync.Mutex // held while the process is started or ended
	mu         sync.Mutex
	process    *Process           // nil if it is down
	restarting context.CancelFunc // aborts a RestartEnded; nil if there is none
	frozen     []processID        // processes that Pause has stopped; nil if not paused
	steering

	faultFS    atomic.Pointer[faultFS] // nil if there is none, and before the first start
	unmounted  atomic.Bool             // Close has removed it
	stress     atomic.Pointer[stress]  // nil if no stress fault is active
	stressable atomic.Bool             // Stressable has succeeded
}

// NewServer describes the server of a node, but does not start it. The node's membership ends with life. dir holds its
// data, and log is the file of its output.
func NewServer(life context.Context, number int, host *Host, dir, log string, program Program) *Server {
	s := &Server{number: number, name: "n" + strconv.Itoa(number), host: host, dir: dir, log: log, program: program}
	s.being, s.end = context.WithCancelCause(life)
	return s
}

// Life ends when the node is removed from its cluster, or when the cluster is stopped.
func (s *Server) Life() context.Context { return s.being }

// Bound returns a context that also ends with the node's membership.
func (s *Server) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return Bound(ctx, s.being)
}

// Retire ends all operations on the node, with a cause.
func (s *Server) Retire(why error) { s.end(why) }

func (s *Server) Number() int  { return s.number }
func (s *Server) Name() string { return s.name }
func (s *Server) Host() *Host  { return s.host }
func (s *Server) Dir() string  { return s.dir }
func (s *Server) Log() string  { return s.log }

// Running reports whether the server's process exists, paused or not.
func (s *Server) Running() bool { return s.current() != nil }

// current returns the process, or nil if it has ended.
func (s *Server) current() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	select {
	case <-s.process.Done():
		return nil
	default:
		return s.process
	}
}

// Crashed returns the exit error if a signal ended the server although nobody killed, terminated or replaced it, such
// as its own SIGABRT. Otherwise it returns nil.
func (s *Server) Crashed() error {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil || s.Running() {
		return nil
	}
	exit, ok := errors.AsType[*exec.ExitError](p.Err())
	if !ok || exit.ExitCode() != -1 { // the exit code of a process that a signal has ended
		return nil
	}
	return exit
}

// PIDs returns the numbers of the server's process and its descendants.
func (s *Server) PIDs() []int {
	p := s.current()
	if p == nil {
		return nil
	}
	var pids []int
	for _, id := range p.tree() {
		pids = append(pids, id.pid)
	}
	return pids
}

// startTries bounds the attempts to start one server. After kill -9 the first ones may fail until the resources of
// the dead process are free.
const startTries = 20

// ErrStartAgain is returned by Ready for a server that runs but will not become ready. It is killed and started
// again.
var ErrStartAgain = errors.New("the server must be restarted")

// Renew kills a running server and starts it on its data if needed returns true. A server that is down or paused
// stays so.
func (s *Server) Renew(ctx context.Context, needed func() bool) error {
	s.life.Lock()
	defer s.life.Unlock()
	if !s.Awake() || !needed() {
		return nil
	}
	if err := s.kill(); err != nil {
		return err
	}
	return s.start(ctx)
}

// Restart starts the server on its data, unless it runs, and returns when it answers.
func (s *Server) Restart(ctx context.Context) error {
	ctx, cancel := s.Bound(ctx)
	defer cancel()
	s.life.Lock()
	defer s.life.Unlock()
	return s.start(ctx)
}

func (s *Server) start(ctx context.Context) error {
	if s.Running() {
		return nil
	}
	err := context.Cause(ctx)
	if err == nil {
		err = s.mountFaultFS(ctx)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Name(), err)
	}
	for try := 1; ; try++ {
		err := s.startOnce(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, ErrStartAgain) {
			err = errors.Join(err, s.kill())
		}
		if try == startTries || ctx.Err() != nil || s.Running() {
			return fmt.Errorf("start %s: %w%s", s.Name(), errors.Join(err, s.kill()), s.EndOfLog())
		}
		_ = wait.Sleep(ctx, 50*time.Millisecond)
	}
}

// startOnce starts the server and returns when it answers. After an error there may be a process. Output goes to the
// log unless the command redirects it.
func (s *Server) startOnce(ctx context.Context) error {
	cmd, err := s.program.Command(ctx)
	if err == nil {
		err = s.preload(cmd)
	}
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	if cmd.Stderr == nil {
		cmd.Stderr = log
	}
	process, err := s.host.Start(cmd, s.program.Death)
	if err != nil {
		return err
	}
	s.mu.Lock()
	ended := s.process
	s.process, s.frozen = process, nil
	s.mu.Unlock()
	if ended != nil {
		forgetShared(ended.PID())
	}
	if err := s.recordShared(process); err != nil {
		return err
	}
	s.joinStress(ctx)
	ready, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-process.Done():
			stop(fmt.Errorf("it ended at once: %w", orCleanExit(process.Err())))
		case <-ready.Done():
		}
	}()
	err = s.program.Ready(ready)
	if cause := context.Cause(ready); err != nil && cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return err
}

func orCleanExit(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// EndOfLog returns the end of the log as a part of an error, or "" if the log is empty.
func (s *Server) EndOfLog() string {
	if text, _ := os.ReadFile(s.log); len(text) > 0 {
		return "; its log ends: " + LastLines(text)
	}
	return ""
}

// Kill ends the server and its descendants with SIGKILL and returns when they are gone. The end of the context does
// not interrupt it.
func (s *Server) Kill(context.Context) error {
	s.endRestart()
	s.life.Lock()
	defer s.life.Unlock()
	return s.kill()
}

func (s *Server) kill() error {
	s.mu.Lock()
	p := s.process
	s.process, s.frozen = nil, nil
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	if err := p.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", s.Name(), err)
	}
	forgetShared(p.PID())
	return nil
}

// Close kills the server and removes its fault file system, its clock file and its stress. The data stay. It may be
// called again.
func (s *Server) Close() error {
	s.endRestart()
	s.life.Lock()
	defer s.life.Unlock()
	return errors.Join(s.kill(), s.endStress(), s.removeFaultFS(), s.removeClock())
}

// Erase closes the server and removes the data and the log.
func (s *Server) Erase() error {
	return errors.Join(s.Close(), os.RemoveAll(s.dir), os.RemoveAll(s.log))
}

// Terminate shuts the server down cleanly. If this takes longer than its ShutdownLimit, the server is killed and
// Terminate returns an error.
func (s *Server) Terminate(ctx context.Context) (err error) {
	defer wrap.Error(&err, "terminate %s", s.Name())
	s.endRestart()
	s.life.Lock()
	defer s.life.Unlock()
	p := s.current()
	if p == nil {
		return nil
	}
	before := p.tree()
	if err := errors.Join(s.resume(ctx, p), s.shutdown(ctx, p), s.kill()); err != nil {
		return err
	}
	return gone(before)
}

// shutdown asks a process to end, and waits for its end.
func (s *Server) shutdown(ctx context.Context, p *Process) error {
	ctx, cancel := context.WithTimeout(ctx, s.program.ShutdownLimit)
	defer cancel()
	for {
		if err := p.Signal(s.program.Shutdown); err != nil {
			return err
		}
		select {
		case <-p.Done():
			return nil
		case <-time.After(cmp.Or(s.program.Insist, s.program.ShutdownLimit)):
		case <-ctx.Done():
			return fmt.Errorf("it did not end within %v of the signal %q and was killed%s", s.program.ShutdownLimit, s.program.Shutdown, s.EndOfLog())
		}
	}
}

// Pause stops the server's processes and returns when all are seen to be stopped. Connections stay open, and nothing
// answers.
func (s *Server) Pause(ctx context.Context) (err error) {
	defer wrap.Error(&err, "pause %s", s.Name())
	p := s.current()
	if p == nil {
		return errors.New("it is not running")
	}
	frozen, err := p.pause(ctx)
	if err != nil {
		return err
	}
	if !s.Running() {
		return errors.New("it ended instead of being paused")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = frozen
	return nil
}

// StillPaused returns an error if a process that Pause has stopped runs. A process that has ended since is no error.
func (s *Server) StillPaused(context.Context) error {
	if err := allStopped(s.stopped()); err != nil {
		return fmt.Errorf("%s was paused, and something else resumed it: %w", s.Name(), err)
	}
	return nil
}

func (s *Server) stopped() []processID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frozen
}

// Resume undoes Pause and returns when no process is seen to be stopped. It returns nil for a server that has ended.
func (s *Server) Resume(ctx context.Context) error {
	if p := s.current(); p != nil {
		return s.resume(ctx, p)
	}
	return nil
}

func (s *Server) resume(ctx context.Context, p *Process) (err error) {
	defer wrap.Error(&err, "resume %s", s.Name())
	s.mu.Lock()
	frozen := s.frozen
	s.frozen = nil
	s.mu.Unlock()
	if err := p.Resume(); err != nil {
		return err
	}
	return noneStopped(ctx, frozen)
}

// Awake reports whether the server runs and is not paused.
func (s *Server) Awake() bool { return s.Running() && !s.Paused() }

// Absent returns why the server is not Awake: it is paused, or it is down. The end of the log is added, because the
// server may have ended by itself.
func (s *Server) Absent() error {
	if s.Running() {
		return fmt.Errorf("%s is paused", s.Name())
	}
	return fmt.Errorf("%s is down%s", s.Name(), s.EndOfLog())
}

// Paused reports whether Pause was called and Resume was not.
func (s *Server) Paused() bool { return s.stopped() != nil }

var errAlone = errors.New("a cluster of one node has no other copy of the data")

// Replace kills the server, empties its data folder and lets it join again, on a disk without faults.
func (s *Server) Replace(ctx context.Context) error {
	ctx, cancel := s.Bound(ctx)
	defer cancel()
	switch {
	case s.program.Join == nil:
		return fmt.Errorf("replace %s: %w", s.Name(), errAlone)
	case s.program.Replacing != nil:
		return s.program.Replacing(ctx, s.replace)
	}
	return s.replace(ctx)
}

func (s *Server) replace(ctx context.Context) error {
	s.life.Lock()
	defer s.life.Unlock()
	if err := s.kill(); err != nil {
		return err
	}
	err := s.renewDisk(ctx)
	if err == nil {
		err = s.empty()
	}
	if err != nil {
		return fmt.Errorf("replace %s: remove its data: %w", s.Name(), err)
	}
	err = s.program.Join(ctx)
	if err == nil && s.DiskFaults() == nil { // the initial data of a node count as synced
		err = s.Sync()
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", s.Name(), err)
	}
	return s.start(ctx)
}

// empty removes the contents of the data folder, but not the folder, which may be a mount.
func (s *Server) empty() error {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, e.Name())))
	}
	if err != nil {
		return err
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		return errors.Join(fmt.Errorf("%d files are left in %s", len(left), s.dir), err)
	}
	return nil
}

// Bound returns a context that also ends with life, and with its cause.
func Bound(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if life.Err() != nil {
		cancel(context.Cause(life)) // at once; AfterFunc would be later
	}
	release := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() { release(); cancel(nil) }
}

// Ended reports whether the server ended although nobody killed or stopped it.
func (s *Server) Ended() bool {
	s.mu.Lock()
	started := s.process != nil
	s.mu.Unlock()
	return started && !s.Running()
}

// RestartEnded starts a server that has Ended. Kill, Terminate and Close abort the start. After any other error the
// server still counts as Ended.
func (s *Server) RestartEnded(ctx context.Context) error {
	ctx, cancel := s.Bound(ctx)
	defer cancel()
	s.life.Lock()
	defer s.life.Unlock()
	if !s.Ended() {
		return nil
	}
	s.mu.Lock()
	ended := s.process
	s.restarting = cancel
	s.mu.Unlock()
	err := s.start(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarting = nil
	if err != nil {
		s.process = ended
	}
	return err
}

// endRestart aborts a RestartEnded that holds life, so that nobody waits for it.
func (s *Server) endRestart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.restarting != nil {
		s.restarting()
	}
}
