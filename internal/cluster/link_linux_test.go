package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

func TestLoss(t *testing.T) {
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
		heal, err := n.Shape(t.Context(), 0, Link{Loss: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		heals = append(heals, heal)
		expect(1, 0, want)
		expect(0, Client, want)
		expect(1, Client, 0)
	}
	for _, want := range []float64{0.5, 0} {
		if err := heals[0](); err != nil {
			t.Fatal(err)
		}
		heals = heals[1:]
		expect(1, 0, want)
	}
}

func TestBandwidth(t *testing.T) {
	n := newNamespaces(t, 2)
	const limit = 1 << 20
	heal, err := n.Shape(t.Context(), 0, Link{Bandwidth: limit})
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range [][2]int{{1, 0}, {0, 1}, {Client, 0}} {
		got, err := n.Throughput(t.Context(), way[0], way[1], time.Second)
		// The first burst is on top; a busy machine may carry less, not nothing.
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

func TestDelay(t *testing.T) {
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
	before := atLeast(Client, 0, 1)
	first, err := n.Shape(t.Context(), 0, Link{Delay: delay})
	if err != nil {
		t.Fatal(err)
	}
	during := atLeast(Client, 0, 2*delay)
	atLeast(0, 1, 2*delay)
	second, err := n.Shape(t.Context(), 1, Link{Delay: delay})
	if err != nil {
		t.Fatal(err)
	}
	atLeast(0, 1, 4*delay)
	third, err := n.Shape(t.Context(), 0, Link{Delay: delay, Loss: 0.1})
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

// TestDelayedBytes sends a lot through a delayed link whose jitter is larger
// than the time between packets: all comes, whole and in order.
func TestDelayedBytes(t *testing.T) {
	n := newNamespaces(t, 2)
	address, _ := echoOn(t, n.Host(0))
	for _, place := range []int{Client, 1} {
		conn := dialFrom(t, n, place, address)
		heal, err := n.Shape(t.Context(), 0, Link{Delay: 5 * time.Millisecond, Jitter: 4 * time.Millisecond, Seed: 7})
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
