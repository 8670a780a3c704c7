package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

	*Server   // from Make on
	temporary bool
	port      int
	user      User
}

// Make makes the server and returns when it answers. The name of a temporary folder
// begins with prefix.
func (s *Standalone) Make(ctx context.Context, o StandaloneOptions, prefix string) (err error) {
	if s.user, err = UserFor(s.Product, s.Users...); err != nil {
		return fmt.Errorf("start %s: %w", s.Product, err)
	}
	if s.port, err = FreePort(ctx); err != nil {
		return fmt.Errorf("start %s: %w", s.Product, err)
	}
	s.Server = NewServer(0, nil, o.Dir, "", s.Program)
	err = s.makeDir(prefix)
	s.log, s.name = filepath.Join(s.dir, "server.log"), s.Product+" in "+s.dir
	if err == nil {
		err = s.Prepare(ctx, o.Settings)
	}
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", s.name, err), s.Stop())
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

// Port is the server's TCP port on 127.0.0.1.
func (s *Standalone) Port() int { return s.port }

// User is whom the server runs as.
func (s *Standalone) User() User { return s.user }

// start starts the server; life is held, or nobody else knows the server yet.
func (s *Standalone) start(ctx context.Context) error {
	if err := s.startOnce(ctx); err != nil {
		return errors.Join(fmt.Errorf("it did not become ready: %w%s", err, s.tail()), s.kill())
	}
	return nil
}

// Stop shuts the server down in good order, or kills it if it takes too long,
// and removes its folder if Make made it. A server that is down is no error.
func (s *Standalone) Stop() error {
	s.life.Lock()
	defer s.life.Unlock()
	_, err := s.shutdown(context.Background())
	if s.temporary {
		if s.Clean != nil {
			err = errors.Join(err, s.Clean())
		}
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// Restart starts the server again on the same port with the same data, after a
// shutdown in good order if it is running.
func (s *Standalone) Restart(ctx context.Context) error {
	s.life.Lock()
	defer s.life.Unlock()
	_, err := s.shutdown(ctx)
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return fmt.Errorf("restart %s: %w", s.name, err)
	}
	return nil
}
