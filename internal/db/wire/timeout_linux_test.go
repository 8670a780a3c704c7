package wire

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestTCPUserTimeoutIsSet checks the user timeout of TCP, and that the probes of an idle connection come before
// the timeout.
func TestTCPUserTimeoutIsSet(t *testing.T) {
	raw, err := silent(t).(*direct).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]int{}
	err = raw.Control(func(fd uintptr) {
		for _, option := range []int{unix.TCP_USER_TIMEOUT, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT} {
			value, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option)
			if err != nil {
				t.Error(err)
			}
			got[option] = value
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got[unix.TCP_USER_TIMEOUT] != int(UserTimeout.Milliseconds()) {
		t.Errorf("TCP_USER_TIMEOUT is %d ms", got[unix.TCP_USER_TIMEOUT])
	}
	if probed := got[unix.TCP_KEEPIDLE] + got[unix.TCP_KEEPINTVL]*got[unix.TCP_KEEPCNT]; probed != int(UserTimeout.Seconds()) {
		t.Errorf("a connection at rest is given up after %d s", probed)
	}
}
