package etcd

import (
	"os"
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill cmd when this process dies, and keeps the
// terminal's interrupt, which goes to a whole process group, away from it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

func signalPaused(p *os.Process, paused bool) error {
	if paused {
		return p.Signal(syscall.SIGSTOP)
	}
	return p.Signal(syscall.SIGCONT)
}
