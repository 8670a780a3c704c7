//go:build unix

package cli

import (
	"syscall"
)

// detached lets a process live on after the terminal of its parent is gone.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
