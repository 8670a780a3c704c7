package wire

import (
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout limits the time for which sent data may stay unacknowledged. The kernel uses it also for the
// probes of an idle connection (tcp(7), TCP_USER_TIMEOUT).
func setUserTimeout(conn *net.TCPConn, limit time.Duration) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
	if err == nil {
		err = os.NewSyscallError("setsockopt", failed)
	}
	return err
}

// bindWithoutPort defers the choice of a port to connect, which may reuse a port of the same address for
// another server (ip(7), IP_BIND_ADDRESS_NO_PORT).
func bindWithoutPort(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	if err == nil {
		err = os.NewSyscallError("setsockopt", failed)
	}
	return err
}
