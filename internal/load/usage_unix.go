//go:build unix

package load

import (
	"runtime"
	"syscall"
)

// Usage returns the user and system time of this process in seconds, and its largest resident memory so far
// in bytes. getrusage(2) reports the latter in KiB, but in bytes on Darwin.
func Usage() (cpuSeconds float64, maxRSSBytes int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0
	}
	unit := int64(1024)
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		unit = 1
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, int64(u.Maxrss) * unit
}
