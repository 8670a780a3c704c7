//go:build !linux

package wire

import (
	"net"
	"syscall"
)

// newDirect is only done on Linux: elsewhere a program may not make system calls of
// its own, and conn stays what it is.
func newDirect(conn *net.TCPConn) (net.Conn, error) { return conn, nil }

// Block is only done on Linux: elsewhere conn stays what it is.
func Block(conn net.Conn) (net.Conn, error) { return conn, nil }

// Blocks says whether the reader of a connection waits in the system call, which is only so
// on Linux.
func Blocks(net.Conn) bool { return false }

// setUserTimeout is only done on Linux. Elsewhere the system's own limit counts
// while something that was sent is unacknowledged, which is some minutes; a
// connection that waits for an answer is probed as on Linux.
func setUserTimeout(*net.TCPConn) error { return nil }

// bindWithoutPort is only done on Linux: elsewhere an address has each port once.
func bindWithoutPort(string, string, syscall.RawConn) error { return nil }
