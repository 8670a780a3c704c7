// Package host runs the servers of a cluster on this machine. A Server is the process of one node, with its faults:
// kill, pause, loss of data, disk, clock and processors. A Record names what a killed program leaves behind, and Clear
// removes it.
package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Host is the place of one node: it has an address and starts processes.
type Host struct {
	addr   netip.Addr
	record *Record
	enter  Enter // nil: the host is this machine
}

// Enter moves the calling thread, which must be locked to its goroutine, to another place. leave moves it back.
type Enter func() (leave func() error, err error)

// New returns the host at an address. record names what the host starts. If enter is nil, the host is this machine.
func New(addr netip.Addr, record *Record, enter Enter) *Host { return &Host{addr, record, enter} }

// Addr returns the address of the host, on which only its node listens. Hosts that are this machine share 127.0.0.1,
// and their nodes differ by port.
func (h *Host) Addr() netip.Addr { return h.addr }

// Start starts a process on the host, like StartProcess. A nil host is this machine.
func (h *Host) Start(cmd *exec.Cmd, death syscall.Signal) (*Process, error) {
	if h == nil {
		return StartProcess(cmd, death)
	}
	if h.enter != nil {
		return startProcess(cmd, death, h.enter)
	}
	p, err := StartProcess(cmd, death)
	if err != nil {
		return nil, err
	}
	// A paused process survives this program, so a later start must find it.
	if err := h.record.Add(ProcessLeftover(p)); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// Run runs a command on the host to its end and returns its output. When ctx ends, it kills the command. An error
// includes the end of the output.
func (h *Host) Run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := h.Start(cmd, syscall.SIGKILL)
	if err == nil {
		err = p.Await(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, LastLines(out.Bytes()))
	}
	return out.String(), nil
}

// Port returns the port for a server of this host: the standard one if the host has its own address, otherwise a free
// one.
func (h *Host) Port(ctx context.Context, standard int) (int, error) {
	if h.enter != nil {
		return standard, nil
	}
	return FreePort(ctx)
}

// Ports are taken below 32768, the first ephemeral port of Linux (net.ipv4.ip_local_port_range). Otherwise an
// outgoing connection could take the port of a server that is down.
const firstPort, lastPort = 20000, 32767

// FreePort returns a TCP port of 127.0.0.1 on which nobody listens now.
func FreePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	for range 200 {
		port := firstPort + rand.N(lastPort-firstPort+1)
		l, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		switch {
		case err == nil:
			return port, l.Close()
		case ctx.Err() != nil, !errors.Is(err, syscall.EADDRINUSE):
			return 0, fmt.Errorf("look for a free port of 127.0.0.1: %w", err)
		}
	}
	return 0, fmt.Errorf("look for a free port of 127.0.0.1: 200 ports between %d and %d were all taken", firstPort, lastPort)
}
