package cluster

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
)

// steering is what a Server knows of its clock; guarded by its mu.
//
// libfaketime (https://github.com/wolfcw/libfaketime) comes between the server
// and the C library's clocks. Before each answer it reads a file, such as
// "+2.500000 x1.05": a clock that is 2.5 s ahead of the machine's at the start of
// the process, and runs 1.05 times as fast since. The monotonic clock stays as it
// is, and so do the times of files.
type steering struct {
	why       error     // it is not steered
	since     time.Time // of the server's process
	deviation deviation
}

// deviation is how a clock differs from the machine's.
type deviation struct {
	ahead time.Duration // at from
	from  time.Time
	drift float64 // is gained in each second after from, in seconds
}

// line is what libfaketime reads for a process that was started at since.
func (d deviation) line(since time.Time) string {
	ahead := d.ahead + time.Duration(d.drift*float64(since.Sub(d.from)))
	return fmt.Sprintf("%+.6f x%s\n", ahead.Seconds(), strconv.FormatFloat(1+d.drift, 'f', -1, 64))
}

// clockFile says what time it is to the server.
func (s *Server) clockFile() string {
	return filepath.Join(filepath.Dir(s.log), "."+s.Name()+".clock")
}

// writeClock writes the file; mu is held. The server reads the old one or the new
// one, never a part.
func (s *Server) writeClock() error {
	draft := s.clockFile() + ".new"
	if err := os.WriteFile(draft, []byte(s.deviation.line(s.since)), 0o644); err != nil {
		return err
	}
	return os.Rename(draft, s.clockFile())
}

// preload puts libfaketime between the command and the clock, if there has to be
// one and it can.
func (s *Server) preload(cmd *exec.Cmd) error {
	if !s.program.Clock {
		return nil
	}
	library, why := steerable(cmd.Path)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.why = why
	if why != nil {
		return nil // a fault of the clock will say so
	}
	s.since = time.Now()
	if err := s.writeClock(); err != nil {
		return fmt.Errorf("say what time it is: %w", err)
	}
	cmd.Env = append(cmd.Environ(), "LD_PRELOAD="+library,
		"FAKETIME_TIMESTAMP_FILE="+s.clockFile(), "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1", "FAKE_UTIME=0")
	return nil
}

// forgetShared removes what libfaketime leaves in /dev/shm of a process that was killed, and says
// whether it was there: a semaphore and a memory by which the programs that the process starts
// know its clock. It is called when the process has ended, because a program that finds them
// removed makes its own, and leaves them.
func forgetShared(pid int) (was bool) {
	for _, name := range []string{"faketime_shm_", "sem.faketime_sem_"} {
		if os.Remove("/dev/shm/"+name+strconv.Itoa(pid)) == nil { // it is not there if the clock is not steered
			was = true
		}
	}
	return was
}

// recordShared notes what a process may leave in /dev/shm if this program is killed.
func (s *Server) recordShared(p *Process) error {
	if !s.program.Clock || s.host == nil {
		return nil
	}
	return s.host.network.record.Add(Leftover{Kind: LeftShared, PID: p.PID(), Start: p.id().start})
}

// Steered says why the node's clock cannot be steered, nil if it can.
func (s *Server) Steered() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.program.Clock:
		return errors.New("its cluster was started on the machine's own clock")
	case s.program.Now == nil:
		return errors.New("nobody can ask this kind of server what time it is, so nobody could see what becomes of its clock")
	case s.why != nil:
		return s.why
	case s.since.IsZero() && !s.planned:
		return errors.New("it has never been started")
	}
	return nil
}

// steer makes the node's clock deviate until heal.
func (s *Server) steer(d deviation) (heal func() error, err error) {
	if err := s.Steered(); err != nil {
		return nil, fmt.Errorf("steer the clock of %s: %w", s.Name(), err)
	}
	set := func(d deviation) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.deviation = d
		if err := s.writeClock(); err != nil {
			return fmt.Errorf("steer the clock of %s: %w", s.Name(), err)
		}
		return nil
	}
	return func() error { return set(deviation{}) }, set(d)
}

// Now is the time that the server says it is.
func (s *Server) Now(ctx context.Context) (time.Time, error) {
	if s.program.Now == nil {
		return time.Time{}, fmt.Errorf("ask %s what time it is: nobody can ask this kind of server", s.Name())
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
	Awake() bool // it can be asked
	Now(ctx context.Context) (time.Time, error)
}

// clockwork is a clock that can be changed and read.
type clockwork interface {
	Clocked
	steer(d deviation) (heal func() error, err error)
}

// Put makes a clock deviate until heal.
type Put func(ctx context.Context) (heal func(ctx context.Context) error, err error)

// steerTo makes a clockwork deviate.
func steerTo(c clockwork, d deviation) Put {
	return func(context.Context) (func(context.Context) error, error) {
		heal, err := c.steer(d)
		return func(context.Context) error { return heal() }, err
	}
}

// driftWithin bounds the time that it takes to measure the rate of a clock.
const driftWithin = 10 * time.Second

// JumpClock puts the node's clock forward by a time, or back by a negative one, and
// asks the server what time it is: before it, after it, and after the heal.
func (s *Server) JumpClock(ctx context.Context, by time.Duration) (Effect, error) {
	return JumpClock(ctx, s, by, steerTo(s, deviation{ahead: by, from: time.Now()}))
}

// DriftClock makes the node's clock run so many times as fast as it should, from now on.
// It watches the server's time for long enough to measure its rate, and sees after the
// heal that the clock is right and stays so.
func (s *Server) DriftClock(ctx context.Context, rate float64) (Effect, error) {
	return driftClock(ctx, s, rate)
}

// JumpClock puts the clock of a node forward by a time, or back by a negative one, by what put
// does, and asks the server what time it is: before it, after it, and after the heal.
func JumpClock(ctx context.Context, c Clocked, by time.Duration, put Put) (Effect, error) {
	e, before, after, err := deviate(ctx, c, put, by.Abs())
	if err != nil {
		return e, err
	}
	moved := after.ahead - before.ahead
	e.Seen = "clock moved by " + moved.Round(time.Millisecond).String()
	if off := (moved - by).Abs(); off > by.Abs()/2+after.sure+before.sure {
		return e, fmt.Errorf("the clock of %s was to jump by %v and moved by %s", c.Name(), by, moved.Round(time.Millisecond))
	}
	return e, nil
}

func driftClock(ctx context.Context, c clockwork, rate float64) (Effect, error) {
	least := time.Duration(math.Abs(rate-1) * float64(time.Second))
	e, _, first, err := deviate(ctx, c, steerTo(c, deviation{from: time.Now(), drift: rate - 1}), least)
	if err != nil {
		return e, err
	}
	err = Until(ctx, driftWithin, func() error {
		last, err := offsetOf(ctx, c)
		if err != nil {
			return err
		}
		passed, unsure := last.at.Sub(first.at), last.sure+first.sure
		asked := time.Duration((rate - 1) * float64(passed))
		drift := last.ahead - first.ahead
		e.Seen = fmt.Sprintf("clock drifted by %s in %s", drift.Round(time.Millisecond), passed.Round(time.Millisecond))
		if passed < time.Second || asked.Abs() < 4*unsure || (drift-asked).Abs() > asked.Abs()/2 {
			return fmt.Errorf("the clock of %s was to run at rate %s; %s", c.Name(), strconv.FormatFloat(rate, 'f', -1, 64), e.Seen)
		}
		return nil
	})
	return e, err
}

// deviate changes a clock and returns its offsets before and after. The heal of the
// effect sees that the clock is where it was before: nearer than half of least.
func deviate(ctx context.Context, c Clocked, put Put, least time.Duration) (e Effect, before, after offset, err error) {
	if before, err = offsetOf(ctx, c); err != nil {
		return e, before, after, err
	}
	heal, err := put(ctx)
	if err != nil {
		return e, before, after, err
	}
	right := func(ctx context.Context) (string, error) {
		if !c.Awake() {
			return "the server, which is down or paused, goes on with a right clock", nil
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
		return healing(SeenWithin, func() error { return heal(ctx) }, right)(ctx)
	}
	after, err = offsetOf(ctx, c)
	return e, before, after, err
}

// offset is how far a node's clock was ahead of this program's.
type offset struct {
	ahead time.Duration
	sure  time.Duration // ahead may be wrong by this, for the question took time
	at    time.Time
}

func offsetOf(ctx context.Context, c Clocked) (offset, error) {
	asked := time.Now()
	now, err := c.Now(ctx)
	took := time.Since(asked)
	if err != nil {
		return offset{}, fmt.Errorf("ask %s what time it is: %w", c.Name(), err)
	}
	middle := asked.Add(took / 2)
	return offset{ahead: now.Round(0).Sub(middle.Round(0)), sure: took / 2, at: middle}, nil
}
