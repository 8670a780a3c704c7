package wire

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// setUserTimeout bounds how long what was sent may stay unacknowledged, by which the
// kernel then also judges the probes of a connection at rest (tcp(7),
// TCP_USER_TIMEOUT).
func setUserTimeout(conn *net.TCPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(UserTimeout.Milliseconds()))
	})
	if err == nil {
		err = os.NewSyscallError("setsockopt", failed)
	}
	return err
}
