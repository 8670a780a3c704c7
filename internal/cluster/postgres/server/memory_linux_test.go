package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSharedMemoryOfKilledServerIsRemoved checks that the segment of a killed server's data is removed when nobody
// uses it, and that a segment with another key stays.
func TestSharedMemoryOfKilledServerIsRemoved(t *testing.T) {
	for name, other := range map[string]int{"its own": 0, "another one's": 1} {
		t.Run(name, func(t *testing.T) {
			key := os.Getpid()<<4 | 1
			id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			memory, err := unix.SysvShmAttach(id, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			data := filepath.Join(folder, "n0", "data")
			if err := os.MkdirAll(data, 0o700); err != nil {
				t.Fatal(err)
			}
			lines := []string{"1", data, "0", "5432", folder, "127.0.0.1", fmt.Sprintf("%d %d", key+other, id), "ready", ""}
			if err := os.WriteFile(filepath.Join(data, PIDFile), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(300*time.Millisecond, func() { _ = unix.SysvShmDetach(memory) })
			began := time.Now()
			if err := ReleaseMemoryBelow(folder); err != nil {
				t.Fatal(err)
			}
			var segment unix.SysvShmDesc
			_, err = unix.SysvShmCtl(id, unix.IPC_STAT, &segment)
			if gone := err != nil; gone != (other == 0) || gone && time.Since(began) < 200*time.Millisecond {
				t.Errorf("the segment: %v, after %v", err, time.Since(began))
			}
		})
	}
}
