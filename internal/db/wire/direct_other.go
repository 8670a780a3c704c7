//go:build !linux

package wire

import "net"

// newDirect is only done on Linux: elsewhere a program may not make system calls of
// its own, and conn stays what it is.
func newDirect(conn *net.TCPConn) (net.Conn, error) { return conn, nil }
