package drivertest

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// AsNobody runs f on a thread that has the file permissions of an unprivileged user. This needs root; another user has
// no permissions to drop. Other threads that f starts keep the permissions of root.
func AsNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	const nobody = 65534
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Error(err) // the thread stays locked and ends with this goroutine
			return
		}
		runtime.UnlockOSThread()
	}()
	f()
}
