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

	"stroppy/internal/cluster"
)

// What a node can send is seen by echoes, which its kernel sends back as they are: the probe asks
// for twice the limit, and counts what comes back.
const (
	echoTime  = time.Second
	echoPause = echoTime / 10
	echoOffer = 2
	// A link counts as limited if the probe has asked for at least wideShare times the limit and no
	// more than narrowShare times the limit came back; and as one that lets more through, if at
	// least wideShare did.
	narrowShare, wideShare = 1.3, 1.6
	// Fewer echoes than these come of a node that is cut off as well.
	fewestEchoes = 3
	// Echoes are as small as to be many in echoTime, and fit in a packet of any network of pods.
	leastEcho, mostEcho = 64, 1300
	mostEchoRate        = 1 << 30 // bytes a second
)

// limitSpec is what a NetworkChaos says of a limit. So much as buffer passes at once, which is
// more than the largest packet of a usual network; and so much as limit waits, a fifth of a
// second's bytes. The rest is dropped.
func limitSpec(bandwidth int64) map[string]any {
	return map[string]any{
		"rate":   fmt.Sprintf("%dbps", bandwidth), // in tc's units, which are bytes
		"buffer": limitBuffer(bandwidth), "limit": max(32<<10, bandwidth/5),
	}
}

func limitBuffer(bandwidth int64) int64 { return max(16<<10, bandwidth/50) }

// echoed is an answer of a probe. Bytes are those of frames of Ethernet, as a limit counts them.
type echoed struct {
	Sent, Back int64 // within echoTime
	Echoes     int64 // that came back
	Error      string
}

// echo sends a host so many bytes a second in echoes (RFC 792, RFC 4443) for echoTime, after so
// many at once, and counts what comes back meanwhile.
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
		return echoed{Error: "it may not send echoes: " + err.Error()}
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
	comeBack(conn, time.Now().Add(echoPause)) // what passed at once does not count
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

// comeBack counts the packets that come until a moment.
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

// narrow says why a link does not count as one with a limit.
func (m measured) narrow(limit int64) error {
	switch {
	case float64(m.asked) < wideShare*float64(limit):
		return fmt.Errorf("the probe could ask for no more than %d B/s, by which a limit of %d B/s cannot be seen", m.asked, limit)
	case float64(m.came) > narrowShare*float64(limit):
		return fmt.Errorf("%d B/s came back of a link that is to be limited to %d B/s", m.came, limit)
	case m.echoes < fewestEchoes:
		return fmt.Errorf("%d echoes came back, and fewer than %d may be of a node that is cut off: see that the network lets echoes (ICMP) through, or take a higher limit", m.echoes, fewestEchoes)
	}
	return nil
}

// wide says why a link does not count as one that lets more than a limit through.
func (m measured) wide(limit int64) error {
	if float64(m.came) < wideShare*float64(limit) {
		return fmt.Errorf("%d B/s came back of %d B/s that the probe asked for, and %.1f times the limit of %d B/s have to", m.came, m.asked, wideShare, limit)
	}
	return nil
}

// measureRate sees how much of twice a limit a node sends back.
func (p *probe) measureRate(ctx context.Context, node int, link cluster.Link) (m measured, err error) {
	ip, err := p.address(node)
	if err != nil {
		return m, err
	}
	if most := int64(mostEchoRate / echoOffer); link.Bandwidth > most {
		return m, fmt.Errorf("the probe cannot ask for enough to see a limit of %d B/s: take one of %d B/s at most", link.Bandwidth, most)
	}
	var e echoed
	err = p.get(ctx, "echo", map[string]any{"to": ip, "rate": echoOffer * link.Bandwidth, "first": limitBuffer(link.Bandwidth) + link.Bandwidth/5}, &e)
	if err == nil && e.Error != "" {
		err = fmt.Errorf("the probe sees nothing of n%d: %s", node, e.Error)
	}
	perSecond := func(bytes int64) int64 { return int64(float64(bytes) / echoTime.Seconds()) }
	return measured{asked: perSecond(e.Sent), came: perSecond(e.Back), echoes: e.Echoes}, err
}
