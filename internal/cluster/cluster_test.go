package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"9", "15", "14"} {
		bin := filepath.Join(dir, version, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o755)
		if version == "9" {
			mode = 0o644 // not a program
		}
		if err := os.WriteFile(filepath.Join(bin, "server"), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Find("server", "some-package", dir+"/*/bin")
	if want := filepath.Join(dir, "15", "bin", "server"); err != nil || got != want {
		t.Errorf("Find = %s, %v, want %s", got, err, want)
	}
	if got, err := Find("sh", "dash", dir+"/*/bin"); err != nil || !strings.HasSuffix(got, "/sh") {
		t.Errorf("Find on PATH = %s, %v", got, err)
	}
	_, err = Find("no-such-server", "some-package", dir+"/*/bin")
	if want := (MissingError{Program: "no-such-server", Package: "some-package"}); !errors.Is(err, want) {
		t.Errorf("Find of nothing: %v, want %v", err, want)
	}
}

func TestFreePort(t *testing.T) {
	for range 20 {
		if port, err := FreePort(t.Context()); err != nil || port < 1024 || port >= 32768 {
			t.Fatalf("FreePort = %d, %v", port, err)
		}
	}
}

// poll waits until ready says so.
func poll(ctx context.Context, ready func() bool) error {
	return Retry(ctx, func() error {
		if !ready() {
			return errors.New("it is not ready")
		}
		return nil
	})
}

// TestKillTakesTheTree kills a shell whose grandchild has left its process group
// and ignores every signal that can be ignored.
func TestKillTakesTheTree(t *testing.T) {
	for _, paused := range []bool{false, true} {
		// The signals are ignored before there is a grandchild.
		p, err := StartProcess(exec.Command("sh", "-c", `sh -c 'trap "" TERM INT HUP; while :; do sleep 100; done' & wait`), syscall.SIGKILL)
		if err != nil {
			t.Fatal(err)
		}
		err = poll(t.Context(), func() bool {
			children, err := childrenOf([]int{p.PID()})
			if err != nil || len(children) == 0 {
				return false
			}
			grandchildren, err := childrenOf([]int{children[0].pid})
			return err == nil && len(grandchildren) > 0
		})
		if err != nil {
			t.Fatal(err)
		}
		tree, err := freeze(p.id())
		if err != nil || len(tree) < 3 {
			t.Fatalf("the tree is %v, %v, want two shells and a sleep at least", tree, err)
		}
		if !paused {
			if err := p.Resume(); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, id := range tree {
			if id.alive() {
				t.Errorf("process %d survived", id.pid)
			}
		}
		if p.Err() == nil {
			t.Error("a killed process ended without an error")
		}
		if err := p.Kill(); err != nil {
			t.Errorf("a second Kill: %v", err)
		}
	}
}
