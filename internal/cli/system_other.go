//go:build !unix

package cli

import "syscall"

// lockDirectory keeps nobody out: here no lock ends with its process.
func lockDirectory(string) (unlock func(), err error) { return func() {}, nil }

// detached has nothing to do where there are no sessions.
func detached() *syscall.SysProcAttr { return nil }
