package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// wire carries frames between a host's port and a device of its own on the
// bridge, holds each back for a while, and drops some. Both ends give and take frames with
// the header of virtio (struct virtio_net_hdr), so that what the sender left for
// the network card to do (checksums, cutting large segments) is still left when
// the frame goes on: see PACKET_VNET_HDR in packet(7) and IFF_VNET_HDR in the
// kernel's networking/tuntap.
type wire struct {
	index     int // of the port
	port, tap *os.File
	in, out   *delayLine // towards the host, away from it
	readers   sync.WaitGroup
}

const (
	virtioHeader = 10 // bytes
	// maxFrame is the largest IPv4 packet, with its frame and header.
	maxFrame = virtioHeader + 14 + 65535
	// maxHeld bounds the bytes that one direction holds back, and maxFrames the frames.
	// More are dropped, as a router drops what its memory does not hold.
	maxHeld, maxFrames = 64 << 20, 1 << 16
	// queueShare is how long a frame may wait for its turn on a narrow link before it
	// is dropped, unless no more bytes than minQueue wait.
	queueShare = 5 // of a second, that is 200 ms
	minQueue   = 16 << 10
	// The kernel's buffer for frames that were not read yet, in bytes.
	portBuffer = 8 << 20

	// From linux/if_tun.h.
	tunCanChecksum, tunCanSegment4, tunCanSegment6 = 1, 2, 4
)

// newWire opens both ends, of which none carries frames before start. The
// calling thread is in the switch's namespace.
func newWire(portIndex int, tapName string, link Link) (*wire, error) {
	tap, err := openTap(tapName)
	if err != nil {
		return nil, fmt.Errorf("packets can be held back only where this program may make a tap device of /dev/net/tun: %w", err)
	}
	port, err := openPort()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the host's link: %w", err), tap.Close())
	}
	return &wire{index: portIndex, port: port, tap: tap, in: newDelayLine(port, link, 0), out: newDelayLine(tap, link, 1)}, nil
}

func (w *wire) start() error {
	// close can stop a reader only where deadlines work.
	err := errors.Join(w.port.SetReadDeadline(time.Time{}), w.tap.SetReadDeadline(time.Time{}))
	raw, errRaw := w.port.SyscallConn()
	if err = errors.Join(err, errRaw); err == nil {
		all := binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL)
		address := unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(all), Ifindex: w.index}
		errControl := raw.Control(func(fd uintptr) { err = unix.Bind(int(fd), &address) })
		err = errors.Join(err, errControl)
	}
	if err != nil {
		return fmt.Errorf("open the host's link: %w", err)
	}
	w.readers.Go(func() { w.in.carry(w.tap) })
	w.readers.Go(func() { w.out.carry(w.port) })
	return nil
}

func openTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, tunCanChecksum|tunCanSegment4|tunCanSegment6)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

// openPort opens a packet socket that gets nothing before it is bound to a link.
func openPort() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, portBuffer),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, portBuffer),
	)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "packet socket"), nil
}

func (w *wire) set(link Link) {
	w.in.link.Store(&link)
	w.out.link.Store(&link)
}

// close stops reading, lets out what is held back, and takes the wire away.
func (w *wire) close() error {
	now := time.Now()
	if err := errors.Join(w.port.SetReadDeadline(now), w.tap.SetReadDeadline(now)); err != nil {
		return err
	}
	w.readers.Wait()
	limit := now.Add(time.Second)
	if err := errors.Join(w.port.SetWriteDeadline(limit), w.tap.SetWriteDeadline(limit)); err != nil {
		return err
	}
	w.in.close()
	w.out.close()
	return errors.Join(w.port.Close(), w.tap.Close())
}

// delayLine holds frames back on their way to one end, in order.
type delayLine struct {
	to      *os.File
	link    atomic.Pointer[Link]
	random  *rand.Rand // of the reader alone
	last    time.Time  // when the last frame is due; of the reader alone
	free    time.Time  // when a narrow link has sent what was taken; of the reader alone
	held    atomic.Int64
	frames  chan frame
	flush   chan struct{} // closed: nothing is held back any more
	written chan struct{} // closed when the last frame is out
}

type frame struct {
	due   time.Time
	bytes []byte
}

func newDelayLine(to *os.File, link Link, direction uint64) *delayLine {
	d := &delayLine{
		to: to, random: rand.New(rand.NewPCG(link.Seed, direction)),
		frames: make(chan frame, maxFrames), flush: make(chan struct{}), written: make(chan struct{}),
	}
	d.link.Store(&link)
	go d.let()
	return d
}

// carry reads frames from the other end until its deadline is set.
func (d *delayLine) carry(from *os.File) {
	buffer := make([]byte, maxFrame)
	for {
		size, err := from.Read(buffer)
		switch {
		case err == nil && size > virtioHeader:
			d.take(buffer[:size])
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, os.ErrClosed):
			return
		case err != nil:
			time.Sleep(time.Millisecond) // a frame that cannot be carried, or a link that is down
		}
	}
}

// take sets when a frame is due, or drops it.
func (d *delayLine) take(bytes []byte) {
	link, due := d.link.Load(), time.Now()
	if link.Loss > 0 && d.random.Float64() < link.Loss {
		return
	}
	if link.Bandwidth > 0 {
		lasts := func(bytes int64) time.Duration {
			return time.Duration(float64(bytes) / float64(link.Bandwidth) * float64(time.Second))
		}
		if wait := d.free.Sub(due); wait > lasts(max(minQueue, link.Bandwidth/queueShare)) {
			return
		} else if wait > 0 {
			due = d.free
		}
		due = due.Add(lasts(int64(len(bytes) - virtioHeader)))
		d.free = due
	}
	due = due.Add(link.Delay)
	if link.Jitter > 0 {
		due = due.Add(time.Duration(d.random.Int64N(2*int64(link.Jitter)+1)) - link.Jitter)
	}
	if due.Before(d.last) {
		due = d.last
	}
	d.last = due
	if d.held.Add(int64(len(bytes))) > maxHeld {
		d.held.Add(-int64(len(bytes)))
		return
	}
	select {
	case d.frames <- frame{due: due, bytes: append([]byte(nil), bytes...)}:
	default: // dropped, as for want of memory
		d.held.Add(-int64(len(bytes)))
	}
}

// let lets each frame out when it is due.
func (d *delayLine) let() {
	defer close(d.written)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for f := range d.frames {
		if wait := time.Until(f.due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-d.flush:
			}
		}
		d.write(f.bytes)
		d.held.Add(-int64(len(f.bytes)))
	}
}

// write loses the frame when the end takes no more, as a link does.
func (d *delayLine) write(bytes []byte) { _, _ = d.to.Write(bytes) }

// close lets all frames out at once. The reader has ended.
func (d *delayLine) close() {
	close(d.flush)
	close(d.frames)
	<-d.written
}
