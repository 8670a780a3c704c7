//go:build linux

package disk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// writerCommand makes this test program write a file.
const writerCommand = "test-writer"

// ways are the ways in which a program can write a file of two pages to path. Those that sync must be safe.
var ways = []struct {
	name  string
	safe  bool
	write func(path string, data []byte) error
}{
	{"write", false, func(path string, data []byte) error { return writeThen(path, 0, data, nil) }},
	{"fsync", true, func(path string, data []byte) error { return writeThen(path, 0, data, (*os.File).Sync) }},
	{"fdatasync", true, func(path string, data []byte) error {
		return writeThen(path, 0, data, func(f *os.File) error { return unix.Fdatasync(int(f.Fd())) })
	}},
	{"sync_file_range", false, func(path string, data []byte) error {
		return writeThen(path, 0, data, func(f *os.File) error {
			return unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
		})
	}},
	{"O_SYNC", true, func(path string, data []byte) error { return writeThen(path, unix.O_SYNC, data, nil) }},
	{"O_DSYNC", true, func(path string, data []byte) error { return writeThen(path, unix.O_DSYNC, data, nil) }},
	{"O_DIRECT", false, func(path string, data []byte) error { return writeThen(path, unix.O_DIRECT, data, nil) }},
	{"O_DIRECT O_DSYNC", true, func(path string, data []byte) error { return writeThen(path, unix.O_DIRECT|unix.O_DSYNC, data, nil) }},
	{"O_APPEND fsync", true, func(path string, data []byte) error { return writeThen(path, unix.O_APPEND, data, (*os.File).Sync) }},
	{"fallocate fsync", true, func(path string, data []byte) error {
		return writeThen(path, 0, nil, func(f *os.File) error {
			_, errWrite := f.WriteAt(data, 0)
			return errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, int64(len(data))), errWrite, f.Sync())
		})
	}},
	{"fsync before", false, func(path string, data []byte) error {
		return writeThen(path, 0, nil, func(f *os.File) error {
			_, errWrite := f.Write(data)
			return errors.Join(f.Sync(), f.Truncate(0), errWrite)
		})
	}},
	{"mmap", false, func(path string, data []byte) error { return mapped(path, data, 0) }},
	{"mmap MS_ASYNC", false, func(path string, data []byte) error { return mapped(path, data, unix.MS_ASYNC) }},
	{"mmap MS_SYNC", true, func(path string, data []byte) error { return mapped(path, data, unix.MS_SYNC) }},
	{"from another descriptor", true, func(path string, data []byte) error {
		return writeThen(path, 0, data, func(*os.File) error {
			other, err := os.Open(path)
			if err != nil {
				return err
			}
			return errors.Join(other.Sync(), other.Close())
		})
	}},
	{"rename fsync folder", true, func(path string, data []byte) error {
		return errors.Join(writeThen(path+".new", 0, data, (*os.File).Sync), os.Rename(path+".new", path), syncFolder(filepath.Dir(path)))
	}},
	{"rename", false, func(path string, data []byte) error {
		return errors.Join(writeThen(path+".new", 0, data, (*os.File).Sync), os.Rename(path+".new", path))
	}},
	{"rename fsync", true, func(path string, data []byte) error {
		return errors.Join(writeThen(path+".new", 0, data, nil), os.Rename(path+".new", path), writeThen(path, 0, data, (*os.File).Sync))
	}},
}

// writeThen opens a file like os.Create, but keeps its content. It writes the data at once from aligned memory, as
// O_DIRECT needs it, and calls then. It does not close the file.
func writeThen(path string, flags int, data []byte, then func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|flags, 0o600)
	if err != nil {
		return err
	}
	aligned, err := unix.Mmap(-1, 0, max(len(data), 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	copy(aligned, data)
	if len(data) > 0 {
		if _, err := f.Write(aligned[:len(data)]); err != nil {
			return err
		}
	}
	if then != nil {
		return then(f)
	}
	return nil
}

// mapped writes through a shared map, which it does not unmap.
func mapped(path string, data []byte, sync int) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Truncate(int64(len(data))); err != nil {
		return err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, len(data), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(memory, data)
	if sync != 0 {
		return unix.Msync(memory, sync)
	}
	return nil
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func newText() []byte { return bytes.Repeat([]byte("new "), pageSize/2) }

// writer writes a file in one of the ways, reports this, and waits to be killed.
func writer(args []string) int {
	for _, w := range ways {
		if w.name != args[0] {
			continue
		}
		if err := w.write(args[1], newText()); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("written")
		select {}
	}
	return 2
}

// TestOnlySyncedDataSurvivesLoss checks that the data of a killed program survive a loss exactly if they were
// synced, for each way to write.
func TestOnlySyncedDataSurvivesLoss(t *testing.T) {
	parent := fast(t)
	n := newNode(t, parent)
	for _, w := range ways {
		for _, old := range [][]byte{nil, bytes.Repeat([]byte("old."), pageSize/8), bytes.Repeat([]byte("old."), pageSize)} {
			t.Run(fmt.Sprintf("%s over %d bytes", w.name, len(old)), func(t *testing.T) {
				path := filepath.Join(n.Dir(), "file")
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if old != nil {
					if err := os.WriteFile(path, old, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if err := n.Sync(); err != nil {
					t.Fatal(err)
				}
				runWriter(t, w.name, path, func() {})
				want := newText()
				if len(old) > len(want) && !strings.HasPrefix(w.name, "mmap") && !strings.HasPrefix(w.name, "rename") && w.name != "fsync before" {
					want = append(want, old[len(want):]...)
				}
				if w.name == "O_APPEND fsync" {
					want = append(bytes.Clone(old), newText()...)
				}
				check(t, path, "before the loss", want, w.name == "fsync before")
				powerCut(t, n)
				if !w.safe {
					want = old
				}
				if w.name == "fsync before" && old == nil {
					want = newText() // the truncation is lost
				}
				if w.name == "fsync before" && old != nil {
					want = append(newText(), old[min(len(old), len(newText())):]...)
				}
				check(t, path, "after the loss", want, false)
			})
		}
	}
}

// runWriter lets another process write, calls before, and kills the process.
func runWriter(t *testing.T, way, path string, before func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, writerCommand, way, path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 1000)
	count, _ := out.Read(said)
	before()
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	cmd.Wait() // the error of a killed process
	if string(said[:count]) != "written\n" {
		t.Fatalf("the writer says %q", said[:count])
	}
}

// check compares a file; nil means that it must not exist.
func check(t *testing.T, path, when string, want []byte, empty bool) {
	t.Helper()
	if empty {
		want = []byte{}
	}
	got, err := os.ReadFile(path)
	if err != nil && !(want == nil && errors.Is(err, os.ErrNotExist)) {
		t.Errorf("%s: %v, want %s", when, err, brief(want))
	}
	if err == nil && (want == nil || !bytes.Equal(got, want)) {
		t.Errorf("%s: %s, want %s", when, brief(got), brief(want))
	}
}

func brief(b []byte) string {
	if b == nil {
		return "no file"
	}
	return fmt.Sprintf("%d bytes %.12q … %.12q", len(b), b, b[max(0, len(b)-12):])
}
