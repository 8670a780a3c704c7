package cluster

import "syscall"

// dieWith has the kernel send a signal to a process when the thread that starts
// it ends.
func dieWith(attr *syscall.SysProcAttr, death syscall.Signal) { attr.Pdeathsig = death }
