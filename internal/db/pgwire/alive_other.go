//go:build !linux

package pgwire

import "net"

// endedCheck returns nil. Only Linux has the check; elsewhere an ended connection is noticed by its missing
// answer.
func endedCheck(net.Conn) func() bool { return nil }
