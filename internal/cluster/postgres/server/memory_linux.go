package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stroppy/internal/cluster/wait"
)

// ReleaseMemory removes the System V shared memory segment of a killed server whose data will not be used again.
// Otherwise the next start on the data would remove it. A segment outlives all processes, and a machine has room for
// 4096. A segment in use is left alone.
func ReleaseMemory(data string) error {
	_, err := releaseMemory(data)
	return err
}

// endLimit bounds the wait for servers that were just sent SIGKILL.
const endLimit = 10 * time.Second

// ReleaseMemoryBelow is like ReleaseMemory for all data in a folder whose servers have been killed, or are just
// ending.
func ReleaseMemoryBelow(folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // servers that end remove files
			return nil
		}
		if err != nil || entry.IsDir() || entry.Name() != PIDFile {
			return err
		}
		return wait.Until(context.Background(), endLimit, func() error {
			used, err := releaseMemory(filepath.Dir(path))
			if used {
				err = fmt.Errorf("the shared memory of the server of %s is in use: end that server", filepath.Dir(path))
			}
			return err
		})
	})
}

// releaseMemory removes the segment unless it is in use.
//
// The seventh line of postmaster.pid has the segment's key and number (PostgreSQL 15, src/include/utils/pidfile.h). A
// segment with another key belongs to somebody else.
func releaseMemory(data string) (used bool, err error) {
	text, err := os.ReadFile(filepath.Join(data, PIDFile))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return false, nil // a clean shutdown
		}
		return false, err
	}
	lines := strings.Split(string(text), "\n")
	var key uint32
	var id int
	if len(lines) < 7 {
		return false, nil // it was killed before it had a segment
	}
	if n, _ := fmt.Sscan(lines[6], &key, &id); n != 2 {
		return false, nil
	}
	var segment unix.SysvShmDesc
	_, err = unix.SysvShmCtl(id, unix.IPC_STAT, &segment)
	if err == nil && uint32(segment.Perm.Key) == key {
		if segment.Nattch > 0 {
			return true, nil
		}
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	// Somebody may have removed it since, and its number may have been reused.
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) && !errors.Is(err, unix.EACCES) {
		return false, fmt.Errorf("remove the shared memory segment %d of a dead server: %w", id, err)
	}
	return false, nil
}
