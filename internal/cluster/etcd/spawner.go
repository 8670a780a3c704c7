package etcd

import (
	"os/exec"
	"runtime"
)

// spawner starts processes that die with this one.
//
// Linux sends the parent-death signal when the thread that forked ends, not the
// process (prctl(2), PR_SET_PDEATHSIG; https://go.dev/issue/27505). So one
// goroutine keeps one thread for as long as the cluster lives, and starts every
// process from it.
type spawner struct {
	requests chan spawn
	closed   chan struct{}
}

type spawn struct {
	cmd   *exec.Cmd
	reply chan error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawn), closed: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for {
			select {
			case r := <-s.requests:
				dieWithParent(r.cmd)
				r.reply <- r.cmd.Start()
			case <-s.closed:
				return
			}
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	r := spawn{cmd: cmd, reply: make(chan error, 1)}
	select {
	case s.requests <- r:
		return <-r.reply
	case <-s.closed:
		return errStopped
	}
}

// close ends the goroutine; it is called once, after all processes have ended.
func (s *spawner) close() { close(s.closed) }
