//go:build !linux

package etcd

import (
	"errors"
	"os"
	"os/exec"
)

// dieWithParent does nothing: only Linux has a parent-death signal.
func dieWithParent(*exec.Cmd) {}

func signalPaused(*os.Process, bool) error {
	return errors.New("pausing a process is supported on Linux only")
}
