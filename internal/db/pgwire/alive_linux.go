package pgwire

import (
	"net"
	"syscall"
)

// aliveness says, without waiting, whether the server has ended a connection.
type aliveness struct {
	raw   syscall.RawConn
	check func(fd uintptr) bool
	over  bool
	first [1]byte
}

// newAliveness returns nil for a connection that cannot be checked, such as one
// with TLS, whose first byte says nothing.
func newAliveness(conn net.Conn) *aliveness {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	p := &aliveness{raw: raw}
	p.check = func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), p.first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		// An ErrorResponse that nobody asked for announces the end of the session.
		p.over = err == nil && (n == 0 || p.first[0] == 'E') || err == syscall.ECONNRESET
		return true
	}
	return p
}

// ended says that the server has closed the connection or announced it.
func (p *aliveness) ended() bool {
	return p != nil && p.raw.Read(p.check) == nil && p.over
}
