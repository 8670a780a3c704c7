package netem

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"stroppy/internal/fault"
)

func TestPacketLossAddsUpAndHeals(t *testing.T) {
	n := newNamespaces(t, 2)
	expect := func(from, to int, want float64) {
		t.Helper()
		got, err := n.Loss(t.Context(), from, to, 2000)
		if err != nil || got < want-0.06 || got > want+0.06 {
			t.Errorf("the loss from %s to %s is %v, %v, want about %v", endpointName(from), endpointName(to), got, err, want)
		}
	}
	expect(1, 0, 0)
	var heals []func() error
	for _, want := range []float64{0.5, 0.75} {
		heal, err := n.Shape(t.Context(), 0, fault.Link{Loss: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		heals = append(heals, heal)
		expect(1, 0, want)
		expect(0, fault.Client, want)
		expect(1, fault.Client, 0)
	}
	for _, want := range []float64{0.5, 0} {
		if err := heals[0](); err != nil {
			t.Fatal(err)
		}
		heals = heals[1:]
		expect(1, 0, want)
	}
}

func TestBandwidthLimitSlowsLinkUntilHeal(t *testing.T) {
	n := newNamespaces(t, 2)
	const limit = 1 << 20
	heal, err := n.Shape(t.Context(), 0, fault.Link{Bandwidth: limit})
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range [][2]int{{1, 0}, {0, 1}, {fault.Client, 0}} {
		got, err := n.Throughput(t.Context(), way[0], way[1], time.Second)
		// The first burst comes on top. A busy machine may carry less, but not nothing.
		if err != nil || got > limit*5/4 || got < limit/5 {
			t.Errorf("from %s to %s: %d bytes/s, %v, want about %d", endpointName(way[0]), endpointName(way[1]), got, err, limit)
		}
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	if got, err := n.Throughput(t.Context(), 1, 0, time.Second/2); err != nil || got < 10*limit {
		t.Errorf("after the heal: %d bytes/s, %v", got, err)
	}
}

func TestDelaySlowsRoundTripsUntilHeal(t *testing.T) {
	n := newNamespaces(t, 2)
	atLeast := func(from, to int, want time.Duration) time.Duration {
		t.Helper()
		got, err := n.RoundTrip(t.Context(), from, to)
		if err != nil || got < want {
			t.Errorf("the round trip from %s to %s is %v, %v, want at least %v", endpointName(from), endpointName(to), got, err, want)
		}
		return got
	}
	const delay = 30 * time.Millisecond
	before := atLeast(fault.Client, 0, 1)
	first, err := n.Shape(t.Context(), 0, fault.Link{Delay: delay})
	if err != nil {
		t.Fatal(err)
	}
	during := atLeast(fault.Client, 0, 2*delay)
	atLeast(0, 1, 2*delay)
	second, err := n.Shape(t.Context(), 1, fault.Link{Delay: delay})
	if err != nil {
		t.Fatal(err)
	}
	atLeast(0, 1, 4*delay)
	third, err := n.Shape(t.Context(), 0, fault.Link{Delay: delay, Loss: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	both := atLeast(1, 0, 6*delay)
	for _, heal := range []func() error{first, second, third} {
		if err := heal(); err != nil {
			t.Fatal(err)
		}
	}
	after := atLeast(0, 1, 1)
	if before > 2*delay || after > 2*delay {
		t.Errorf("round trips are %v before and %v after a delay of %v", before, after, delay)
	}
	t.Logf("round trips: %v; delayed by %v: %v; by three: %v; healed: %v", before, delay, during, both, after)
	expectCut(t, n, 2, nil)
}

// TestDelayedBytesArriveInOrder checks that all bytes through a delayed link arrive in order, although its jitter
// is larger than the interval between packets.
func TestDelayedBytesArriveInOrder(t *testing.T) {
	n := newNamespaces(t, 2)
	address, _ := echoOn(t, n.Host(0))
	for _, place := range []int{fault.Client, 1} {
		conn := dialFrom(t, n, place, address)
		heal, err := n.Shape(t.Context(), 0, fault.Link{Delay: 5 * time.Millisecond, Jitter: 4 * time.Millisecond, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		sent := make([]byte, 32<<20)
		_, _ = rand.NewChaCha8([32]byte{byte(place)}).Read(sent)
		_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
		began := time.Now()
		go func() { _, _ = conn.Write(sent) }()
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(conn, got); err != nil || sha256.Sum256(got) != sha256.Sum256(sent) {
			t.Errorf("the bytes of %s came back damaged: %v", endpointName(place), err)
		}
		t.Logf("%s: %d MiB there and back in %v", endpointName(place), len(sent)>>20, time.Since(began))
		orderKept(t, n, place)
		if err := heal(); err != nil {
			t.Fatal(err)
		}
		exchange(t, conn, "after the heal")
	}
}

func orderKept(t *testing.T, n *Network, from int) {
	t.Helper()
	p, err := n.probe(t.Context(), from, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	const datagrams = 200
	for i := range datagrams {
		if err := transmit(p.from, binary.BigEndian.AppendUint64(nil, uint64(i)), p.to); err != nil {
			t.Fatal(err)
		}
	}
	buffer := make([]byte, 64)
	for last := int64(-1); last < datagrams-1; {
		_ = p.to.SetReadDeadline(time.Now().Add(10 * time.Second))
		size, err := p.to.Read(buffer)
		if err != nil || size != 8 {
			t.Fatalf("after datagram %d: %d bytes, %v", last, size, err)
		}
		if i := int64(binary.BigEndian.Uint64(buffer)); i <= last {
			t.Fatalf("datagram %d came after %d", i, last)
		} else {
			last = i
		}
	}
}

// TestLinkIsConvertedToKernelUnits checks the values for the kernel: microseconds, rounded up, and losses in
// percent. A link that netem shapes differently is left to a wire.
func TestLinkIsConvertedToKernelUnits(t *testing.T) {
	for _, test := range []struct {
		link    fault.Link
		latency uint32
		loss    float32
		same    bool
	}{
		{fault.Link{}, 0, 0, true},
		{fault.Link{Delay: 30 * time.Millisecond, Seed: 7}, 30_000, 0, true},
		{fault.Link{Delay: time.Microsecond + 1}, 2, 0, true},
		{fault.Link{Delay: fault.MaxDelay}, 30_000_000, 0, true},
		{fault.Link{Loss: 0.125}, 0, 12.5, true},
		{fault.Link{Loss: 1}, 0, 100, true},
		{fault.Link{Delay: time.Second, Jitter: time.Millisecond}, 1_000_000, 0, false},
		{fault.Link{Bandwidth: 1 << 20}, 0, 0, false},
	} {
		got, same := netemOf(test.link)
		want := netlink.NetemQdiscAttrs{Latency: test.latency, Loss: test.loss, Limit: 65536}
		if got != want || same != test.same {
			t.Errorf("%+v gives %+v, %t; want %+v, %t", test.link, got, same, want, test.same)
		}
	}
	if ticks := netlink.TickInUsec(); ticks > 0 && ticks*float64(fault.MaxDelay/time.Microsecond) > math.MaxUint32 {
		t.Errorf("the longest delay does not fit into netem's ticks, of which a microsecond has %v", ticks)
	}
}

// TestLinkFallsBackToWireWithoutNetem checks that a wire shapes a link if the kernel has no netem, or if netem
// would behave differently. If the kernel refuses netem, the link stays as it was.
func TestLinkFallsBackToWireWithoutNetem(t *testing.T) {
	n := newNamespaces(t, 1)
	f := n.backend.(*namespaces)
	var has bool
	if err := f.within(f.switchNS.ns, func() error {
		out, err := exec.Command("tc", "qdisc", "add", "dev", clientPort, "root", "netem").CombinedOutput()
		if has = err == nil; has {
			return exec.Command("tc", "qdisc", "del", "dev", clientPort, "root").Run()
		}
		t.Logf("tc: %v: %s", err, out)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("tc"); err == nil && has != f.netem {
		t.Errorf("tc says that the kernel has netem: %t, the network that it has: %t", has, f.netem)
	}
	const delay = 5 * time.Millisecond
	for _, link := range []fault.Link{{Delay: delay}, {Delay: delay, Jitter: 1}, {Bandwidth: fault.MinBandwidth << 10}} {
		e, err := n.Degrade(t.Context(), []int{0}, link)
		if err != nil {
			t.Fatal(err)
		}
		h, want := f.hosts[0], "a delay line of our own"
		if f.netem && link.Jitter == 0 && link.Bandwidth == 0 {
			want = "the kernel's netem"
		}
		if !strings.HasSuffix(e.Seen, ", by "+want) || (h.wire == nil) != (len(h.netem) == 2) {
			t.Errorf("%+v: %s; wire %v, netem %v", link, e.Seen, h.wire, h.netem)
		}
		seen, err := e.Heal(t.Context())
		if err != nil || h.wire != nil || len(h.netem) > 0 || h.detached {
			t.Errorf("%+v is not healed: %s, %v", link, seen, err)
		}
	}
	if f.netem {
		return
	}
	f.netem = true
	if _, err := n.Shape(t.Context(), 0, fault.Link{Delay: delay}); err == nil || !strings.Contains(err.Error(), "netem on the link eth0") {
		t.Errorf("netem on a kernel without it: %v", err)
	}
	if h := f.hosts[0]; h.wire != nil || len(h.netem) > 0 || h.detached {
		t.Errorf("after a refusal the link is not as it was: %+v", h)
	}
	expectCut(t, n, 1, nil)
}

// TestHostsNeedNoARP checks that nobody asks for a hardware address, not even of a host that came later. Over a slow
// link the answer would come too late.
func TestHostsNeedNoARP(t *testing.T) {
	n := newNamespaces(t, 1)
	if _, err := n.Add(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := n.backend.(*namespaces)
	for number, e := range map[int]end{fault.Client: f.homeEnd, 0: {f.hosts[0].links, hostLink}, 1: {f.hosts[1].links, hostLink}} {
		link, err := e.links.LinkByName(e.name)
		if err != nil {
			t.Fatal(err)
		}
		if link.Attrs().HardwareAddr.String() != hardwareAddr(number).String() {
			t.Errorf("%s has the hardware address %v", endpointName(number), link.Attrs().HardwareAddr)
		}
		known, err := e.links.NeighList(link.Attrs().Index, netlink.FAMILY_V4)
		if err != nil || len(known) != 2 || known[0].State != netlink.NUD_PERMANENT || known[1].State != netlink.NUD_PERMANENT {
			t.Errorf("%s knows %v, %v", endpointName(number), known, err)
		}
	}
}
