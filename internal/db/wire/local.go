package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// local holds the addresses from which connections are made in turn.
type local struct {
	addresses []netip.Addr
	next      atomic.Uint32
}

type localKey struct{}

// ErrNoPort means that no address has a free port for another connection to a server. Each has as many as
// net.ipv4.ip_local_port_range, 28,232 by default (ip(7)).
var ErrNoPort = errors.New("no port of this machine is left for another connection to that server: give more addresses with local-address, or widen net.ipv4.ip_local_port_range")

// WithLocalAddresses returns a context in which Dial makes each connection from the next of these addresses.
func WithLocalAddresses(ctx context.Context, addresses []netip.Addr) context.Context {
	return context.WithValue(ctx, localKey{}, &local{addresses: addresses})
}

// CheckLocal returns an error if connections cannot be made from an address.
func CheckLocal(address netip.Addr) error {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("%s is no address of this machine: `ip addr` shows those that are", address)
	}
	if err != nil {
		return fmt.Errorf("connections cannot be made from %s: %w", address, err)
	}
	return l.Close()
}

// dial makes a connection from the next address with a free port.
func (l *local) dial(ctx context.Context, dialer net.Dialer, network, address string) (net.Conn, error) {
	dialer.Control = bindWithoutPort
	var conn net.Conn
	err := error(syscall.EADDRNOTAVAIL)
	for range l.addresses {
		from := l.addresses[int(l.next.Add(1)-1)%len(l.addresses)]
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		if conn, err = dialer.DialContext(ctx, network, address); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			break
		}
	}
	return conn, err
}
