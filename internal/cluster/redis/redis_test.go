package redis

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/cluster/clustertest"
)

func startOrSkip(t *testing.T, o Options) *Servers {
	t.Helper()
	c, err := Start(clustertest.Within(t, clustertest.Patience), o)
	clustertest.Need(t, "redis", err)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func run(t *testing.T, c *Servers, i int, words ...string) string {
	t.Helper()
	answer, err := c.Command(clustertest.Within(t, clustertest.Patience), i, words...)
	clustertest.Must(t, err)
	return answer
}

func TestLifeOfAPair(t *testing.T) {
	c := startOrSkip(t, Options{
		Nodes: 2, InMemory: true, Password: "se cret@1",
		Settings: map[string]string{"requirepass": `"se cret@1"`, "masterauth": `"se cret@1"`, "appendonly": "yes", "save": ""},
	})
	ctx := clustertest.Within(t, clustertest.Patience)
	if want := "redis://:se%20cret%401@" + strings.Join(c.Endpoints(), ",") + "/0"; c.URL() != want {
		t.Errorf("URL is %s, want %s", c.URL(), want)
	}
	for _, endpoint := range c.Endpoints() {
		if _, text, _ := strings.Cut(endpoint, ":"); text >= "32768" {
			t.Errorf("%s is among the ephemeral ports", endpoint)
		}
	}
	run(t, c, 0, "SET", "a", "1")
	clustertest.Must(t, c.wait(ctx, "the write has not reached the replica", func() bool { return run(t, c, 1, "GET", "a") == "1" }))
	if _, err := c.Command(ctx, 1, "SET", "a", "2"); err == nil || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("a write to the replica: %v", err)
	}

	clustertest.Must(t, c.Kill(0))
	clustertest.Must(t, c.Kill(0))
	if err := c.Pause(0); err == nil {
		t.Error("a dead node was paused")
	}
	clustertest.Must(t, c.Promote(ctx, 1))
	if i, err := c.Primary(ctx); err != nil || i != 1 {
		t.Errorf("the primary is %d, %v", i, err)
	}
	run(t, c, 1, "SET", "a", "3")
	clustertest.Must(t, c.Restart(ctx, 0)) // as a replica of the new primary
	clustertest.Must(t, c.wait(ctx, "the old primary has not the new one's data", func() bool { return run(t, c, 0, "GET", "a") == "3" }))
	if role := c.nodes[0].role(ctx); role != "slave" {
		t.Errorf("the old primary is %s", role)
	}
	clustertest.Must(t, c.Kill(1))
	clustertest.Must(t, c.Restart(ctx, 1))
	if got := run(t, c, 1, "GET", "a"); got != "3" {
		t.Errorf("after a kill and a restart with an append-only file: %q", got)
	}
	clustertest.Must(t, c.Promote(ctx, 0)) // both run: they change places
	clustertest.Must(t, c.synchronized(ctx, 1))
	if role := c.nodes[1].role(ctx); role != "slave" {
		t.Errorf("the demoted primary is %s", role)
	}

	dir := c.dir
	clustertest.Must(t, c.Stop())
	clustertest.Must(t, c.Stop())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stop left the folder %s", dir)
	}
}

// TestStall shows what the known-bad case rests on: what is written while a
// replica stalls is not there when it is promoted, although it went on.
func TestStall(t *testing.T) {
	c := startOrSkip(t, Options{Nodes: 2, InMemory: true, Settings: map[string]string{"save": ""}})
	ctx := clustertest.Within(t, clustertest.Patience)
	run(t, c, 0, "SET", "before", "1")
	clustertest.Must(t, c.wait(ctx, "the write has not reached the replica", func() bool { return run(t, c, 1, "GET", "before") == "1" }))
	clustertest.Must(t, c.Stall(ctx, 1))
	if _, err := c.Command(ctx, 1, "PING"); err == nil {
		t.Error("a stalled node answered")
	}
	run(t, c, 0, "SET", "after", "1")
	clustertest.Must(t, c.Kill(0))
	clustertest.Must(t, c.Resume(1))
	clustertest.Must(t, c.Promote(ctx, 1))
	if before, after := run(t, c, 1, "GET", "before"), run(t, c, 1, "GET", "after"); before != "1" || after != "" {
		t.Errorf("the promoted replica has before=%q, after=%q", before, after)
	}
	if err := c.Stall(ctx, 1); err == nil {
		t.Error("the primary was stalled")
	}
}

func TestKeptFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "servers")
	c := startOrSkip(t, Options{Nodes: 1, Dir: dir, Settings: map[string]string{"save": "3600 1"}})
	run(t, c, 0, "SET", "a", "1")
	clustertest.Must(t, c.Pause(0))
	clustertest.Must(t, c.Stop()) // in good order, which writes a snapshot
	if _, err := os.Stat(filepath.Join(c.Dir(0), "dump.rdb")); err != nil {
		t.Errorf("no snapshot: %v", err)
	}
	if _, err := Start(clustertest.Within(t, clustertest.Patience), Options{Nodes: 1, Dir: dir}); err == nil || !strings.Contains(err.Error(), "must be new") {
		t.Errorf("a folder that is there already: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	startOrSkip(t, Options{Nodes: 1}) // skips without Redis
	_, err := Start(clustertest.Within(t, clustertest.Patience), Options{Nodes: 1, Settings: map[string]string{"no-such-setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("a setting that does not exist: %v", err)
	}
	if _, err := Start(t.Context(), Options{}); err == nil {
		t.Error("no nodes were started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Options{Nodes: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled start: %v", err)
	}
	c := startOrSkip(t, Options{Nodes: 1})
	for _, err := range []error{c.Kill(1), c.Pause(-1), c.Resume(5), c.Restart(t.Context(), 1), c.Promote(t.Context(), 1)} {
		if !errors.Is(err, ErrNoSuchNode) {
			t.Errorf("a node that is not there: %v", err)
		}
	}
}

func TestReply(t *testing.T) {
	for text, want := range map[string]string{
		"+OK\r\n": "OK", ":7\r\n": "7", "$2\r\nab\r\n": "ab", "$-1\r\n": "", "*-1\r\n": "", "*0\r\n": "",
		"*3\r\n$1\r\na\r\n:2\r\n*1\r\n$1\r\nb\r\n": "a\n2\nb",
	} {
		if got, err := reply(bufio.NewReader(strings.NewReader(text))); err != nil || got != want {
			t.Errorf("%q gives %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\r\n", "-ERR no\r\n", "$x\r\n", "$5\r\nab", "*2\r\n+a\r\n", "%1\r\n", "?"} {
		if got, err := reply(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q gives %q", text, got)
		}
	}
}
