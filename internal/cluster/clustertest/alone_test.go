package clustertest

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
	"stroppy/internal/cluster/host"
	mysqlcluster "stroppy/internal/cluster/mysql"
	postgres "stroppy/internal/cluster/postgres/server"
	"stroppy/internal/cluster/wait"
)

// single is a server without a cluster.
type single interface {
	Dir() string
	Port() int
	Kill(ctx context.Context) error
	Restart(ctx context.Context) error
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Stop() error
}

// engine is a database whose servers also run without a cluster.
type engine struct {
	name    string
	startIn func(ctx context.Context, o cluster.Options) (single, error)
	sql     func(t testing.TB, s single, statements string) string
	// settings are returned by the statement ask, and are not set by default.
	settings        map[string]string
	ask, set, unset string
	// hello is the first message of a client, which the server answers.
	hello []byte
	// wrong is a setting that does not exist, and wrongName its name in the server's error.
	wrong, wrongName string
}

var engines = []engine{
	{
		name: "postgres",
		startIn: func(ctx context.Context, o cluster.Options) (single, error) {
			s, err := postgres.Start(ctx, o)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		// The statements run through psql.
		sql: func(t testing.TB, s single, statements string) string {
			t.Helper()
			psql, err := postgres.PGBin("psql")
			Must(t, err)
			out, err := exec.CommandContext(t.Context(), psql, "-XAtq", "-c", statements, s.(*postgres.Server).URL()).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v: %s", statements, err, out)
			}
			return strings.TrimSpace(string(out))
		},
		settings: map[string]string{"fsync": "off", "application_name": "it's a test"},
		ask:      "SELECT current_setting('fsync'), current_setting('data_checksums')", set: "off|on", unset: "on|on",
		hello: []byte{0, 0, 0, 8, 4, 210, 22, 47}, // SSLRequest, answered by one byte: PostgreSQL documentation 55.7
		wrong: "no_such_setting", wrongName: "no_such_setting",
	},
	{
		name: "mariadb",
		startIn: func(ctx context.Context, o cluster.Options) (single, error) {
			s, err := mysqlcluster.Start(ctx, o)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		sql: func(t testing.TB, s single, statements string) string {
			t.Helper()
			out, err := s.(*mysqlcluster.Server).SQL(t.Context(), "USE test; "+statements)
			Must(t, err)
			return out
		},
		settings: map[string]string{"sync_binlog": "7", "init-connect": `SET @it = 'is "a" \\ test'`},
		ask:      "SELECT @@sync_binlog, @@init_connect, @@skip_networking",
		set:      "7\tSET @it = 'is \"a\" \\\\\\\\ test'\t0", unset: "0\t\t0",
		wrong: "no_such_setting", wrongName: "no-such-setting",
	},
}

// TestSingleServerRestartsAfterKillAndPause checks that a single server can be killed, paused and restarted, and
// rejects wrong settings.
func TestSingleServerRestartsAfterKillAndPause(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Run("life", e.life)
			t.Run("pause and stop", e.pauseAndStop)
			t.Run("refusals", e.refuses)
		})
	}
}

// TestServerEndsWithItsProgram checks that a server ends with the program that started it.
func TestServerEndsWithItsProgram(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, e.crash)
	}
}

func inFolder(dir string, settings map[string]string) cluster.Options {
	o := cluster.Alone(settings)
	o.Dir = dir
	return o
}

func (e engine) start(t *testing.T, dir string, settings map[string]string) single {
	t.Helper()
	s, err := e.startIn(t.Context(), inFolder(dir, settings))
	Need(t, e.name, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// processesIn returns the processes whose working directory is in a folder.
func processesIn(t testing.TB, dir string) (pids []int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	Must(t, err)
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir) {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// gone checks that a server has no process.
func gone(t *testing.T, what string, s single) {
	t.Helper()
	if left := processesIn(t, s.Dir()); len(left) > 0 {
		t.Errorf("%s left the processes %v", what, left)
	}
}

func (e engine) life(t *testing.T) {
	s := e.start(t, "", e.settings)
	if s.Port() >= 32768 {
		t.Errorf("port %d is among the ephemeral ones", s.Port())
	}
	if got := e.sql(t, s, e.ask); got != e.set {
		t.Errorf("settings: %s, want %s", got, e.set)
	}
	e.sql(t, s, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)")
	if len(processesIn(t, s.Dir())) == 0 {
		t.Fatal("found no process: this test would prove nothing")
	}
	Must(t, s.Kill(t.Context()))
	gone(t, "Kill", s)
	Must(t, s.Restart(t.Context()))
	Must(t, s.Restart(t.Context()))
	if got := e.sql(t, s, "SELECT n FROM t"); got != "7" {
		t.Errorf("after a kill and two restarts: %s", got)
	}
	dir := s.Dir()
	Must(t, s.Stop())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stop left the temporary folder %s", dir)
	}
}

func (e engine) pauseAndStop(t *testing.T) {
	s := e.start(t, "", nil)
	Must(t, s.Pause(t.Context()))
	conn, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())))
	Must(t, err)
	defer conn.Close()
	answered := make(chan bool, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		answered <- err == nil
	}()
	_, err = conn.Write(e.hello)
	Must(t, err)
	select {
	case <-answered:
		t.Error("a paused server answered")
	case <-time.After(50 * time.Millisecond):
	}
	Must(t, s.Resume(t.Context()))
	if !<-answered {
		t.Error("a resumed server did not answer")
	}
	Must(t, s.Pause(t.Context()))
	Must(t, s.Stop())
	gone(t, "Stop", s)
	if s.Pause(t.Context()) == nil {
		t.Error("a stopped server was paused")
	}
}

func (e engine) refuses(t *testing.T) {
	refused := func(what, dir string, settings map[string]string, says string) {
		t.Helper()
		s, err := e.startIn(t.Context(), inFolder(dir, settings))
		if err == nil {
			Must(t, s.Stop())
		}
		if missing := (host.MissingError{}); errors.As(err, &missing) {
			Need(t, e.name, err)
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", what, err, says)
		}
	}
	dir := OpenDir(t)
	Must(t, os.WriteFile(filepath.Join(dir, "n0"), nil, 0o600))
	refused("a folder with a node of somebody else", dir, nil, "name another folder")
	refused("a setting that does not exist", "", map[string]string{e.wrong: "1"}, e.wrongName)
	closed := OpenDir(t)
	Must(t, os.Chmod(closed, 0o700))
	if os.Geteuid() == 0 {
		refused("a folder that the server's user cannot enter", filepath.Join(closed, "server"), nil, "cannot enter "+closed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.startIn(ctx, cluster.Alone(nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled start: %v", err)
	}
}

// crash runs the test as another process, which starts a server and is killed.
func (e engine) crash(t *testing.T) {
	const marker = "STROPPY_TEST_CRASH_DIR"
	if dir := os.Getenv(marker); dir != "" {
		_, err := e.startIn(t.Context(), inFolder(dir, nil))
		Must(t, err)
		Must(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	e.start(t, "", nil) // skips without the engine
	dir := filepath.Join(OpenDir(t), "server")
	Orphan(t, marker+"="+dir)
	ctx := Within(t, WaitLimit)
	Must(t, wait.Retry(ctx, func() error {
		if left := processesIn(t, dir); len(left) > 0 {
			return errors.New("the server outlived the process that started it")
		}
		return nil
	}))
}
