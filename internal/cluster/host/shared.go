package host

import (
	"os"
	"strconv"
)

// forgetShared removes the files in /dev/shm that libfaketime leaves of a killed process, and reports whether there
// were any. Child processes learn the clock from this semaphore and shared memory. Call forgetShared only after the
// process has ended: a running program would create the files again and leave them.
func forgetShared(pid int) (was bool) {
	for _, name := range []string{"faketime_shm_", "sem.faketime_sem_"} {
		if os.Remove("/dev/shm/"+name+strconv.Itoa(pid)) == nil { // absent if the clock is not steered
			was = true
		}
	}
	return was
}
