//go:build unix

package workers

import (
	"os/exec"
	"syscall"
)

// apart gives a command a process group of its own.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
