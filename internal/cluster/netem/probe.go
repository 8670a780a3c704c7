package netem

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
	"syscall"
	"time"

	"stroppy/internal/cluster/wrap"
	"stroppy/internal/fault"
)

const (
	// probePace is the interval between probes.
	probePace = 20 * time.Millisecond
	// probeLimit is the time after which a probe is lost, in addition to the link's own delay. A packet crosses a
	// bridge in microseconds; the rest is a reserve for a busy machine.
	probeLimit = 200 * time.Millisecond
	// lossLimit is the time without an arrival after which the datagrams of a measurement of loss are lost.
	lossLimit = time.Second
	// roundTrips is of how many datagrams each way RoundTrip takes the median.
	roundTrips = 5
)

// Reaches reports whether packets pass from one place to another in this direction. It sends datagrams to a socket of
// its own there until one has arrived or a limit has passed.
func (n *Network) Reaches(ctx context.Context, from, to int) (bool, error) {
	took, err := n.send(ctx, "probe the network", from, to, datagrams{wanted: 1, most: math.MaxInt, burst: 1, pace: probePace})
	return len(took) > 0, err
}

// Loss sends count datagrams from one place to another and returns the share that did not arrive.
func (n *Network) Loss(ctx context.Context, from, to, count int) (float64, error) {
	took, err := n.send(ctx, "measure the loss", from, to, datagrams{
		wanted: count, most: count, burst: 20, ahead: 80, pace: lossLimit, // few enough for the socket's buffer
	})
	if err != nil {
		return 0, err
	}
	return 1 - float64(len(took))/float64(count), nil
}

// RoundTrip returns how long a datagram takes to another place and back: the sum of the medians of both directions.
// It returns an error if none arrives.
func (n *Network) RoundTrip(ctx context.Context, from, to int) (sum time.Duration, err error) {
	for _, way := range fault.Between(from, to) {
		took, err := n.send(ctx, "measure the round trip", way.From, way.To, datagrams{wanted: roundTrips, most: roundTrips, burst: 1, pace: probePace})
		if err != nil {
			return 0, err
		}
		if len(took) == 0 {
			return 0, fmt.Errorf("measure the round trip from %s to %s: nothing came back in time", endpointName(from), endpointName(to))
		}
		slices.Sort(took)
		sum += took[len(took)/2]
	}
	return sum, nil
}

// datagrams describe how to send until enough datagrams have arrived.
type datagrams struct {
	wanted, most int           // most bounds the number sent
	burst        int           // number sent at once
	ahead        int           // number sent before a burst that may still be on their way when the next burst follows
	pace         time.Duration // longest wait for an arrival before the next burst
}

// send sends datagrams and returns the travel times of those that arrived.
func (n *Network) send(ctx context.Context, what string, from, to int, d datagrams) (took []time.Duration, err error) {
	defer wrap.Error(&err, "%s from %s to %s", what, endpointName(from), endpointName(to))
	p, err := n.probe(ctx, from, to)
	if err != nil {
		return nil, err
	}
	defer p.close()
	return p.run(ctx, d)
}

func (p *probe) run(ctx context.Context, d datagrams) (took []time.Duration, err error) {
	limit := probeLimit + p.delay
	const nonceSize = 16
	text, buffer := make([]byte, nonceSize), make([]byte, 64)
	rand.Read(text)      // never fails, see crypto/rand
	var sent []time.Time // zero: it has arrived
	for end := time.Now().Add(limit); time.Now().Before(end) && len(took) < d.wanted; {
		first := len(sent)
		for burst := 0; burst < d.burst && len(sent) < d.most; burst++ {
			sent = append(sent, time.Now())
			if err := transmit(p.from, binary.BigEndian.AppendUint64(text, uint64(len(sent)-1)), p.to); err != nil {
				return nil, err
			}
			if d.most < math.MaxInt {
				end = time.Now().Add(limit)
			}
		}
		for err = ctx.Err(); err == nil && len(took) < min(len(sent), d.wanted); {
			_ = p.to.SetReadDeadline(time.Now().Add(d.pace))
			var size int
			if size, err = p.to.Read(buffer); err != nil || size != nonceSize+8 || string(buffer[:nonceSize]) != string(text) {
				continue
			}
			if i := binary.BigEndian.Uint64(buffer[nonceSize:]); i < uint64(len(sent)) && !sent[i].IsZero() {
				took = append(took, time.Since(sent[i]))
				sent[i] = time.Time{}
				if d.most < math.MaxInt {
					end = time.Now().Add(limit)
				}
				if len(sent) < d.most && int(i) >= first-d.ahead {
					break
				}
			}
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
	}
	return took, nil
}

// Throughput returns the bytes per second that one TCP connection carries from one place to another during a period.
func (n *Network) Throughput(ctx context.Context, from, to int, period time.Duration) (rate int64, err error) {
	defer wrap.Error(&err, "measure the throughput from %s to %s", endpointName(from), endpointName(to))
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
	const connectLimit = 5 * time.Second
	err = n.at(from, func() error {
		dialer := net.Dialer{Timeout: connectLimit, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))}
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
	delay    time.Duration // longest delay by the links between them
}

// endpoints returns the addresses of two places and the longest delay by the links between them.
func (n *Network) endpoints(from, to int) (source, sink netip.Addr, delay time.Duration, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.known(from, to); err != nil {
		return source, sink, 0, err
	}
	source, sink = loopbackAddr, loopbackAddr
	if n.backend != nil {
		source, sink = n.backend.addr(from), n.backend.addr(to)
	}
	for _, link := range []fault.Link{n.effective()[from], n.effective()[to]} {
		delay += link.Delay + link.Jitter
	}
	return source, sink, delay, nil
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
	// A first datagram in the other direction makes a stateful firewall at the receiver accept the sender.
	if err := transmit(p.to, nil, p.from); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// transmit sends a datagram. A refusal by the sender's own packet filter, or a missing route, counts as loss.
func transmit(from *net.UDPConn, text []byte, to *net.UDPConn) error {
	_, err := from.WriteToUDPAddrPort(text, to.LocalAddr().(*net.UDPAddr).AddrPort())
	for _, lost := range []error{syscall.EPERM, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENOBUFS} {
		if errors.Is(err, lost) {
			return nil
		}
	}
	return err
}

func (p *probe) close() { _ = errors.Join(p.from.Close(), p.to.Close()) }
