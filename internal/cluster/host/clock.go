package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"stroppy/internal/cluster/wait"
	"stroppy/internal/cluster/wrap"
	"stroppy/internal/fault"
)

// steering is the state of a Server's clock; guarded by the server's mu.
//
// libfaketime (https://github.com/wolfcw/libfaketime) intercepts the clock calls of the C library. Before each answer
// it reads a file, such as "+2.500000 x1.05". This clock is 2.5 s ahead of the machine's clock at the start of the
// process and runs 1.05 times as fast since then. The monotonic clock and the times of files are not changed.
type steering struct {
	why       error     // why the clock cannot be changed; nil if it can
	since     time.Time // start of the server's process
	deviation deviation
}

// deviation is the difference between a clock and the machine's clock.
type deviation struct {
	ahead time.Duration // at from
	from  time.Time
	drift float64 // seconds gained per second after from
}

// line returns the file content for libfaketime in a process that was started at since.
func (d deviation) line(since time.Time) string {
	ahead := d.ahead + time.Duration(d.drift*float64(since.Sub(d.from)))
	return fmt.Sprintf("%+.6f x%s\n", ahead.Seconds(), strconv.FormatFloat(1+d.drift, 'f', -1, 64))
}

// clockFile returns the path of the file that libfaketime reads.
func (s *Server) clockFile() string {
	return filepath.Join(filepath.Dir(s.log), "."+s.Name()+".clock")
}

// writeClock replaces the file atomically; mu is held.
func (s *Server) writeClock() error {
	draft := s.clockFile() + ".new"
	if err := os.WriteFile(draft, []byte(s.deviation.line(s.since)), 0o644); err != nil {
		return err
	}
	return os.Rename(draft, s.clockFile())
}

// preload sets libfaketime in the environment of the command, if the program wants it and it can be used.
func (s *Server) preload(cmd *exec.Cmd) error {
	if !s.program.Clock {
		return nil
	}
	library, why := steerable(cmd.Path)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.why = why
	if why != nil {
		return nil // a clock fault reports the reason
	}
	s.since = time.Now()
	if err := s.writeClock(); err != nil {
		return fmt.Errorf("write the clock file: %w", err)
	}
	cmd.Env = append(cmd.Environ(), "LD_PRELOAD="+library,
		"FAKETIME_TIMESTAMP_FILE="+s.clockFile(), "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1", "FAKE_UTIME=0")
	return nil
}

// recordShared records what a process may leave in /dev/shm if this program is killed.
func (s *Server) recordShared(p *Process) error {
	if !s.program.Clock || s.host == nil {
		return nil
	}
	return s.host.record.Add(Leftover{Kind: LeftShared, PID: p.PID(), Start: p.id().start})
}

// Steered returns why the node's clock cannot be changed, or nil if it can.
func (s *Server) Steered() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.program.Clock:
		return errors.New("its cluster was started on the machine's own clock")
	case s.program.Now == nil:
		return errors.New("this kind of server cannot be asked for its time, so the fault could not be verified")
	case s.why != nil:
		return s.why
	}
	return nil
}

// steer returns a Put that applies a deviation to the node's clock.
func (s *Server) steer(d deviation) Put {
	set := func(d deviation, wrong error) (err error) {
		defer wrap.Error(&err, "change the clock of %s", s.Name())
		if wrong != nil {
			return wrong
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.deviation = d
		return s.writeClock()
	}
	return func(context.Context) (func(context.Context) error, error) {
		return func(context.Context) error { return set(deviation{}, nil) }, set(d, s.Steered())
	}
}

// Now returns the server's own time.
func (s *Server) Now(ctx context.Context) (time.Time, error) {
	if s.program.Now == nil {
		return time.Time{}, fmt.Errorf("ask %s for its time: this kind of server cannot be asked", s.Name())
	}
	return s.program.Now(ctx)
}

func (s *Server) removeClock() error {
	if !s.program.Clock {
		return nil
	}
	return os.RemoveAll(s.clockFile())
}

// Clocked is a node whose clock can be read.
type Clocked interface {
	Name() string
	Awake() bool // the server can answer
	Now(ctx context.Context) (time.Time, error)
}

// Put applies a deviation to a clock until heal is called.
type Put func(ctx context.Context) (heal func(ctx context.Context) error, err error)

// driftWithin bounds the time for measuring the rate of a clock.
const driftWithin = 10 * time.Second

// JumpClock moves the node's clock forward by a duration, or back if it is negative. It verifies the fault and the
// heal by asking the server for its time.
func (s *Server) JumpClock(ctx context.Context, by time.Duration) (fault.Effect, error) {
	return JumpClock(ctx, s, by, s.steer(deviation{ahead: by, from: time.Now()}))
}

// DriftClock makes the node's clock run at a rate from now on. It verifies the rate by asking the server for its
// time. The heal verifies that the clock is right and stays right.
func (s *Server) DriftClock(ctx context.Context, rate float64) (fault.Effect, error) {
	return driftClock(ctx, s, rate, s.steer(driftOf(rate)))
}

// JumpClock moves the clock of a node by a duration through put. It verifies the fault and the heal by asking the
// server for its time.
func JumpClock(ctx context.Context, c Clocked, by time.Duration, put Put) (fault.Effect, error) {
	e, before, after, err := deviate(ctx, c, put, by.Abs())
	if err != nil {
		return e, err
	}
	moved := after.ahead - before.ahead
	e.Seen = "clock moved by " + moved.Round(time.Millisecond).String()
	if off := (moved - by).Abs(); off > by.Abs()/2+after.sure+before.sure {
		return e, fmt.Errorf("the clock of %s moved by %[3]s instead of %[2]v", c.Name(), by, moved.Round(time.Millisecond))
	}
	return e, nil
}

// driftOf returns the deviation of a clock that runs at a rate from now on.
func driftOf(rate float64) deviation { return deviation{from: time.Now(), drift: rate - 1} }

func driftClock(ctx context.Context, c Clocked, rate float64, put Put) (fault.Effect, error) {
	least := time.Duration(math.Abs(rate-1) * float64(time.Second))
	e, _, first, err := deviate(ctx, c, put, least)
	if err != nil {
		return e, err
	}
	err = wait.Until(ctx, driftWithin, func() error {
		last, err := offsetOf(ctx, c)
		if err != nil {
			return err
		}
		passed, unsure := last.at.Sub(first.at), last.sure+first.sure
		asked := time.Duration((rate - 1) * float64(passed))
		drift := last.ahead - first.ahead
		e.Seen = fmt.Sprintf("clock drifted by %s in %s", drift.Round(time.Millisecond), passed.Round(time.Millisecond))
		if passed < time.Second || asked.Abs() < 4*unsure || (drift-asked).Abs() > asked.Abs()/2 {
			return fmt.Errorf("the clock of %s does not run at rate %s: %s", c.Name(), strconv.FormatFloat(rate, 'f', -1, 64), e.Seen)
		}
		return nil
	})
	return e, err
}

// deviate changes a clock and returns its offsets before and after. The heal of the effect verifies that the clock is
// within half of least of its first offset.
func deviate(ctx context.Context, c Clocked, put Put, least time.Duration) (e fault.Effect, before, after offset, err error) {
	if before, err = offsetOf(ctx, c); err != nil {
		return e, before, after, err
	}
	heal, err := put(ctx)
	if err != nil {
		return e, before, after, err
	}
	right := func(ctx context.Context) (string, error) {
		if !c.Awake() {
			return "the server is down or paused, and continues with a right clock", nil
		}
		now, err := offsetOf(ctx, c)
		if err != nil {
			return "", err
		}
		wrong := now.ahead - before.ahead
		if wrong.Abs() > least/2+now.sure+before.sure {
			return "", fmt.Errorf("the clock of %s is wrong by %s after its heal", c.Name(), wrong.Round(time.Millisecond))
		}
		return "clock right to " + wrong.Abs().Round(time.Millisecond).String(), nil
	}
	e.Heal = func(ctx context.Context) (string, error) {
		return wait.Healing(wait.SeenWithin, func() error { return heal(ctx) }, right)(ctx)
	}
	after, err = offsetOf(ctx, c)
	return e, before, after, err
}

// offset is the lead of a node's clock over this program's clock.
type offset struct {
	ahead time.Duration
	sure  time.Duration // error bound of ahead: half the time of the query
	at    time.Time
}

func offsetOf(ctx context.Context, c Clocked) (offset, error) {
	asked := time.Now()
	now, err := c.Now(ctx)
	took := time.Since(asked)
	if err != nil {
		return offset{}, fmt.Errorf("ask %s for its time: %w", c.Name(), err)
	}
	middle := asked.Add(took / 2)
	return offset{ahead: now.Round(0).Sub(middle.Round(0)), sure: took / 2, at: middle}, nil
}

// forgetShared removes the files in /dev/shm that libfaketime leaves of a killed process, and reports whether there
// were any. Child processes learn the clock from this semaphore and shared memory. Call forgetShared only after the
// process has ended: a running program would create the files again and leave them.
func forgetShared(pid int) (was bool) {
	for _, name := range []string{"faketime_shm_", "sem.faketime_sem_"} {
		if os.Remove("/dev/shm/"+name+strconv.Itoa(pid)) == nil { // absent if the clock is not steered
			was = true
		}
	}
	return was
}
