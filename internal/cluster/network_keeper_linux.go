package cluster

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// keeper is a process in a network namespace that ends after this program and all
// other processes of the namespace, so that neither of them is left when this
// program is killed. Servers could not be left to prctl(2)'s PR_SET_PDEATHSIG: it
// reaches no descendant, and a process may heed no signal but SIGKILL. A namespace
// of process numbers would end them too, but in it the numbers in pid files and
// those in /proc are not the same, which Galera's scripts compare.
type keeper struct {
	cmd  *exec.Cmd
	pipe io.Closer
	done chan struct{}
}

// keeperScript waits until the other end of its input is closed, which the kernel
// does however this program ends. Then it kills the processes that share its
// namespace until none is left. A process that has ended and was not waited for has
// no namespace any more. The shell compares by itself (test -ef): a program for each process
// of the machine would take longer than all else that ends a cluster.
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
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signal of a terminal or of this program's group is for it
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

// close ends the other processes of the namespace, and the keeper.
func (k *keeper) close() error {
	if k == nil {
		return nil
	}
	_ = k.pipe.Close() // also when it is closed already
	select {
	case <-k.done:
		return nil
	case <-time.After(endLimit):
		return fmt.Errorf("process %d, which ends the others, has not ended within %v", k.cmd.Process.Pid, endLimit)
	}
}
