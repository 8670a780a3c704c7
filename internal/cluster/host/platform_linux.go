package host

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWith makes the kernel send a signal to a process when the thread that started it ends.
func dieWith(attr *syscall.SysProcAttr, death syscall.Signal) { attr.Pdeathsig = death }

// detach unmounts a file system that may be in use.
func detach(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EPERM) {
		for _, program := range []string{"fusermount3", "fusermount"} { // for FUSE mounts of users without root
			if err = exec.Command(program, "-u", "-z", path).Run(); err == nil {
				break
			}
		}
	}
	return err
}
