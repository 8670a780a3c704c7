package run

import "syscall"

// lowerPriority makes this thread yield to the clients and to a database on this machine.
// A nice value is of a thread on Linux (setpriority(2), "C library/kernel differences").
func lowerPriority() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), 10) }
