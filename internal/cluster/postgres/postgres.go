package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// Options say how a server is made. The zero value is a server with the
// settings that PostgreSQL itself has, fsync included.
type Options struct {
	// Dir is the folder of the server, made if it is missing and kept at Stop. A
	// server that an earlier Start made there is started again with its data. If
	// the caller is root, every folder above it must be open to the user nobody.
	// Empty, or a folder that all users share such as /dev/shm: a temporary
	// folder, there, that Stop removes.
	Dir string
	// Settings go into postgresql.conf, as in {"fsync": "off"}.
	Settings map[string]string
}

// Superuser is the superuser of every server, which needs no password.
const Superuser = "postgres"

const (
	debianPackage = "postgresql"
	stopLimit     = 20 * time.Second // for a fast shutdown, which writes a checkpoint
	maxSocketPath = 90               // sun_path of unix(7) has 108 bytes, and the socket's name needs some
)

// Server is a PostgreSQL server. Its methods may be called from several
// goroutines.
type Server struct {
	dir       string
	temporary bool
	port      int
	attr      *syscall.Credential

	mu      sync.Mutex
	process *cluster.Process // nil while it is down
}

// PGBin returns the path of one of PostgreSQL's programs, such as pgbench: the
// newest version that is installed. If there is none the error is a
// cluster.MissingError.
func PGBin(name string) (string, error) {
	return cluster.Find(name, debianPackage, "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
}

// Start makes a server and returns when it answers.
func Start(ctx context.Context, o Options) (*Server, error) {
	initdb, err := PGBin("initdb")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: o.Dir}
	if s.attr, err = cluster.Credential("nobody", "postgres"); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if s.port, err = cluster.FreePort(ctx); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	err = s.prepare(ctx, initdb, o.Settings)
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL in %s: %w", s.dir, err), s.Stop())
	}
	return s, nil
}

// prepare makes the folder, the data and the configuration.
func (s *Server) prepare(ctx context.Context, initdb string, settings map[string]string) (err error) {
	if err = s.makeDir(); err != nil {
		return err
	}
	if _, err = os.Stat(filepath.Join(s.data(), "PG_VERSION")); err != nil {
		if err = initialize(ctx, initdb, s.data(), s.attr); err != nil {
			return err
		}
	}
	return s.configure(settings)
}

// makeDir makes the folder and gives it to the server's user.
func (s *Server) makeDir() error {
	info, err := os.Stat(s.dir)
	switch {
	case s.dir == "", err == nil && info.Mode()&os.ModeSticky != 0:
		if s.dir, err = os.MkdirTemp(s.dir, "stroppy-postgres-"); err != nil {
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
		_, err = os.Stat(s.data())
		if len(entries) > 0 && err != nil {
			return errors.New("the folder is not empty and holds no server: name another")
		}
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil || s.attr == nil {
		return err
	}
	if err = enterable(s.dir, s.attr); err != nil {
		return err
	}
	return os.Chown(s.dir, int(s.attr.Uid), int(s.attr.Gid))
}

// configure writes the settings, ours first, into a file that postgresql.conf
// includes, so that ALTER SYSTEM and a reload still work.
func (s *Server) configure(settings map[string]string) error {
	all := map[string]string{
		"listen_addresses":            "127.0.0.1",
		"port":                        strconv.Itoa(s.port),
		"unix_socket_directories":     s.data(),
		"wal_receiver_timeout":        "3s",
		"wal_sender_timeout":          "3s",
		"wal_retrieve_retry_interval": "100ms",
		"dynamic_shared_memory_type":  "mmap", // files of the data folder, which a kill does not leave elsewhere
	}
	if len(s.data()) > maxSocketPath {
		all["unix_socket_directories"] = ""
	}
	maps.Copy(all, settings)
	if err := os.WriteFile(filepath.Join(s.data(), "stroppy.conf"), settingsText(all), 0o644); err != nil {
		return err
	}
	main := filepath.Join(s.data(), "postgresql.conf")
	conf, err := os.ReadFile(main)
	if err != nil {
		return err
	}
	const include = "include 'stroppy.conf'\n"
	if bytes.Contains(conf, []byte(include)) {
		return nil
	}
	return os.WriteFile(main, append(conf, include...), 0o600)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Log returns the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.dir, "server.log") }

func (s *Server) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.attr}
	return cmd
}

// start starts the postmaster and waits until it says that it is ready, in the
// way of pg_ctl: by the last line of postmaster.pid.
func (s *Server) start(ctx context.Context) error {
	postgres, err := PGBin("postgres")
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command(context.Background(), postgres, "-D", s.data())
	cmd.Stdout, cmd.Stderr = log, log
	// SIGQUIT is the immediate shutdown: the postmaster takes its children along.
	if s.process, err = cluster.StartProcess(cmd, syscall.SIGQUIT); err != nil {
		return err
	}
	if err = s.process.Poll(ctx, s.ready); err != nil {
		text, _ := os.ReadFile(s.Log())
		err = errors.Join(fmt.Errorf("it did not become ready: %w: %s", err, lastLines(text)), s.process.Kill())
		s.process = nil
	}
	return err
}

// ready reads postmaster.pid, whose lines are those of PostgreSQL's
// src/include/utils/pidfile.h: the first is the process, the eighth its state.
func (s *Server) ready() bool {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) >= 8 && lines[0] == strconv.Itoa(s.process.PID()) && strings.TrimSpace(lines[7]) == "ready"
}

// URL is the address of the database postgres for the superuser.
func (s *Server) URL() string { return s.URLFor(Superuser, "", Superuser) }

// URLFor is the address of a database for a user; an empty password is left out.
func (s *Server) URLFor(user, password, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(user), Host: "127.0.0.1:" + strconv.Itoa(s.port),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// Dir is the folder of the server; data is below it.
func (s *Server) Dir() string { return s.dir }

// Port is the server's TCP port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Stop shuts the server down in good order, or kills it if it takes too long,
// and removes its folder if Start made it. A server that is down is no error.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.shutdown()
	if s.temporary {
		err = errors.Join(err, releaseMemory(s.data()), os.RemoveAll(s.dir))
	}
	return err
}

// shutdown ends the process: SIGINT is the fast shutdown, which ends all
// sessions.
func (s *Server) shutdown() error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	if err := errors.Join(p.Resume(), p.Signal(syscall.SIGINT)); err != nil {
		return errors.Join(err, p.Kill())
	}
	if !p.Wait(stopLimit) {
		return p.Kill()
	}
	return nil
}

// Kill ends the postmaster and all its children with SIGKILL and returns when
// they are gone. The data stay for Restart, which recovers them.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	return p.Kill()
}

// Restart starts the server again on the same port with the same data, after a
// shutdown in good order if it is running.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.shutdown(); err != nil {
		return fmt.Errorf("restart PostgreSQL in %s: %w", s.dir, err)
	}
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("restart PostgreSQL in %s: %w", s.dir, err)
	}
	return nil
}

// Pause stops all the server's processes where they are: connections stay open
// and nothing answers, as on a machine that is frozen.
func (s *Server) Pause() error {
	return s.withProcess("pause", (*cluster.Process).Pause)
}

// Resume undoes Pause.
func (s *Server) Resume() error {
	return s.withProcess("resume", (*cluster.Process).Resume)
}

// Reload makes the server read its configuration again.
func (s *Server) Reload() error {
	return s.withProcess("reload", func(p *cluster.Process) error { return p.Signal(syscall.SIGHUP) })
}

func (s *Server) withProcess(what string, do func(*cluster.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return fmt.Errorf("%s PostgreSQL in %s: it is not running", what, s.dir)
	}
	if err := do(s.process); err != nil {
		return fmt.Errorf("%s PostgreSQL in %s: %w", what, s.dir, err)
	}
	return nil
}
