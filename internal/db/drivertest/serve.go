package drivertest

import (
	"net"
	"net/url"
	"testing"
)

// Serve calls serve with each connection to the returned address, and closes the connection when serve returns. It
// accepts connections until the test ends.
func Serve(t testing.TB, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	Must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// Relay starts a proxy before the server at a URL, and returns the proxy's URL. relay gets each connection of a client
// with a connection to the server. Both end when relay returns.
func Relay(t testing.TB, server string, relay func(client, backend net.Conn)) string {
	t.Helper()
	u, err := url.Parse(server)
	Must(t, err)
	host := u.Host
	u.Host = Serve(t, func(client net.Conn) {
		backend, err := net.Dial("tcp4", host)
		if err != nil {
			return
		}
		defer backend.Close()
		relay(client, backend)
	})
	return u.String()
}
