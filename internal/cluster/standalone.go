package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// StandaloneOptions say how a single server is made. The zero value is a server with
// the settings that its product itself has, fsync included.
type StandaloneOptions struct {
	// Dir is the folder of the server, made if it is missing and kept at Stop. A
	// server that an earlier start made there is started again with its data. If
	// the caller is root, every folder above it must be open to the user nobody.
	// Empty, or a folder that all users share such as /dev/shm: a temporary
	// folder, there, that Stop removes.
	Dir string
	// Settings go into the server's configuration, as in {"fsync": "off"}.
	Settings map[string]string
}

// Standalone is one server on 127.0.0.1 that belongs to no cluster. Its methods
// may be called from several goroutines. Describe one and Make it.
type Standalone struct {
	// Product is the server's name in errors, such as MariaDB, and Users are those
	// of whom the first that exists runs it where the caller is root.
	Product string
	Users   []string
	// Mark is what is in the folder once the data were made to the end.
	Mark string
	// Prepare makes the data, unless Made says that they are there, and the
	// configuration.
	Prepare func(ctx context.Context, settings map[string]string) error
	// Clean removes what the server leaves outside of its folder; nil if nothing.
	Clean func() error
	// Program starts and ends the server. Ready is called while nobody else can
	// start or end it.
	Program Program

	dir       string
	temporary bool
	port      int
	user      User

	mu      sync.Mutex
	process *Process // nil while it is down
}

// Make makes the server and returns when it answers. The name of a temporary folder
// begins with prefix.
func (s *Standalone) Make(ctx context.Context, o StandaloneOptions, prefix string) (err error) {
	s.dir = o.Dir
	if s.user, err = UserFor(s.Product, s.Users...); err != nil {
		return fmt.Errorf("start %s: %w", s.Product, err)
	}
	if s.port, err = FreePort(ctx); err != nil {
		return fmt.Errorf("start %s: %w", s.Product, err)
	}
	if err = s.makeDir(prefix); err == nil {
		if err = s.Prepare(ctx, o.Settings); err == nil {
			err = s.start(ctx)
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start %s in %s: %w", s.Product, s.dir, err), s.Stop())
	}
	return nil
}

// makeDir makes the folder and gives it to the server's user.
func (s *Standalone) makeDir(prefix string) error {
	info, err := os.Stat(s.dir)
	switch {
	case s.dir == "", err == nil && info.Mode()&os.ModeSticky != 0:
		if s.dir, err = os.MkdirTemp(s.dir, prefix); err != nil {
			return err
		}
		s.temporary = true
	default:
		if err = os.MkdirAll(s.dir, 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(s.dir)
		if err != nil {
			return err
		}
		if len(entries) > 0 && !s.Made() {
			return errors.New("the folder is not empty and holds no server: name another")
		}
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if err = s.user.enters(s.dir); err != nil {
		return err
	}
	return s.user.Give(s.dir)
}

// Made says that the folder holds the data of a server.
func (s *Standalone) Made() bool {
	_, err := os.Stat(filepath.Join(s.dir, s.Mark))
	return err == nil
}

// Dir is the folder of the server; data is below it.
func (s *Standalone) Dir() string { return s.dir }

// Port is the server's TCP port on 127.0.0.1.
func (s *Standalone) Port() int { return s.port }

// User is whom the server runs as.
func (s *Standalone) User() User { return s.user }

// Log returns the path of the server's log.
func (s *Standalone) Log() string { return filepath.Join(s.dir, "server.log") }

// start starts the server; mu is held.
func (s *Standalone) start(ctx context.Context) error {
	cmd, err := s.Program.Command(ctx)
	if err != nil {
		return err
	}
	start := func() (*Process, error) { return StartProcess(cmd, s.Program.Death) }
	if s.process, err = s.Program.launch(ctx, cmd, s.Log(), start); err != nil {
		if s.process != nil {
			text, _ := os.ReadFile(s.Log())
			err = errors.Join(fmt.Errorf("it did not become ready: %w: %s", err, LastLines(text)), s.process.Kill())
			s.process = nil
		}
		return err
	}
	return nil
}

// take returns the process, which is not the server's any more.
func (s *Standalone) take() *Process {
	p := s.process
	s.process = nil
	return p
}

// Stop shuts the server down in good order, or kills it if it takes too long,
// and removes its folder if Make made it. A server that is down is no error.
func (s *Standalone) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.shutdown()
	if s.temporary {
		if s.Clean != nil {
			err = errors.Join(err, s.Clean())
		}
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// shutdown ends the process; mu is held.
func (s *Standalone) shutdown() error {
	p := s.take()
	if p == nil {
		return nil
	}
	if err := errors.Join(p.Resume(), p.Signal(s.Program.Shutdown)); err != nil {
		return errors.Join(err, p.Kill())
	}
	if !p.Wait(s.Program.Patience) {
		return p.Kill()
	}
	return nil
}

// Kill ends the server and its descendants with SIGKILL and returns when they are
// gone. The data stay for Restart, which recovers them.
func (s *Standalone) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.take(); p != nil {
		return p.Kill()
	}
	return nil
}

// Restart starts the server again on the same port with the same data, after a
// shutdown in good order if it is running.
func (s *Standalone) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.shutdown()
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return fmt.Errorf("restart %s in %s: %w", s.Product, s.dir, err)
	}
	return nil
}

// Pause stops all the server's processes where they are: connections stay open
// and nothing answers, as on a machine that is frozen.
func (s *Standalone) Pause() error { return s.with("pause", (*Process).Pause) }

// Resume undoes Pause.
func (s *Standalone) Resume() error { return s.with("resume", (*Process).Resume) }

// Signal sends a signal to the server; what says what for.
func (s *Standalone) Signal(what string, signal syscall.Signal) error {
	return s.with(what, func(p *Process) error { return p.Signal(signal) })
}

func (s *Standalone) with(what string, do func(*Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return fmt.Errorf("%s %s in %s: it is not running", what, s.Product, s.dir)
	}
	if err := do(s.process); err != nil {
		return fmt.Errorf("%s %s in %s: %w", what, s.Product, s.dir, err)
	}
	return nil
}
