package netem

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

	"stroppy/internal/fault"
)

// wire carries frames between a host's port and its own device on the bridge. It delays frames and drops some. Both
// ends use frames with the virtio header (struct virtio_net_hdr). So the work that the sender left to the network
// card (checksums, segmentation) is still left when the frame goes on. See PACKET_VNET_HDR in packet(7) and
// IFF_VNET_HDR in the kernel's networking/tuntap.
type wire struct {
	index     int // of the port
	port, tap *os.File
	in, out   *delayLine // towards the host, and away from it
	readers   sync.WaitGroup
}

const (
	virtioHeader = 10 // bytes
	// maxFrame is the size in bytes of the largest IPv4 packet with its Ethernet frame and virtio header.
	maxFrame = virtioHeader + 14 + 65535
	// maxHeld and maxFrames bound the bytes and the frames that one direction delays. Frames beyond them are dropped,
	// as by a router with full buffers.
	maxHeld, maxFrames = 64 << 20, 1 << 16
	// queueShare bounds the time that a frame waits on a narrow link before it is dropped. A queue of at most
	// minQueue bytes is never dropped.
	queueShare = 5 // of a second, that is 200 ms
	minQueue   = 16 << 10
	// portBuffer is the size in bytes of the kernel's buffer for unread frames.
	portBuffer = 8 << 20

	// From linux/if_tun.h.
	tunCanChecksum, tunCanSegment4, tunCanSegment6 = 1, 2, 4
)

// newWire opens both ends. Neither carries frames before start. The calling thread must be in the switch's namespace.
func newWire(portIndex int, tapName string, link fault.Link) (*wire, error) {
	tap, err := openTap(tapName)
	if err != nil {
		return nil, fmt.Errorf("delay packets: this program cannot make a tap device of /dev/net/tun: %w", err)
	}
	port, err := openPort()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the host's link: %w", err), tap.Close())
	}
	return &wire{index: portIndex, port: port, tap: tap, in: newDelayLine(port, link, 0), out: newDelayLine(tap, link, 1)}, nil
}

func (w *wire) start() error {
	// close needs deadlines to stop the readers.
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

// openPort opens a packet socket that receives nothing before it is bound to a link.
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

func (w *wire) set(link fault.Link) {
	w.in.link.Store(&link)
	w.out.link.Store(&link)
}

// close stops reading, sends what is still delayed, and removes the wire.
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

// delayLine delays frames on their way to one end and keeps their order.
type delayLine struct {
	to      *os.File
	link    atomic.Pointer[fault.Link]
	random  *rand.Rand // used by the reader alone
	last    time.Time  // when the last frame is due; used by the reader alone
	free    time.Time  // when the narrow link is free again; used by the reader alone
	held    atomic.Int64
	frames  chan frame
	flush   chan struct{} // closed: nothing is delayed any more
	written chan struct{} // closed after the last frame is written
}

type frame struct {
	due   time.Time
	bytes []byte
}

func newDelayLine(to *os.File, link fault.Link, direction uint64) *delayLine {
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

// take schedules a frame or drops it.
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
	default: // dropped, as if memory were short
		d.held.Add(-int64(len(bytes)))
	}
}

// let writes each frame when it is due.
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

// write drops the frame if the end accepts no more, as a link does.
func (d *delayLine) write(bytes []byte) { _, _ = d.to.Write(bytes) }

// close writes all frames at once. The reader must have ended.
func (d *delayLine) close() {
	close(d.flush)
	close(d.frames)
	<-d.written
}
