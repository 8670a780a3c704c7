package system_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"stroppy/internal/cluster/system"
)

func TestOnlyLinuxIsSupported(t *testing.T) {
	if err := system.Supported(); (err == nil) != (runtime.GOOS == "linux") {
		t.Errorf("on %s: %v", runtime.GOOS, err)
	}
}

// TestFileLockEndsWithItsDescriptor checks that a lock is seen through another descriptor of the file, and ends
// with its own descriptor.
func TestFileLockEndsWithItsDescriptor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped engine: clusters: they need Linux")
	}
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	first, second := open(), open()
	defer second.Close()
	if system.Locked(second) {
		t.Error("a file that nobody locked is locked")
	}
	second.Close()
	second = open()
	if err := system.TryLock(first); err != nil {
		t.Fatal(err)
	}
	if !system.Locked(second) {
		t.Error("the lock of another is not seen")
	}
	if err := system.TryLock(second); err == nil {
		t.Error("two have locked one file")
	}
	first.Close()
	if err := system.Lock(second); err != nil {
		t.Error(err)
	}
	info, err := second.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if uid, known := system.Owner(info); !known || uid != os.Geteuid() {
		t.Errorf("the owner is %d, %v", uid, known)
	}
}

// TestSignalToEndedProcessIsNoError checks that a signal to a process that has ended is no error.
func TestSignalToEndedProcessIsNoError(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped engine: clusters: they need Linux")
	}
	sleep := exec.Command("sleep", "60")
	sleep.SysProcAttr = &syscall.SysProcAttr{}
	system.OwnGroup(sleep.SysProcAttr)
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	pid := sleep.Process.Pid
	if err := system.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = sleep.Wait() // it was killed
	if err := system.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("a process that has ended: %v", err)
	}
}
