//go:build !unix

package cli

import "syscall"

// detached has nothing to do where there are no sessions.
func detached() *syscall.SysProcAttr { return nil }
