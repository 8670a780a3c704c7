package run

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"stroppy/internal/check"

	"golang.org/x/sys/unix"
)

// bootFile names the boot of a machine (random(4)), and clockFile the time
// namespace, of which each has a monotonic clock of its own
// (time_namespaces(7)). Within both all processes share CLOCK_MONOTONIC.
const (
	bootFile  = "/proc/sys/kernel/random/boot_id"
	clockFile = "/proc/self/ns/time"
)

// clockAt returns on which clock start is, and where, if this machine says so: time.Time
// takes its monotonic part from CLOCK_MONOTONIC on Linux (runtime.nanotime).
func clockAt(start time.Time) (check.Clock, bool) {
	boot, err := os.ReadFile(bootFile)
	if err != nil {
		return check.Clock{}, false
	}
	space, err := os.Readlink(clockFile)
	if err != nil && !os.IsNotExist(err) { // before Linux 5.6 there is one for all
		return check.Clock{}, false
	}
	var before, after unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &before) != nil {
		return check.Clock{}, false
	}
	passed := time.Since(start)
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &after) != nil {
		return check.Clock{}, false
	}
	id := strings.Join(strings.Fields(fmt.Sprintf("%s %s", boot, space)), "/")
	return check.Clock{ID: id, From: before.Nano() - int64(passed), To: after.Nano() - int64(passed)}, id != ""
}

// lowerPriority makes this thread yield to the clients and to a database on this machine. On Linux a thread has a
// nice value of its own (setpriority(2), "C library/kernel differences").
func lowerPriority() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), 10) }
