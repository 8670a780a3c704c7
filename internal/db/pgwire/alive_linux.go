package pgwire

import (
	"net"
	"syscall"
)

// endedCheck returns a function that reports, without waiting, whether the server has closed a connection or
// announced that it will. It returns nil for a connection that cannot be checked, such as one with TLS, whose
// first byte has no meaning.
func endedCheck(conn net.Conn) func() bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	var first [1]byte
	over := false
	peek := func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		// An unrequested ErrorResponse announces the end of the session.
		over = err == nil && (n == 0 || first[0] == 'E') || err == syscall.ECONNRESET
		return true
	}
	return func() bool { return raw.Read(peek) == nil && over }
}
