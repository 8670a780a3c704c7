package postgres

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if missing := new(cluster.MissingError); errors.As(err, missing) {
		t.Skip("skipped engine: postgres: install the Debian package " + missing.Package)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// openDir makes a folder that the server's user can enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// query runs one statement through psql and returns what it printed.
func query(t *testing.T, s *Server, sql string) (string, error) {
	t.Helper()
	psql, err := PGBin("psql")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), psql, "-XAtq", "-c", sql, s.URL()).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func mustQuery(t *testing.T, s *Server, sql string) string {
	t.Helper()
	out, err := query(t, s, sql)
	if err != nil {
		t.Fatalf("%s: %v: %s", sql, err, out)
	}
	return out
}

// backends returns the processes that hold the server's folder as their working
// directory.
func backends(t *testing.T, s *Server) (pids []int) {
	t.Helper()
	return processesIn(t, s.Dir())
}

// processesIn returns the processes whose working directory is in a folder.
func processesIn(t *testing.T, dir string) (pids []int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir) {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestLife(t *testing.T) {
	s := start(t, Options{Settings: map[string]string{"fsync": "off", "application_name": "it's a test"}})
	if s.Port() >= 32768 {
		t.Errorf("port %d is among the ephemeral ones", s.Port())
	}
	if got := mustQuery(t, s, "SELECT current_setting('fsync'), current_setting('data_checksums')"); got != "off|on" {
		t.Errorf("settings: %s", got)
	}
	mustQuery(t, s, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)")
	if len(backends(t, s)) < 3 {
		t.Fatalf("found only the processes %v: this test would prove nothing", backends(t, s))
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if left := backends(t, s); len(left) > 0 {
		t.Errorf("Kill left the processes %v", left)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := mustQuery(t, s, "SELECT n FROM t"); got != "7" {
		t.Errorf("after a kill and two restarts: %s", got)
	}
	dir := s.Dir()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stop left the temporary folder %s", dir)
	}
}

func TestPauseAndStop(t *testing.T) {
	s := start(t, Options{Dir: "/dev/shm"})
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answered := make(chan bool, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		answered <- err == nil
	}()
	// SSLRequest, answered by one byte: PostgreSQL documentation 55.7.
	if _, err := conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-answered:
		t.Error("a paused server answered")
	case <-time.After(50 * time.Millisecond):
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if !<-answered {
		t.Error("a resumed server did not answer")
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("stop a paused server: %v", err)
	}
	if left := backends(t, s); len(left) > 0 {
		t.Errorf("Stop left the processes %v", left)
	}
	if err := s.Pause(); err == nil {
		t.Error("a stopped server was paused")
	}
}

func TestDirIsKept(t *testing.T) {
	dir := filepath.Join(openDir(t), "server")
	s := start(t, Options{Dir: dir, Settings: map[string]string{"fsync": "off"}})
	mustQuery(t, s, "CREATE TABLE t (n int)")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, Options{Dir: dir})
	if got := mustQuery(t, again, "SELECT count(*), current_setting('fsync') FROM t"); got != "0|on" {
		t.Errorf("after a second Start: %s", got)
	}
}

func TestRefusedFolderAndSetting(t *testing.T) {
	start(t, Options{}) // skips without PostgreSQL
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with other files: %v", err)
	}
	_, err := Start(t.Context(), Options{Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("a setting that does not exist: %v", err)
	}
	closed := openDir(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: filepath.Join(closed, "server")}); os.Geteuid() == 0 &&
		(err == nil || !strings.Contains(err.Error(), "cannot enter "+closed)) {
		t.Errorf("a folder that the server's user cannot enter: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled start: %v", err)
	}
}

// TestCrashLeavesNothing runs this test's own program as another process, which
// starts a server and is killed.
func TestCrashLeavesNothing(t *testing.T) {
	if dir := os.Getenv("STROPPY_TEST_CRASH_DIR"); dir != "" {
		if _, err := Start(t.Context(), Options{Dir: dir}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	start(t, Options{}) // skips without PostgreSQL
	dir := filepath.Join(openDir(t), "server")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashLeavesNothing$")
	cmd.Env = append(os.Environ(), "STROPPY_TEST_CRASH_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the other process was not killed: %v: %s", err, out)
	}
	s := &Server{dir: dir}
	for len(backends(t, s)) > 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("interrupted")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
