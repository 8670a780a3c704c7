package load

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes its goroutine precisely. The runtime's timers are rounded to the milliseconds of epoll_wait(2);
// a timerfd(2) wakes the poller about 50 µs late.
type alarm struct {
	file *os.File
	fd   int // of file, to set the timer; valid until close
	buf  [8]byte
}

// spinBelow is the longest wait that is spent yielding. It is about the processor time of sleeping and
// waking.
const spinBelow = 50 * time.Microsecond

// newAlarm returns nil if the system provides no timer.
func newAlarm() *alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	a := &alarm{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}
	if a.file.SetReadDeadline(time.Time{}) != nil {
		_ = a.file.Close()
		return nil
	}
	return a
}

// wait returns true after d, or false if it was cancelled.
func (a *alarm) wait(d time.Duration) bool {
	if d < spinBelow {
		for start := time.Now(); time.Since(start) < d; {
			runtime.Gosched()
		}
		return true
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(a.fd, 0, &spec, nil); err != nil {
		return false
	}
	_, err := a.file.Read(a.buf[:])
	return err == nil
}

// cancel ends the current wait and all later ones. Any goroutine may call it.
func (a *alarm) cancel() { _ = a.file.SetReadDeadline(time.Unix(1, 0)) }

func (a *alarm) close() { _ = a.file.Close() }
