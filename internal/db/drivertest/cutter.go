package drivertest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Moment is when a Cutter ends a connection.
type Moment uint8

const (
	_             Moment = iota
	BeforeRequest        // with a request of a client, which the server does not get
	WithRequest          // right after the server got a request, which it may not answer any more
	BeforeAnswer         // with the answer to a request; the client gets it with neither
)

// Cutter stands between clients and a server, and ends connections that go through it.
type Cutter struct {
	Only func(request []byte) bool // which requests are meant; nil: all

	mu   sync.Mutex
	at   Moment
	left int
}

// Cut ends so many connections from now on, at a moment.
func (c *Cutter) Cut(at Moment, connections int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.left = at, connections
}

// Rest ends no connection from now on.
func (c *Cutter) Rest() { c.Cut(0, 0) }

// next is the moment at which the connection of a request ends; 0: not now.
func (c *Cutter) next(request []byte) Moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 || c.Only != nil && !c.Only(request) {
		return 0
	}
	c.left--
	return c.at
}

// Stand returns the URL at which the cutter passes on to the server at a URL.
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

// pass passes on what one side says, until cut says that it ends before or after that.
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
