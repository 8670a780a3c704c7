package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Ports are taken below 32768, the first ephemeral port of Linux (net.ipv4.ip_local_port_range). Otherwise an
// outgoing connection could take the port of a server that is down.
const firstPort, lastPort = 20000, 32767

// FreePort returns a TCP port of 127.0.0.1 on which nobody listens now.
func FreePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	for range 200 {
		port := firstPort + rand.N(lastPort-firstPort+1)
		l, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		switch {
		case err == nil:
			return port, l.Close()
		case ctx.Err() != nil, !errors.Is(err, syscall.EADDRINUSE):
			return 0, fmt.Errorf("look for a free port of 127.0.0.1: %w", err)
		}
	}
	return 0, fmt.Errorf("look for a free port of 127.0.0.1: 200 ports between %d and %d were all taken", firstPort, lastPort)
}
