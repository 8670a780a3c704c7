package kubernetes

import (
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProbeSendsAndCountsEchoes checks that returned echoes are counted and that they are sent at the
// requested rate. It uses a network namespace of its own, where echoes need no privilege, as in the probe's pod.
func TestProbeSendsAndCountsEchoes(t *testing.T) {
	runtime.LockOSThread() // the thread and the namespace end with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("a network namespace needs root: %v", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	must(t, err)
	lo.SetUint16(unix.IFF_UP)
	const rate = 100e3
	none := echo(t.Context(), net.IPv4(127, 0, 0, 1), rate, 0)
	must(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0); err != nil {
		t.Skipf("the namespace cannot be set up: %v", err)
	}
	if none.Error == "" || none.Echoes > 0 {
		t.Errorf("who may not send echoes says %+v", none)
	}
	e := echo(t.Context(), net.IPv4(127, 0, 0, 1), rate, 1000)
	if e.Error != "" || e.Sent > rate+2*mostEcho || e.Back > e.Sent || e.Back < e.Sent/2 || e.Echoes < fewestEchoes || e.Echoes*mostEcho < e.Back {
		t.Errorf("the loopback answers %+v", e)
	}
}
