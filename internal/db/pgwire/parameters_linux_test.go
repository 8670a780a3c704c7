package pgwire

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stroppy/internal/db/drivertest"
)

// TestSocketParametersAreSet checks keepalives… and tcp_user_timeout on a connection.
func TestSocketParametersAreSet(t *testing.T) {
	server := drivertest.Serve(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	options := []int{unix.TCP_USER_TIMEOUT, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT}
	for query, want := range map[string][5]int{
		"":             {1, 5000, 2, 1, 3},
		"keepalives=0": {0, 5000, -1, -1, -1},
		"keepalives_idle=60&keepalives_interval=7&keepalives_count=5&tcp_user_timeout=30000": {1, 30000, 60, 7, 5},
		"tcp_user_timeout=0": {1, 0, 2, 1, 3},
	} {
		d, err := parseURL("postgres://h/d?"+query, TestFlavor)
		drivertest.Must(t, err)
		conn, err := d.config.DialFunc(t.Context(), "tcp", server)
		drivertest.Must(t, err)
		raw, err := conn.(syscall.Conn).SyscallConn()
		drivertest.Must(t, err)
		drivertest.Must(t, raw.Control(func(fd uintptr) {
			enabled, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
			got := [5]int{enabled}
			for i, option := range options {
				value, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option)
				if got[i+1] = value; err != nil || want[i+1] < 0 {
					got[i+1] = -1 // the system's
				}
			}
			if err != nil || got != want {
				t.Errorf("%s: %v, %v, want %v", query, got, err, want)
			}
		}))
		drivertest.Must(t, conn.Close())
	}
}
