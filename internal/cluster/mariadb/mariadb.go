// Package mariadb starts a real MariaDB server on this machine.
package mariadb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
// settings that MariaDB itself has, fsync included.
type Options struct {
	// Dir is the folder of the server, made if it is missing and kept at Stop. A
	// server that an earlier Start made there is started again with its data. If
	// the caller is root, every folder above it must be open to the user nobody.
	// Empty, or a folder that all users share such as /dev/shm: a temporary
	// folder, there, that Stop removes.
	Dir string
	// Settings go into the option file, as in {"sync-binlog": "1"}.
	Settings map[string]string
}

// Superuser is the superuser of every server, which needs no password and can
// come from this machine only.
const Superuser = "root"

const (
	debianPackage = "mariadb-server"
	stopLimit     = 20 * time.Second // for a shutdown in good order, which writes dirty pages
)

// Server is a MariaDB server. Its methods may be called from several
// goroutines.
type Server struct {
	dir       string
	temporary bool
	port      int
	attr      *syscall.Credential

	mu      sync.Mutex
	process *cluster.Process // nil while it is down
}

// Bin returns the path of one of MariaDB's programs, such as mariadb, the
// client. If there is none the error is a cluster.MissingError.
func Bin(name string) (string, error) {
	return cluster.Find(name, debianPackage, "/usr/sbin", "/usr/bin", "/usr/libexec")
}

// Start makes a server and returns when it answers.
func Start(ctx context.Context, o Options) (*Server, error) {
	install, err := Bin("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: o.Dir}
	if s.attr, err = cluster.Credential("nobody", "mysql"); err != nil {
		return nil, fmt.Errorf("start MariaDB: %w", err)
	}
	if s.port, err = cluster.FreePort(ctx); err != nil {
		return nil, fmt.Errorf("start MariaDB: %w", err)
	}
	err = s.prepare(ctx, install, o.Settings)
	if err == nil {
		err = s.start(ctx)
	}
	if err == nil {
		_, err = s.SQL(ctx, "CREATE DATABASE IF NOT EXISTS test")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start MariaDB in %s: %w", s.dir, err), s.Stop())
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) options() string { return filepath.Join(s.dir, "server.cnf") }

// Log returns the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.dir, "server.log") }

func (s *Server) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.attr}
	return cmd
}

// start starts the server and waits until it greets.
func (s *Server) start(ctx context.Context) error {
	mariadbd, err := Bin("mariadbd")
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command(context.Background(), mariadbd, "--defaults-file="+s.options())
	cmd.Stdout, cmd.Stderr = log, log
	if s.process, err = cluster.StartProcess(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	if err = s.process.Poll(ctx, func() bool { return s.greets(ctx) }); err != nil {
		text, _ := os.ReadFile(s.Log())
		err = errors.Join(fmt.Errorf("it did not become ready: %w: %s", err, lastLines(text)), s.process.Kill())
		s.process = nil
	}
	return err
}

// greetLimit bounds the wait for one greeting: the kernel takes connections for
// a server that does not look at them yet.
const greetLimit = 250 * time.Millisecond

// greets tells whether the server sends its greeting, which it does once it has
// recovered and takes connections: a packet that begins with the protocol's
// version, 10 (https://mariadb.com/docs/server/reference/clientserver-protocol/1-connecting/connection).
func (s *Server) greets(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, greetLimit)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp4", s.address())
	if err != nil {
		return false
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok && conn.SetDeadline(deadline) != nil {
		return false
	}
	var head [5]byte // the length of the packet in three bytes, its number, and the version
	_, err = io.ReadFull(conn, head[:])
	return err == nil && head[4] == 10
}

func (s *Server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is the address of the database named test for the superuser.
func (s *Server) URL() string { return s.URLFor(Superuser, "", "test") }

// URLFor is the address of a database for a user; an empty password is left out.
func (s *Server) URLFor(user, password, database string) string {
	u := url.URL{Scheme: "mysql", User: url.User(user), Host: s.address(), Path: "/" + database}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// SQL runs statements as the superuser by MariaDB's own client and returns what
// they print, one row a line with tabs between the columns.
func (s *Server) SQL(ctx context.Context, statements string) (string, error) {
	client, err := Bin("mariadb")
	if err != nil {
		return "", err
	}
	cmd := s.command(ctx, client, "--no-defaults", "--batch", "--skip-column-names", "--protocol=tcp",
		"--host=127.0.0.1", "--port="+strconv.Itoa(s.port), "--user="+Superuser, "--execute="+statements)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run SQL on MariaDB in %s: %w: %s", s.dir, err, lastLines(out))
	}
	return strings.TrimSpace(string(out)), nil
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
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// shutdown ends the process: SIGTERM is the shutdown in good order
// (https://mariadb.com/docs/server/server-management/starting-and-stopping-mariadb/mariadbd-options).
func (s *Server) shutdown() error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	if err := errors.Join(p.Resume(), p.Signal(syscall.SIGTERM)); err != nil {
		return errors.Join(err, p.Kill())
	}
	if !p.Wait(stopLimit) {
		return p.Kill()
	}
	return nil
}

// Kill ends the server with SIGKILL and returns when it is gone. The data stay
// for Restart, which recovers them.
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
		return fmt.Errorf("restart MariaDB in %s: %w", s.dir, err)
	}
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("restart MariaDB in %s: %w", s.dir, err)
	}
	return nil
}

// Pause stops the server where it is: connections stay open and nothing answers,
// as on a machine that is frozen.
func (s *Server) Pause() error { return s.withProcess("pause", (*cluster.Process).Pause) }

// Resume undoes Pause.
func (s *Server) Resume() error { return s.withProcess("resume", (*cluster.Process).Resume) }

func (s *Server) withProcess(what string, do func(*cluster.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return fmt.Errorf("%s MariaDB in %s: it is not running", what, s.dir)
	}
	if err := do(s.process); err != nil {
		return fmt.Errorf("%s MariaDB in %s: %w", what, s.dir, err)
	}
	return nil
}

// lastLines returns the end of a program's output, enough to see why it failed.
func lastLines(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}
