package wire

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// listen accepts connections on a port of all loopback addresses and reports the origin of each.
func listen(t *testing.T) (address string, from <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	came := make(chan string, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			came <- conn.RemoteAddr().(*net.TCPAddr).IP.String()
			_ = conn.Close()
		}
	}()
	return l.Addr().String(), came
}

// TestConnectionsUseEachLocalAddressInTurn checks that connections come from each address in turn, skipping
// unusable ones.
func TestConnectionsUseEachLocalAddressInTurn(t *testing.T) {
	address, from := listen(t)
	two, three := netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")
	foreign := netip.MustParseAddr("192.0.2.1") // of the documentation (RFC 5737), never of this machine
	if CheckLocal(two) != nil {
		t.Skip("skipped engine: a second local address: 127.0.0.2 is no address of this machine")
	}
	if err := CheckLocal(foreign); err == nil {
		t.Error("an address of another machine is taken")
	}
	for _, c := range []struct {
		addresses []netip.Addr
		want      []string
	}{
		{[]netip.Addr{two}, []string{"127.0.0.2", "127.0.0.2"}},
		{[]netip.Addr{two, three}, []string{"127.0.0.2", "127.0.0.3", "127.0.0.2"}},
		{[]netip.Addr{foreign, three}, []string{"127.0.0.3", "127.0.0.3"}},
	} {
		ctx := WithLocalAddresses(t.Context(), c.addresses)
		for i, want := range c.want {
			conn, err := Dial(ctx, "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			if got := <-from; got != want {
				t.Errorf("connection %d from %v came from %s, not %s", i, c.addresses, got, want)
			}
			_ = conn.Close()
		}
	}
	if _, err := Dial(WithLocalAddresses(t.Context(), []netip.Addr{foreign}), "tcp", address); !errors.Is(err, ErrNoPort) {
		t.Errorf("without any address that can be taken: %v", err)
	}
}
