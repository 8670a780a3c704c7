//go:build unix

package cli

import (
	"syscall"
)

// detached puts a process into its own session, so that it outlives the terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
