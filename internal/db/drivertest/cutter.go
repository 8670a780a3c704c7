package drivertest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Moment is the time at which a Cutter ends a connection.
type Moment uint8

const (
	_             Moment = iota
	BeforeRequest        // when a client sends a request, which the server does not get
	WithRequest          // right after the server has got a request, which it may no longer answer
	BeforeAnswer         // when the server answers a request; the client does not get the answer
)

// Cutter is a proxy between clients and a server that can end the connections through it.
type Cutter struct {
	Only func(request []byte) bool // reports whether a request counts; nil: all count

	mu   sync.Mutex
	at   Moment
	left int
}

// Cut ends the next connections, up to the given number, at a moment.
func (c *Cutter) Cut(at Moment, connections int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.left = at, connections
}

// Rest stops ending connections.
func (c *Cutter) Rest() { c.Cut(0, 0) }

// next returns the moment at which the connection of a request ends, or 0 if it does not end now.
func (c *Cutter) next(request []byte) Moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 || c.Only != nil && !c.Only(request) {
		return 0
	}
	c.left--
	return c.at
}

// Stand starts the proxy before the server at a URL and returns the proxy's URL.
func (c *Cutter) Stand(t testing.TB, server string) string {
	t.Helper()
	return Relay(t, server, func(client, backend net.Conn) {
		var ended atomic.Bool // no answer is passed on
		go pass(client, backend, func(request []byte) Moment {
			at := c.next(request)
			if at == WithRequest || at == BeforeAnswer {
				ended.Store(true)
			}
			return at
		})
		pass(backend, client, func([]byte) Moment {
			if ended.Load() {
				return BeforeRequest
			}
			return 0
		})
	})
}

// pass copies from one side to the other, until cut returns that the connection ends before or after the data.
func pass(from, to net.Conn, cut func(said []byte) Moment) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		at := cut(buf[:n])
		if at == BeforeRequest {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil || at == WithRequest {
			return
		}
	}
}
