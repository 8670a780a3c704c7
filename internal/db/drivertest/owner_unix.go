//go:build unix

package drivertest

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// GiveTo gives files to the owner of a folder, and makes them unreadable for others.
func GiveTo(t testing.TB, folder string, paths ...string) {
	t.Helper()
	info, err := os.Stat(folder)
	Must(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	for _, path := range paths {
		Must(t, errors.Join(os.Chmod(path, 0o600), os.Chown(path, int(owner.Uid), int(owner.Gid))))
	}
}
