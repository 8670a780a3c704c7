package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// blocking is a TCP connection whose reader waits in the system call, on its own thread, and not in Go's
// poller. The kernel wakes that thread next to the server's process that has answered. With the poller, one
// thread takes all answers in sequence.
//
// One goroutine may read while another one writes, but not two of the same kind.
type blocking struct {
	file          *os.File // the socket, which the poller does not know
	raw           syscall.RawConn
	local, remote net.Addr

	in, out       transfer
	reads, writes deadline
	closed        atomic.Bool

	// These fields belong to the reader.
	limit time.Duration // of one system call, the socket's SO_RCVTIMEO
	seen  int64         // the deadline that it is for
}

// longestCall is the time after which a system call looks at its deadline again, because another goroutine
// may have moved it forward. The end of a wait may be late by this time.
const longestCall = 100 * time.Millisecond

// deadline is the end of waiting, in nanoseconds after start. Any goroutine may set it.
type deadline struct{ at atomic.Int64 }

// These are special values: no deadline, one that had passed when it was set, and one that no connection has.
const (
	never  = 0
	passed = -1
	unseen = -2
)

var start = time.Now()

func (d *deadline) set(t time.Time) {
	switch left := time.Until(t); {
	case t.IsZero():
		d.at.Store(never)
	case left <= 0:
		d.at.Store(passed)
	default:
		d.at.Store(int64(time.Since(start) + left))
	}
}

// left returns how long the next system call may wait. 0 means that the deadline has passed.
func (d *deadline) left() time.Duration {
	switch at := d.at.Load(); at {
	case never:
		return longestCall
	case passed:
		return 0
	default:
		return max(0, min(longestCall, time.Duration(at)-time.Since(start)))
	}
}

// Block converts an unused connection of Dial to one whose reader waits in the system call. It is meant for
// few connections with short calls in quick sequence. Each uses a thread while it waits, and all processors
// must be available to Go code (GOMAXPROCS). Other connections, such as those with TLS, are returned
// unchanged. After an error, conn is closed.
func Block(conn net.Conn) (net.Conn, error) {
	d, ok := conn.(*direct)
	if !ok {
		return conn, nil
	}
	b := &blocking{local: d.LocalAddr(), remote: d.RemoteAddr(), seen: unseen}
	b.in, b.out = transfer{op: "read", number: unix.SYS_RECVFROM}, transfer{op: "write", number: unix.SYS_SENDTO, flags: unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT}
	b.in.try, b.out.try = b.receive, b.send
	var err error
	taken := d.raw.Control(func(fd uintptr) { b.file, err = duplicate(int(fd)) })
	if err = errors.Join(taken, err, d.Close()); err == nil {
		b.raw, err = b.file.SyscallConn()
	}
	if err != nil {
		if b.file != nil {
			b.file.Close()
		}
		return nil, err
	}
	return b, nil
}

// duplicate returns another descriptor of the socket, whose calls block from then on.
func duplicate(fd int) (*os.File, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	if err := unix.SetNonblock(own, false); err != nil { // before NewFile, which else gives it to the poller
		unix.Close(own)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(own), "tcp"), nil
}

// Blocks reports whether the reader of a connection waits in the system call.
func Blocks(conn net.Conn) bool {
	_, ok := conn.(*blocking)
	return ok
}

func (b *blocking) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := b.carryOut(b.raw.Read, &b.in, p); err != nil {
		return 0, err
	}
	switch {
	case b.in.done > 0:
		return b.in.done, nil
	case b.closed.Load():
		return 0, failed(b, b.in.op, net.ErrClosed)
	}
	return 0, io.EOF
}

func (b *blocking) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		if err := b.carryOut(b.raw.Write, &b.out, p[written:]); err != nil {
			return written, err
		}
		written += b.out.done
	}
	return written, nil
}

// carryOut performs a transfer with the socket, which is not closed meanwhile.
func (b *blocking) carryOut(with func(func(fd uintptr) bool) error, t *transfer, p []byte) error {
	t.rest, t.done, t.err, t.late = p, 0, 0, false
	unused := with(t.try)
	t.rest = nil
	switch {
	case unused != nil:
		return failed(b, t.op, net.ErrClosed)
	case t.late:
		return failed(b, t.op, os.ErrDeadlineExceeded)
	case t.err != 0:
		return failed(b, t.op, os.NewSyscallError(t.op, t.err))
	}
	return nil
}

// receive waits for data. The scheduler knows of the system call and gives its processor to others.
func (b *blocking) receive(fd uintptr) bool {
	t := &b.in
	if at := b.reads.at.Load(); at != b.seen || at == passed {
		b.seen = at
		if !b.mayWait(fd) {
			return true
		}
	}
	for {
		n, _, err := syscall.Syscall6(t.number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.rest))), uintptr(len(t.rest)), t.flags, 0, 0)
		switch err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			if !b.mayWait(fd) {
				return true
			}
		default:
			t.done, t.err = max(0, int(n)), err
			return true
		}
	}
}

// mayWait limits the next system call, or records that the deadline has passed.
func (b *blocking) mayWait(fd uintptr) bool {
	limit := b.reads.left()
	if b.in.late = limit <= 0; b.in.late {
		return false
	}
	if limit = max(limit, time.Millisecond); limit == b.limit { // of 0 the kernel waits for ever
		return true
	}
	given := unix.NsecToTimeval(int64(limit))
	if err := unix.SetsockoptTimeval(int(fd), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &given); err != nil {
		b.in.err, _ = err.(syscall.Errno)
		return false
	}
	b.limit = limit
	return true
}

// send waits for room if there is none. The scheduler does not know of calls that do not wait, as in direct.
func (b *blocking) send(fd uintptr) bool {
	t := &b.out
	if t.late = b.writes.at.Load() == passed; t.late {
		return true
	}
	for !t.attempt(fd) {
		limit := b.writes.left()
		if t.late = limit <= 0; t.late {
			return true
		}
		room := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if _, err := unix.Poll(room, int(max(limit, time.Millisecond).Milliseconds())); err != nil && err != unix.EINTR {
			t.done, t.err = 0, err.(syscall.Errno)
			return true
		}
	}
	return true
}

// RoundTrip writes the question. The reader waits for the answer.
func (b *blocking) RoundTrip(question []byte) (int, error) { return b.Write(question) }

// Close ends waiting calls of other goroutines.
func (b *blocking) Close() error {
	if b.closed.Swap(true) {
		return failed(b, "close", net.ErrClosed)
	}
	_ = b.raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) }) // nothing is lost that Close would not lose
	return b.file.Close()
}

func (b *blocking) SetDeadline(t time.Time) error {
	return errors.Join(b.SetReadDeadline(t), b.SetWriteDeadline(t))
}

func (b *blocking) SetReadDeadline(t time.Time) error {
	b.reads.set(t)
	return nil
}

func (b *blocking) SetWriteDeadline(t time.Time) error {
	b.writes.set(t)
	return nil
}

func (b *blocking) LocalAddr() net.Addr  { return b.local }
func (b *blocking) RemoteAddr() net.Addr { return b.remote }

// SyscallConn returns the socket, whose calls block unless MSG_DONTWAIT is given (recv(2)).
func (b *blocking) SyscallConn() (syscall.RawConn, error) { return b.raw, nil }
