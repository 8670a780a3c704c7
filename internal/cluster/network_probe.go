package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// probes are sent this far apart.
	probePace = 20 * time.Millisecond
	// A probe that has not come after this and the link's own delay is lost. A
	// packet crosses a bridge in microseconds; the rest is for a busy machine.
	probePatience = 200 * time.Millisecond
)

// Reaches tells by effect whether packets get through from one place to another
// in this direction, whatever the other direction does: it sends datagrams to a
// socket of its own there until one has come or patience has ended.
func (n *Network) Reaches(ctx context.Context, from, to int) (bool, error) {
	p, err := n.probe(ctx, from, to)
	if err != nil {
		return false, fmt.Errorf("probe the network from %s to %s: %w", endpointName(from), endpointName(to), err)
	}
	defer p.close()
	nonce := make([]byte, 16)
	rand.Read(nonce) // never fails, see crypto/rand
	buffer := make([]byte, 64)
	for end := time.Now().Add(probePatience + p.delay); time.Now().Before(end); {
		if err := ctx.Err(); err != nil {
			return false, fmt.Errorf("probe the network from %s to %s: %w", endpointName(from), endpointName(to), err)
		}
		err := p.send(nonce)
		for err == nil {
			var size int
			if size, err = p.receive(buffer, probePace); err == nil && string(buffer[:size]) == string(nonce) {
				return true, nil
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return false, fmt.Errorf("probe the network from %s to %s: %w", endpointName(from), endpointName(to), err)
		}
	}
	return false, nil
}

// Loss sends so many datagrams from one place to another and returns the share
// of them that did not come.
func (n *Network) Loss(ctx context.Context, from, to, datagrams int) (float64, error) {
	p, err := n.probe(ctx, from, to)
	if err != nil {
		return 0, fmt.Errorf("measure the loss from %s to %s: %w", endpointName(from), endpointName(to), err)
	}
	defer p.close()
	came := map[uint64]bool{}
	sent := 0
	buffer := make([]byte, 64)
	for end := time.Now().Add(probePatience + p.delay); time.Now().Before(end) && len(came) < datagrams; {
		if ctx.Err() != nil {
			return 0, fmt.Errorf("measure the loss from %s to %s: %w", endpointName(from), endpointName(to), ctx.Err())
		}
		for burst := 0; burst < 20 && sent < datagrams; burst++ { // few enough for the socket's buffer
			err = errors.Join(err, p.send(binary.BigEndian.AppendUint64(nil, uint64(sent))))
			sent++
			end = time.Now().Add(probePatience + p.delay)
		}
		for err == nil {
			var size int
			if size, err = p.receive(buffer, time.Millisecond); err == nil && size == 8 {
				came[binary.BigEndian.Uint64(buffer)] = true
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, fmt.Errorf("measure the loss from %s to %s: %w", endpointName(from), endpointName(to), err)
		}
		err = nil
	}
	return 1 - float64(len(came))/float64(datagrams), nil
}

// roundTrips is of how many round trips RoundTrip takes the median.
const roundTrips = 5

// RoundTrip measures how long a datagram and its echo take between two places:
// the median of a few. That none comes back is an error.
func (n *Network) RoundTrip(ctx context.Context, from, to int) (time.Duration, error) {
	p, err := n.probe(ctx, from, to)
	if err != nil {
		return 0, fmt.Errorf("measure the round trip from %s to %s: %w", endpointName(from), endpointName(to), err)
	}
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		buffer := make([]byte, 64)
		for {
			size, err := p.to.Read(buffer)
			if err != nil {
				return // closed
			}
			_ = p.reply(buffer[:size]) // what does not come back is counted as lost
		}
	}()
	defer func() { p.close(); <-echoed }()
	sent := make([]time.Time, 0, roundTrips)
	var took []time.Duration
	buffer := make([]byte, 64)
	for end := time.Now().Add(probePatience + 2*p.delay); time.Now().Before(end) && len(took) < roundTrips; {
		if ctx.Err() != nil {
			return 0, fmt.Errorf("measure the round trip from %s to %s: %w", endpointName(from), endpointName(to), ctx.Err())
		}
		if len(sent) < roundTrips {
			sent = append(sent, time.Now())
			err = p.send([]byte{byte(len(sent) - 1)})
		}
		for err == nil {
			_ = p.from.SetReadDeadline(time.Now().Add(probePace))
			var size int
			if size, err = p.from.Read(buffer); err == nil && size == 1 && int(buffer[0]) < len(sent) {
				took = append(took, time.Since(sent[buffer[0]]))
				if len(sent) < roundTrips {
					break
				}
			}
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, fmt.Errorf("measure the round trip from %s to %s: %w", endpointName(from), endpointName(to), err)
		}
		err = nil
	}
	if len(took) == 0 {
		return 0, fmt.Errorf("measure the round trip from %s to %s: nothing came back in %v", endpointName(from), endpointName(to), probePatience+2*p.delay)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// Throughput measures how many bytes a second one TCP connection carries from
// one place to another within the given period.
func (n *Network) Throughput(ctx context.Context, from, to int, period time.Duration) (int64, error) {
	rate, err := n.throughput(ctx, from, to, period)
	if err != nil {
		return 0, fmt.Errorf("measure the throughput from %s to %s: %w", endpointName(from), endpointName(to), err)
	}
	return rate, nil
}

func (n *Network) throughput(ctx context.Context, from, to int, period time.Duration) (int64, error) {
	source, sink, _, err := n.endpoints(from, to)
	if err != nil {
		return 0, err
	}
	var listener *net.TCPListener
	err = n.at(to, func() (err error) {
		listener, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(sink, 0)))
		return err
	})
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	var out *net.TCPConn
	const connectPatience = 5 * time.Second
	err = n.at(from, func() error {
		dialer := net.Dialer{Timeout: connectPatience, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))}
		conn, err := dialer.DialContext(ctx, "tcp4", listener.Addr().String())
		if err == nil {
			out = conn.(*net.TCPConn)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	defer out.Close()
	stop := context.AfterFunc(ctx, func() { out.Close(); listener.Close() })
	defer stop()
	in, err := listener.AcceptTCP()
	if err != nil {
		return 0, errors.Join(ctx.Err(), err)
	}
	defer in.Close()
	end := time.Now().Add(period)
	_ = errors.Join(out.SetWriteDeadline(end), in.SetReadDeadline(end))
	go func() {
		block := make([]byte, 64<<10)
		for {
			if _, err := out.Write(block); err != nil {
				return // the period has ended
			}
		}
	}()
	began := time.Now()
	count, err := io.Copy(io.Discard, in)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
		return 0, errors.Join(ctx.Err(), err)
	}
	return int64(float64(count) / time.Since(began).Seconds()), nil
}

// probe is a pair of sockets at two places.
type probe struct {
	from, to *net.UDPConn
	delay    time.Duration // the most that the links on the way hold a packet back
}

// endpoints returns the addresses of two places and how long the links between
// them may hold a packet back.
func (n *Network) endpoints(from, to int) (source, sink netip.Addr, delay time.Duration, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return source, sink, 0, errors.New("the network is closed")
	}
	addrs := [2]netip.Addr{}
	for i, place := range []int{from, to} {
		switch {
		case place < Client || place >= len(n.hosts):
			return source, sink, 0, fmt.Errorf("the network has no host n%d, only n0 to n%d", place, len(n.hosts)-1)
		case n.backend == nil:
			addrs[i] = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		default:
			addrs[i] = n.backend.addr(place)
		}
		link := n.effective()[place]
		delay += link.Delay + link.Jitter
	}
	return addrs[0], addrs[1], delay, nil
}

func (n *Network) probe(ctx context.Context, from, to int) (*probe, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	source, sink, delay, err := n.endpoints(from, to)
	if err != nil {
		return nil, err
	}
	p := &probe{delay: delay}
	listen := func(conn **net.UDPConn, addr netip.Addr) func() error {
		return func() (err error) {
			*conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
			return err
		}
	}
	if err := n.at(from, listen(&p.from, source)); err != nil {
		return nil, err
	}
	if err := n.at(to, listen(&p.to, sink)); err != nil {
		return nil, errors.Join(err, p.from.Close())
	}
	// A first datagram the other way tells a firewall at the receiver, if there
	// is one, that the receiver wants to hear from the sender.
	if err := p.reply(nil); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *probe) send(text []byte) error  { return transmit(p.from, text, p.to) }
func (p *probe) reply(text []byte) error { return transmit(p.to, text, p.from) }

// transmit sends a datagram. A refusal by the sender's own packet filter or for
// want of a route is a datagram that does not arrive.
func transmit(from *net.UDPConn, text []byte, to *net.UDPConn) error {
	_, err := from.WriteToUDPAddrPort(text, to.LocalAddr().(*net.UDPAddr).AddrPort())
	for _, lost := range []error{syscall.EPERM, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENOBUFS} {
		if errors.Is(err, lost) {
			return nil
		}
	}
	return err
}

func (p *probe) receive(buffer []byte, limit time.Duration) (int, error) {
	if err := p.to.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	return p.to.Read(buffer)
}

func (p *probe) close() { _ = errors.Join(p.from.Close(), p.to.Close()) }

// wires is what the faults on links are made and measured with.
type wires interface {
	Cut(ctx context.Context, cuts []Cut) (heal func() error, err error)
	open(cuts []Cut) []Cut // those that no fault cuts
	Reaches(ctx context.Context, from, to int) (bool, error)
	Shape(ctx context.Context, host int, link Link) (heal func() error, err error)
	RoundTrip(ctx context.Context, from, to int) (time.Duration, error)
	Loss(ctx context.Context, from, to, datagrams int) (float64, error)
	Throughput(ctx context.Context, from, to int, period time.Duration) (int64, error)
}

// What can be seen of a link.
const (
	measureRate = 300 * time.Millisecond
	lossesSeen  = 60 // so many lost packets are waited for to tell a loss from chance
	rateSlack   = 1.5
	linkWithin  = 5 * time.Second // for a busy machine to show a healed link
)

// Partition is Cut that sees by packets of its own that nothing gets through, and
// after the heal that everything does that no other fault cuts.
func (n *Network) Partition(ctx context.Context, cuts []Cut) (Effect, error) {
	return partition(ctx, n, cuts)
}

// Degrade is Shape of several hosts at once that measures the links from this
// program, one after the other, when they are shaped and when they are healed. The
// link asks for one of Delay, Loss and Bandwidth.
func (n *Network) Degrade(ctx context.Context, hosts []int, link Link) (Effect, error) {
	return degrade(ctx, n, hosts, link)
}

// open returns the ways that no fault cuts.
func (n *Network) open(cuts []Cut) []Cut {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(cuts), func(c Cut) bool { return n.cuts[c] > 0 })
}

func partition(ctx context.Context, w wires, cuts []Cut) (Effect, error) {
	mend, err := w.Cut(ctx, cuts)
	if err != nil {
		return Effect{}, err
	}
	e := Effect{Seen: ways(len(cuts)) + " cut: no packet came through"}
	e.Heal = func(ctx context.Context) (seen string, err error) {
		if err := until(ctx, mend); err != nil {
			return "", err
		}
		err = until(ctx, func() error {
			open := w.open(cuts)
			seen = ways(len(open)) + " open again"
			if len(open) == 0 {
				seen = "its ways are cut by another fault yet"
			}
			return reaches(ctx, w, open, true)
		})
		return seen, err
	}
	return e, reaches(ctx, w, cuts, false)
}

func ways(n int) string {
	if n == 1 {
		return "1 way"
	}
	return fmt.Sprintf("%d ways", n)
}

// reaches sees that all ways are open, or that all are cut.
func reaches(ctx context.Context, w wires, cuts []Cut, open bool) error {
	errs := make([]error, len(cuts))
	var group sync.WaitGroup
	for i, c := range cuts {
		group.Go(func() {
			through, err := w.Reaches(ctx, c.From, c.To)
			switch {
			case err != nil:
				errs[i] = err
			case through && !open:
				errs[i] = fmt.Errorf("packets get from %s to %s although the way is cut", endpointName(c.From), endpointName(c.To))
			case !through && open:
				errs[i] = fmt.Errorf("no packet gets from %s to %s although the cut is healed", endpointName(c.From), endpointName(c.To))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func degrade(ctx context.Context, w wires, hosts []int, link Link) (Effect, error) {
	heals := make([]func() error, len(hosts))
	var errs []error
	for i, host := range hosts {
		heal, err := w.Shape(ctx, host, link)
		heals[i], errs = heal, append(errs, err)
	}
	e := Effect{Heal: func(ctx context.Context) (seen string, err error) {
		for _, heal := range heals {
			if heal != nil {
				err = errors.Join(err, until(ctx, heal))
			}
		}
		if err != nil {
			return "", err
		}
		err = untilFor(ctx, linkWithin, func() (err error) { seen, err = measure(ctx, w, hosts, link, false); return err })
		return seen, err
	}}
	err := errors.Join(errs...)
	if err == nil {
		e.Seen, err = measure(ctx, w, hosts, link, true)
	}
	return e, err
}

// measure sees from this program that all links are degraded, or that none is.
func measure(ctx context.Context, w wires, hosts []int, link Link, degraded bool) (string, error) {
	var texts []string
	for _, host := range hosts { // one after the other: they would be in each other's way
		is, text, err := link.seen(ctx, w, host)
		switch {
		case err != nil:
			return "", err
		case degraded && !is:
			return "", fmt.Errorf("the link of %s is not as asked: %s", endpointName(host), text)
		case !degraded && is:
			return "", fmt.Errorf("the link of %s is as bad as before its heal: %s", endpointName(host), text)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", "), nil
}

// seen tells whether a host's link is at least as bad as asked, and what was
// measured.
func (l Link) seen(ctx context.Context, w wires, host int) (bool, string, error) {
	switch {
	case l.Delay > 0:
		took, err := w.RoundTrip(ctx, Client, host)
		return took >= 2*(l.Delay-l.Jitter), fmt.Sprintf("round trip %v", took.Round(10*time.Microsecond)), err
	case l.Loss > 0:
		loss, err := w.Loss(ctx, Client, host, int(math.Ceil(lossesSeen/l.Loss)))
		return loss >= l.Loss/2, fmt.Sprintf("loss %v%%", math.Round(loss*1e4)/100), err
	default:
		rate, err := w.Throughput(ctx, Client, host, measureRate)
		return float64(rate) <= rateSlack*float64(l.Bandwidth), fmt.Sprintf("throughput %dB/s", rate), err
	}
}
