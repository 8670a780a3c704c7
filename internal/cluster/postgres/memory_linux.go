package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ReleaseMemory removes the System V shared memory segment of a server that was
// killed and whose data are not to be used again; else the next start on the data
// would remove it. It outlives all processes, and a machine has room for 4096.
//
// postmaster.pid names it: its seventh line has the segment's key and number
// (PostgreSQL 15, src/include/utils/pidfile.h). A segment that has another key, or
// that somebody uses, is somebody else's.
func ReleaseMemory(data string) error {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil // it was shut down in good order
		}
		return err
	}
	lines := strings.Split(string(text), "\n")
	var key uint32
	var id int
	if len(lines) < 7 {
		return nil // it was killed before it had one
	}
	if n, _ := fmt.Sscan(lines[6], &key, &id); n != 2 {
		return nil
	}
	var segment unix.SysvShmDesc
	_, err = unix.SysvShmCtl(id, unix.IPC_STAT, &segment)
	if err == nil && uint32(segment.Perm.Key) == key && segment.Nattch == 0 {
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	// Somebody may have removed it since, and its number may be another's.
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("remove the shared memory segment %d of a dead server: %w", id, err)
	}
	return nil
}
