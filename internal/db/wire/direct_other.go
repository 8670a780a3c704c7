//go:build !linux

package wire

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// newDirect returns conn unchanged, because only Linux allows programs to make system calls of their own.
func newDirect(conn *net.TCPConn) (net.Conn, error) { return conn, nil }

// Block returns conn unchanged, because it is implemented only for Linux.
func Block(conn net.Conn) (net.Conn, error) { return conn, nil }

// Blocks returns false, because only Linux has blocking connections.
func Blocks(net.Conn) bool { return false }

// setUserTimeout does nothing, because it is implemented only for Linux. Elsewhere, the system's limit of
// some minutes applies to unacknowledged data. A connection that waits for an answer is probed as on Linux.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }

// bindWithoutPort does nothing, because it is implemented only for Linux. Elsewhere, each port of an address
// is used once.
func bindWithoutPort(string, string, syscall.RawConn) error { return nil }

// PeerUser is implemented only for Linux.
func PeerUser(net.Conn) (string, error) {
	return "", errors.New("this system does not tell who owns a socket")
}
