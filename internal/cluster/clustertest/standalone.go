package clustertest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster"
)

// Single is a single server, as its tests have it.
type Single interface {
	Dir() string
	Port() int
	Kill() error
	Restart(ctx context.Context) error
	Pause() error
	Resume() error
	Stop() error
}

// Singles are the single servers of one engine.
type Singles struct {
	Engine string
	Start  func(ctx context.Context, o cluster.StandaloneOptions) (Single, error)
	SQL    func(t testing.TB, s Single, statements string) string
	// Settings are asked for by Ask, which says Told then and Default without them.
	Settings           map[string]string
	Ask, Told, Default string
	// Hello is what a client sends at first; the server answers it.
	Hello []byte
	// Wrong is a setting that there is none of, and WrongSays what the server calls it.
	Wrong, WrongSays string
}

// Starter is an engine's start as Singles has it.
func Starter[S Single](start func(context.Context, cluster.StandaloneOptions) (S, error)) func(context.Context, cluster.StandaloneOptions) (Single, error) {
	return func(ctx context.Context, o cluster.StandaloneOptions) (Single, error) {
		s, err := start(ctx, o)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// Run holds what a single server has to stand.
func (e Singles) Run(t *testing.T) {
	t.Run("life", e.life)
	t.Run("pause and stop", e.pauseAndStop)
	t.Run("a folder is kept", e.keeps)
	t.Run("refusals", e.refuses)
}

func (e Singles) start(t *testing.T, dir string, settings map[string]string) Single {
	t.Helper()
	s, err := e.Start(t.Context(), cluster.StandaloneOptions{Dir: dir, Settings: settings})
	Need(t, e.Engine, err)
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

// gone holds that a server has no process.
func gone(t *testing.T, what string, s Single) {
	t.Helper()
	if left := processesIn(t, s.Dir()); len(left) > 0 {
		t.Errorf("%s left the processes %v", what, left)
	}
}

func (e Singles) life(t *testing.T) {
	s := e.start(t, "", e.Settings)
	if s.Port() >= 32768 {
		t.Errorf("port %d is among the ephemeral ones", s.Port())
	}
	if got := e.SQL(t, s, e.Ask); got != e.Told {
		t.Errorf("settings: %s, want %s", got, e.Told)
	}
	e.SQL(t, s, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)")
	if len(processesIn(t, s.Dir())) == 0 {
		t.Fatal("found no process: this test would prove nothing")
	}
	Must(t, s.Kill())
	gone(t, "Kill", s)
	Must(t, s.Restart(t.Context()))
	Must(t, s.Restart(t.Context()))
	if got := e.SQL(t, s, "SELECT n FROM t"); got != "7" {
		t.Errorf("after a kill and two restarts: %s", got)
	}
	dir := s.Dir()
	Must(t, s.Stop())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stop left the temporary folder %s", dir)
	}
}

func (e Singles) pauseAndStop(t *testing.T) {
	s := e.start(t, "/dev/shm", nil)
	Must(t, s.Pause())
	conn, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())))
	Must(t, err)
	defer conn.Close()
	answered := make(chan bool, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		answered <- err == nil
	}()
	_, err = conn.Write(e.Hello)
	Must(t, err)
	select {
	case <-answered:
		t.Error("a paused server answered")
	case <-time.After(50 * time.Millisecond):
	}
	Must(t, s.Resume())
	if !<-answered {
		t.Error("a resumed server did not answer")
	}
	Must(t, s.Pause())
	Must(t, s.Stop())
	gone(t, "Stop", s)
	if s.Pause() == nil {
		t.Error("a stopped server was paused")
	}
}

func (e Singles) keeps(t *testing.T) {
	dir := filepath.Join(OpenDir(t), "server")
	s := e.start(t, dir, e.Settings)
	e.SQL(t, s, "CREATE TABLE t (n int)")
	Must(t, s.Stop())
	again := e.start(t, dir, nil)
	if got := e.SQL(t, again, "SELECT count(*) FROM t") + " " + e.SQL(t, again, e.Ask); got != "0 "+e.Default {
		t.Errorf("after a second start: %s, want 0 %s", got, e.Default)
	}
}

func (e Singles) refuses(t *testing.T) {
	refused := func(what, dir string, settings map[string]string, says string) {
		t.Helper()
		s, err := e.Start(t.Context(), cluster.StandaloneOptions{Dir: dir, Settings: settings})
		if err == nil {
			Must(t, s.Stop())
		}
		if missing := (cluster.MissingError{}); errors.As(err, &missing) {
			Need(t, e.Engine, err)
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", what, err, says)
		}
	}
	dir := t.TempDir()
	Must(t, os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600))
	refused("a folder with other files", dir, nil, "not empty")
	refused("a setting that does not exist", "", map[string]string{e.Wrong: "1"}, e.WrongSays)
	closed := OpenDir(t)
	Must(t, os.Chmod(closed, 0o700))
	if os.Geteuid() == 0 {
		refused("a folder that the server's user cannot enter", filepath.Join(closed, "server"), nil, "cannot enter "+closed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Start(ctx, cluster.StandaloneOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled start: %v", err)
	}
}
