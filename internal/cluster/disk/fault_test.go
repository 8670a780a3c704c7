//go:build linux

package disk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFullDiskFailsOnlyGrowingWrites checks that a full disk fails only the operations that need space, and that
// all operations work after the heal.
func TestFullDiskFailsOnlyGrowingWrites(t *testing.T) {
	n := newNode(t, fast(t))
	at := func(name string) string { return filepath.Join(n.Dir(), name) }
	f, err := os.Create(at("file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.Write(make([]byte, 10000))
	if err := errors.Join(err, os.WriteFile(at("other"), nil, 0o600), os.Mkdir(at("folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	var before unix.Statfs_t
	if err := unix.Statfs(n.Dir(), &before); err != nil {
		t.Fatal(err)
	}
	needsRoom := map[string]func() error{
		"a write at the end":        func() error { _, err := f.WriteAt([]byte("x"), 10000); return err },
		"a write over the end":      func() error { _, err := f.WriteAt(make([]byte, 100), 9950); return err },
		"a truncation to more":      func() error { return f.Truncate(10001) },
		"fallocate":                 func() error { return unix.Fallocate(int(f.Fd()), 0, 0, 20000) },
		"fallocate within the file": func() error { return unix.Fallocate(int(f.Fd()), 0, 0, 10) },
		"fallocate that keeps size": func() error { return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 10000, 20000) },
		"a new file":                func() error { return os.WriteFile(at("new"), nil, 0o600) },
		"a new folder":              func() error { return os.Mkdir(at("newer"), 0o700) },
		"a new symbolic link":       func() error { return os.Symlink("x", at("symbolic")) },
		"a new link":                func() error { return os.Link(at("file"), at("link")) },
		"a new pipe":                func() error { return unix.Mkfifo(at("pipe"), 0o600) },
	}
	works := map[string]func() error{
		"a write within the file": func() error { _, err := f.WriteAt(make([]byte, 9000), 0); return err },
		"a sync":                  f.Sync,
		"a read":                  func() error { _, err := os.ReadFile(at("file")); return err },
		"a rename": func() error {
			return errors.Join(os.Rename(at("other"), at("moved")), os.Rename(at("moved"), at("other")))
		},
		"a truncation to less": func() error { return f.Truncate(9999) },
		"punching a hole": func() error {
			return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096)
		},
		"a deletion":    func() error { return os.Remove(at("folder")) },
		"a sync folder": func() error { return syncFolder(n.Dir()) },
	}
	heal, err := n.Fill(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range needsRoom {
		if err := do(); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s on a full disk: %v", what, err)
		}
	}
	for what, do := range works {
		if err := do(); err != nil {
			t.Errorf("%s on a full disk: %v", what, err)
		}
	}
	var full unix.Statfs_t
	if err := unix.Statfs(n.Dir(), &full); err != nil || full.Bavail != 0 || full.Bfree != 0 || full.Blocks != before.Blocks {
		t.Errorf("statfs of a full disk: %+v, %v", full, err)
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"a write at the end", "a truncation to more", "fallocate", "a new file", "a new folder", "a new symbolic link", "a new link", "a new pipe"} {
		if err := needsRoom[what](); err != nil {
			t.Errorf("%s after the heal: %v", what, err)
		}
	}
}

// TestSlowDiskDelaysEveryCall checks that every call takes at least the set time, and that the heal also ends
// waiting calls.
func TestSlowDiskDelaysEveryCall(t *testing.T) {
	const perCall = 30 * time.Millisecond
	n := newNode(t, fast(t))
	path := filepath.Join(n.Dir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	heal, err := n.Slow(t.Context(), perCall)
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"write":    func() error { _, err := f.WriteAt([]byte("text"), 0); return err },
		"fsync":    f.Sync,
		"truncate": func() error { return f.Truncate(2) },
		"create":   func() error { return unix.Mknod(path+"2", unix.S_IFREG|0o600, 0) },
		"unlink":   func() error { return unix.Unlink(path + "3") },
		"statfs":   func() error { return unix.Statfs(n.Dir(), &unix.Statfs_t{}) },
		"list":     func() error { _, err := os.ReadDir(n.Dir()); return err },
	} {
		began := time.Now()
		err := do()
		if took := time.Since(began); took < perCall {
			t.Errorf("%s took %v on a disk that takes %v for each call", what, took, perCall)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	if heal, err = n.Slow(t.Context(), 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			if _, err := f.WriteAt([]byte("text"), 0); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond) // until some of them wait
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
}

// TestProcessWithMemoryMapCanBeKilled checks that a process that wrote to a memory map can be killed, however slow
// the disk is.
func TestProcessWithMemoryMapCanBeKilled(t *testing.T) {
	n := newNode(t, fast(t))
	path := filepath.Join(n.Dir(), "file")
	var heal func() error
	runWriter(t, "mmap", path, func() {
		var err error
		if heal, err = n.Slow(t.Context(), 24*time.Hour); err != nil {
			t.Error(err)
		}
	})
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	check(t, path, "after the heal", newText(), false)
}

// TestProcessWaitingForSlowDiskCanBeKilled checks that a process that waits for a slow disk can be killed, and
// that other signals do not end the wait.
func TestProcessWaitingForSlowDiskCanBeKilled(t *testing.T) {
	n := newNode(t, fast(t))
	path := filepath.Join(n.Dir(), "file")
	heal, err := n.Slow(t.Context(), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap : USR1; echo begun; echo text > "$0"`, path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // until it reaches the file
	if err := cmd.Process.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		t.Errorf("a signal ended the wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("what was killed before it opened a file made it")
	}
}
