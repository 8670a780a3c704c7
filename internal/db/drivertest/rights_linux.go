package drivertest

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// AsNobody runs f on a thread whose file accesses are those of a user without rights,
// which needs root; another user has none to lose. What f starts on other threads keeps
// its rights.
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
