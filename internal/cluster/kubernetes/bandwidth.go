package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"stroppy/internal/fault"
)

// Echoes show the rate at which a node can send, because its kernel sends them back unchanged. The probe offers twice
// the limit and counts the returned bytes.
const (
	echoTime  = time.Second
	echoPause = echoTime / 10
	echoOffer = 2
	// A link counts as limited if two things hold. The probe has offered at least wideShare times the limit, and at
	// most narrowShare times the limit came back. It counts as unlimited if at least wideShare times the limit came
	// back.
	narrowShare, wideShare = 1.3, 1.6
	// fewestEchoes is needed because a few echoes may come back even from a node that is cut off.
	fewestEchoes = 3
	// leastEcho and mostEcho bound the size of an echo. Many fit in echoTime, and each fits in a packet of any pod
	// network.
	leastEcho, mostEcho = 64, 1300
	mostEchoRate        = 1 << 30 // bytes per second
)

// limitSpec returns the limit of a NetworkChaos. buffer is the number of bytes that pass at once, more than the
// largest packet of a usual network. limit is the number of bytes that wait, a fifth of the bytes per second. The rest
// is dropped.
func limitSpec(bandwidth int64) map[string]any {
	return map[string]any{
		"rate":   fmt.Sprintf("%dbps", bandwidth), // in tc's unit, bytes per second
		"buffer": limitBuffer(bandwidth), "limit": max(32<<10, bandwidth/5),
	}
}

func limitBuffer(bandwidth int64) int64 { return max(16<<10, bandwidth/50) }

// echoed is an answer of a probe. It counts bytes of Ethernet frames, as a limit does.
type echoed struct {
	Sent, Back int64 // within echoTime
	Echoes     int64 // number that came back
	Error      string
}

// echo sends echoes (RFC 792, RFC 4443) to a host for echoTime, at rate bytes per second after a burst of first
// bytes. It counts the bytes that come back in this time.
func echo(ctx context.Context, to net.IP, rate, first int64) (e echoed) {
	network, local, overhead := "udp4", "0.0.0.0", int64(14+20+8)
	message := icmp.Message{Type: ipv4.ICMPTypeEcho}
	if to.To4() == nil {
		network, local, overhead = "udp6", "::", 14+40+8
		message.Type = ipv6.ICMPTypeEchoRequest
	}
	message.Body = &icmp.Echo{Data: make([]byte, min(max(rate/200, leastEcho), mostEcho))}
	packet, err := message.Marshal(nil) // whose sum and identifier are the kernel's (icmp(7))
	if err != nil {
		return echoed{Error: err.Error()}
	}
	conn, err := icmp.ListenPacket(network, local)
	if err != nil {
		return echoed{Error: "it is not allowed to send echoes: " + err.Error()}
	}
	defer conn.Close()
	frame := int64(len(packet)) - 8 + overhead
	send := func() (int64, error) {
		_, err := conn.WriteTo(packet, &net.UDPAddr{IP: to})
		if errors.Is(err, syscall.ENOBUFS) { // more than the kernel takes now
			return 0, nil
		}
		return frame, err
	}
	for sent := int64(0); sent < first && err == nil; sent += frame {
		_, err = send()
	}
	comeBack(conn, time.Now().Add(echoPause)) // the burst does not count
	began := time.Now()
	var group sync.WaitGroup
	group.Go(func() { e.Echoes = comeBack(conn, began.Add(echoTime)) })
	sent := int64(0)
	for passed := time.Duration(0); passed < echoTime && err == nil && ctx.Err() == nil; passed = time.Since(began) {
		var n int64
		if sent < int64(float64(rate)*passed.Seconds()) {
			n, err = send()
		}
		if sent += n; n == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.SetReadDeadline(time.Now())
		e.Error = "it cannot send echoes: " + err.Error()
	}
	group.Wait()
	e.Sent, e.Back = sent, frame*e.Echoes
	return e
}

// comeBack counts the packets that arrive before a moment.
func comeBack(conn *icmp.PacketConn, until time.Time) (count int64) {
	_ = conn.SetReadDeadline(until)
	buffer := make([]byte, 2*mostEcho)
	for {
		if _, _, err := conn.ReadFrom(buffer); err != nil {
			return count
		}
		count++
	}
}

// narrow returns why a link does not count as limited.
func (m measured) narrow(limit int64) error {
	switch {
	case float64(m.asked) < wideShare*float64(limit):
		return fmt.Errorf("the probe could offer only %d B/s, too little to see a limit of %d B/s", m.asked, limit)
	case float64(m.came) > narrowShare*float64(limit):
		return fmt.Errorf("%d B/s came back over a link with a limit of %d B/s", m.came, limit)
	case m.echoes < fewestEchoes:
		return fmt.Errorf("%d echoes came back; fewer than %d also come from a node that is cut off: allow echoes (ICMP) in the network, or use a higher limit", m.echoes, fewestEchoes)
	}
	return nil
}

// wide returns why a link does not count as unlimited.
func (m measured) wide(limit int64) error {
	if float64(m.came) < wideShare*float64(limit) {
		return fmt.Errorf("%d B/s came back of %d B/s offered, less than %.1f times the limit of %d B/s", m.came, m.asked, wideShare, limit)
	}
	return nil
}

// measureRate measures which rate a node sends back if twice a limit is offered.
func (p *probe) measureRate(ctx context.Context, node int, link fault.Link) (m measured, err error) {
	ip, err := p.address(node)
	if err != nil {
		return m, err
	}
	if most := int64(mostEchoRate / echoOffer); link.Bandwidth > most {
		return m, fmt.Errorf("the probe cannot offer enough to see a limit of %d B/s: use at most %d B/s", link.Bandwidth, most)
	}
	var e echoed
	err = p.get(ctx, "echo", map[string]any{"to": ip, "rate": echoOffer * link.Bandwidth, "first": limitBuffer(link.Bandwidth) + link.Bandwidth/5}, &e)
	if err == nil && e.Error != "" {
		err = fmt.Errorf("the probe cannot measure n%d: %s", node, e.Error)
	}
	perSecond := func(bytes int64) int64 { return int64(float64(bytes) / echoTime.Seconds()) }
	return measured{asked: perSecond(e.Sent), came: perSecond(e.Back), echoes: e.Echoes}, err
}
