package mariadb

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
		t.Skip("skipped engine: mariadb: install the Debian package " + missing.Package)
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

func mustSQL(t *testing.T, s *Server, statements string) string {
	t.Helper()
	out, err := s.SQL(t.Context(), statements)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// processes returns those that hold the server's folder, or one below it, as
// their working directory.
func processes(t *testing.T, s *Server) (pids []int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, s.Dir()) {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestLife(t *testing.T) {
	s := start(t, Options{Settings: map[string]string{"sync_binlog": "7", "init-connect": `SET @it = 'is "a" \\ test'`}})
	if s.Port() >= 32768 {
		t.Errorf("port %d is among the ephemeral ones", s.Port())
	}
	if got := mustSQL(t, s, "SELECT @@sync_binlog, @@init_connect, DATABASE() IS NULL, @@skip_networking"); got != "7\tSET @it = 'is \"a\" \\\\\\\\ test'\t1\t0" {
		t.Errorf("settings: %s", got)
	}
	mustSQL(t, s, "CREATE TABLE test.t (n int) ENGINE=InnoDB; INSERT INTO test.t VALUES (7)")
	if len(processes(t, s)) == 0 {
		t.Fatal("found no process: this test would prove nothing")
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if left := processes(t, s); len(left) > 0 {
		t.Errorf("Kill left the processes %v", left)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := mustSQL(t, s, "SELECT n FROM test.t"); got != "7" {
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
	conn, err := net.Dial("tcp4", s.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answered := make(chan bool, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		answered <- err == nil
	}()
	select {
	case <-answered:
		t.Error("a paused server greeted")
	case <-time.After(50 * time.Millisecond):
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if !<-answered {
		t.Error("a resumed server did not greet")
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("stop a paused server: %v", err)
	}
	if left := processes(t, s); len(left) > 0 {
		t.Errorf("Stop left the processes %v", left)
	}
	if err := s.Pause(); err == nil {
		t.Error("a stopped server was paused")
	}
}

func TestDirIsKept(t *testing.T) {
	dir := filepath.Join(openDir(t), "server")
	s := start(t, Options{Dir: dir, Settings: map[string]string{"sync-binlog": "3"}})
	mustSQL(t, s, "CREATE TABLE test.t (n int)")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, Options{Dir: dir})
	if got := mustSQL(t, again, "SELECT COUNT(*), @@sync_binlog FROM test.t"); got != "0\t0" {
		t.Errorf("after a second Start: %s", got)
	}
}

func TestRefusedFolderAndSetting(t *testing.T) {
	start(t, Options{}) // skips without MariaDB
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with other files: %v", err)
	}
	_, err := Start(t.Context(), Options{Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
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
	start(t, Options{}) // skips without MariaDB
	dir := filepath.Join(openDir(t), "server")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashLeavesNothing$")
	cmd.Env = append(os.Environ(), "STROPPY_TEST_CRASH_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the other process was not killed: %v: %s", err, out)
	}
	s := &Server{dir: dir}
	for len(processes(t, s)) > 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("interrupted")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
