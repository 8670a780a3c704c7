package mysql

import (
	"context"
	"net"
	"syscall"
	"time"

	"stroppy/internal/db/wire"
)

// socket lets the client library check whether the server has ended a connection at
// rest.
type socket interface {
	net.Conn
	syscall.Conn
}

// counted is the connection below the client library, which knows what the library
// does not show: how many bytes went out, why the connection ended, and when to
// give up waiting. The library's own time-outs and its goroutine for contexts are
// not used.
type counted struct {
	socket // the same as in Deadlines
	wire.Deadlines

	out    int64 // bytes that the kernel has taken
	broken error // the first error of the connection
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.socket.Read(p)
	c.note(err)
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.socket.Write(p)
	c.out += int64(n)
	c.note(err)
	return n, err
}

func (c *counted) note(err error) {
	if err != nil && c.broken == nil {
		c.broken = err
	}
}

// arm makes the next answer end with ctx, or with the limit if bounded.
func (c *counted) arm(ctx context.Context, bounded bool) error {
	return c.Arm(ctx, time.Now(), bounded)
}
