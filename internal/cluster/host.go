package cluster

import (
	"context"
	"errors"
	"net/netip"
	"os/exec"
	"runtime"
	"syscall"
)

// Host is the place of one node: an address and how processes are started there.
type Host struct {
	network *Network
	number  int
	addr    netip.Addr
}

// Addr is the address of the host, on which only its node listens. On loopback
// it is 127.0.0.1 for all of them, and nodes differ by port.
func (h *Host) Addr() netip.Addr { return h.addr }

// Start starts a process on the host, as StartProcess does.
func (h *Host) Start(cmd *exec.Cmd, death syscall.Signal) (*Process, error) {
	if f := h.network.backend; f != nil {
		return startProcess(cmd, death, func() (func() error, error) { return f.inside(h.number) })
	}
	p, err := StartProcess(cmd, death)
	if err != nil {
		return nil, err
	}
	// A process that is paused outlives this program: a later start must find it.
	if err := h.network.record.Add(ProcessLeftover(p)); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// Port returns the port on which a server of this host is to listen: the
// standard one where the host's address is its own, else a free one.
func (h *Host) Port(ctx context.Context, standard int) (int, error) {
	if h.network.backend != nil {
		return standard, nil
	}
	return FreePort(ctx)
}

// at runs f on a thread of a host, or of this program's own place for Client.
// What f opens stays there. f must not start goroutines that open sockets.
func (n *Network) at(number int, f func() error) error {
	if n.backend == nil {
		return f()
	}
	return onThread(func() (func() error, error) { return n.backend.inside(number) }, f)
}

// onThread runs f on a thread of its own that enter has put in another place and
// leave takes back. A thread that cannot be taken back ends with its goroutine.
// enter may give leave along with an error.
func onThread(enter func() (leave func() error, err error), f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		leave, err := enter()
		if err != nil {
			if leave != nil && leave() == nil {
				runtime.UnlockOSThread()
			}
			done <- err
			return
		}
		err = f()
		left := leave()
		if left == nil {
			runtime.UnlockOSThread()
		}
		done <- errors.Join(err, left)
	}()
	return <-done
}
