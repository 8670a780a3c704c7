package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func startOrSkip(t *testing.T, options Options) *Cluster {
	t.Helper()
	c, err := Start(within(t, time.Minute), options)
	var missing *MissingError
	if errors.As(err, &missing) {
		t.Skip("skipped engine: etcd: install the Debian package etcd-server")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestClusterLifeOfANode(t *testing.T) {
	c := startOrSkip(t, Options{Nodes: 3, InMemory: true})
	ctx := within(t, time.Minute)
	if want := "etcd://" + strings.Join(c.Endpoints(), ","); c.URL() != want {
		t.Errorf("URL is %s, want %s", c.URL(), want)
	}

	first, err := c.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(first); err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(first); err != nil {
		t.Errorf("kill a dead node: %v", err)
	}
	if err := c.Pause(first); err == nil {
		t.Error("a dead node was paused")
	}
	second, err := c.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if second == first {
		t.Errorf("the dead node %d still leads", first)
	}
	if err := c.Restart(ctx, first); err != nil {
		t.Fatal(err)
	}

	if err := c.Pause(second); err != nil {
		t.Fatal(err)
	}
	third, err := c.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if third == second {
		t.Errorf("the paused node %d still leads", second)
	}
	if err := c.Resume(second); err != nil {
		t.Fatal(err)
	}
	if err := c.nodes[second].waitHealthy(ctx); err != nil {
		t.Errorf("after resume: %v", err)
	}
	if err := c.Kill(3); !errors.Is(err, ErrNoSuchNode) {
		t.Errorf("kill node 3 of 0-2: %v", err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	c := startOrSkip(t, Options{Nodes: 1, Dir: dir})
	if err := c.Pause(0); err != nil { // a paused node must go too
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
	if conn, err := net.Dial("tcp", c.Endpoints()[0]); err == nil {
		conn.Close()
		t.Error("something still listens on the node's port")
	}
	if err := c.Restart(within(t, time.Second), 0); err == nil {
		t.Error("a stopped cluster was restarted")
	}
}

func TestStartRefuses(t *testing.T) {
	if _, err := Start(t.Context(), Options{}); err == nil {
		t.Error("a cluster of no nodes was started")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "etcd-n0"), 0o700); err != nil {
		t.Fatal(err)
	}
	var missing *MissingError
	_, err := Start(t.Context(), Options{Nodes: 1, Dir: dir})
	if err == nil {
		t.Error("a used folder was taken")
	}
	if !errors.As(err, &missing) {
		_, err = Start(within(t, time.Minute), Options{Nodes: 1, Dir: t.TempDir(), Args: []string{"--heartbeat-interval=1000"}})
		if !errors.Is(err, errExited) || !strings.Contains(err.Error(), "should be at least as 5 times") {
			t.Errorf("a wrong flag gives %v, want etcd's own words", err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	_, err = Start(t.Context(), Options{Nodes: 1})
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "etcd-server") {
		t.Errorf("without the binary: %v", err)
	}
}

// TestParentDeath runs itself as a child that starts a cluster and is then
// killed: the nodes must die with it.
func TestParentDeath(t *testing.T) {
	const marker = "STROPPY_ETCD_CLUSTER_CHILD"
	if os.Getenv(marker) != "" {
		c, err := Start(t.Context(), Options{Nodes: 1, Dir: os.Getenv(marker)})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("endpoint", c.Endpoints()[0])
		select {}
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("skipped engine: etcd: install the Debian package etcd-server")
	}
	child := exec.CommandContext(within(t, time.Minute), os.Args[0], "-test.run=^TestParentDeath$", "-test.timeout=1m")
	child.Env = append(os.Environ(), marker+"="+t.TempDir())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var endpoint string
	for lines := bufio.NewScanner(out); endpoint == "" && lines.Scan(); {
		endpoint, _ = strings.CutPrefix(lines.Text(), "endpoint ")
	}
	if endpoint == "" {
		t.Fatal("the child started no cluster")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	ctx := within(t, 10*time.Second)
	for {
		conn, err := net.Dial("tcp", endpoint)
		if err != nil {
			return
		}
		conn.Close()
		if pollAgain(ctx) != nil {
			t.Fatal("etcd outlived the process that started it")
		}
	}
}
