package netem

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"stroppy/internal/cluster/host"
)

// keeper is a process that ends all other processes of its network namespace when this program ends, even if killed.
// PR_SET_PDEATHSIG of prctl(2) is not enough: it does not reach descendants, and a process may ignore all signals but
// SIGKILL. A PID namespace would end them too. But its process numbers differ from those in /proc, and Galera's
// scripts compare them with pid files.
type keeper struct {
	cmd  *exec.Cmd
	pipe io.Closer
	done chan struct{}
}

// keeperScript waits until the other end of its input is closed, which the kernel does however this program ends.
// Then it kills the processes of its namespace until none is left. A zombie has no namespace any more. The shell
// itself compares namespaces (test -ef), because a program per process of the machine would be too slow.
const keeperScript = `trap "" HUP INT QUIT TERM
read -r end
own=/proc/$$
while :; do
	found=
	for p in /proc/[0-9]*; do
		if [ "$p" != $own ] && [ "$p/ns/net" -ef $own/ns/net ]; then
			kill -9 "${p#/proc/}"
			found=yes
		fi
	done
	[ "$found" ] || exit 0
	sleep 0.01
done`

// startKeeper starts a keeper in the namespace of the calling thread.
func startKeeper() (*keeper, error) {
	k := &keeper{cmd: exec.Command("sh", "-c", keeperScript), done: make(chan struct{})}
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // ignore signals of the terminal and of this program's group
	pipe, err := k.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	k.pipe = pipe
	if err := k.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the process that keeps a network namespace: %w", err), pipe.Close())
	}
	go func() {
		_ = k.cmd.Wait()
		close(k.done)
	}()
	return k, nil
}

// close ends the other processes of the namespace and the keeper.
func (k *keeper) close() error {
	if k == nil {
		return nil
	}
	_ = k.pipe.Close() // it may be closed already
	select {
	case <-k.done:
		return nil
	case <-time.After(host.EndLimit):
		return fmt.Errorf("process %d, which ends the others, has not ended within %v", k.cmd.Process.Pid, host.EndLimit)
	}
}
