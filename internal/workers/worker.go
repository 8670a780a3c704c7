package workers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"stroppy/internal/cluster/wait"
	"stroppy/internal/history"
	"stroppy/internal/load"
)

// statusEvery is the interval of a worker's progress reports.
const statusEvery = 100 * time.Millisecond

// hereEvery is the interval of a worker's signs of life.
const hereEvery = time.Second

// Worker holds what a process needs to be a worker.
type Worker struct {
	Version string // of the program, which is the coordinator's too
	Clock   Clock
	Folder  string        // for the recording, until the coordinator has it
	Host    string        // what people call this machine
	Index   int           // the number that it is to have, from 0; -1: any
	Wait    time.Duration // for the run to be there; 0: it is
	// Open opens a share of the clients.
	Open   func(ctx context.Context, a *Assignment) (*Opened, error)
	Joined func(number int) // called once it has joined; may be nil
}

// errEnded ends a worker whose coordinator is gone or ends it.
var errEnded = errors.New("the run has ended without this worker")

// session is a worker that has joined a run.
type session struct {
	*Worker
	*channel
	identity *identity
	address  string
	clock    ownClock
	welcome  welcome
	orders   chan *message
	sending  *sender
	sent     chan error  // what became of the upload
	over     atomic.Bool // the result was sent: an upload may go on over another connection
	lost     chan struct{}
}

// Join takes part in the run at address, and returns when the run has all results. Errors are reported to the
// run if possible.
func (w *Worker) Join(ctx context.Context, address, token string) error {
	identity, err := identityOf(token)
	if err != nil {
		return fmt.Errorf("join the run at %s: %w", address, err)
	}
	s := &session{Worker: w, identity: identity, address: address, clock: w.Clock.own(), orders: make(chan *message, 8), sent: make(chan error, 1), lost: make(chan struct{})}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.Close()
	if w.Joined != nil {
		w.Joined(s.welcome.Number)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go s.hear(ctx, cancel)
	go sayHere(ctx, s.channel)
	if s.welcome.Apart {
		go s.compareClock(ctx)
	}
	if err := s.work(ctx); err != nil {
		_ = s.send(&message{Failed: err.Error()})
		return err
	}
	return nil
}

// enter joins the run as soon as it is reachable.
func (s *session) enter(ctx context.Context) error {
	until := time.Now().Add(s.Wait)
	for {
		ch, err := s.identity.join(ctx, s.address)
		if err == nil {
			s.channel = ch
			return s.introduce()
		}
		if ctx.Err() != nil || errors.Is(err, errOther) || time.Now().After(until) {
			return err
		}
		_ = wait.Sleep(ctx, resumeEvery) // the next attempt reports the end of ctx
	}
}

// introduce introduces the worker and waits for the answer.
func (s *session) introduce() error {
	err := s.send(&message{Hello: &hello{Version: s.Version, PID: os.Getpid(), Host: s.Host, Clock: s.clock.name, Index: s.Index}})
	var m *message
	if err == nil {
		m, err = s.greeting()
	}
	switch {
	case err != nil:
		err = fmt.Errorf("no answer: the run may have another token, or no workers: %w", err)
	case m.Refused != "":
		err = fmt.Errorf("it refuses this worker: %s", m.Refused)
	case m.Welcome == nil:
		err = errors.New("the answer is not from a run: check the address")
	default:
		s.welcome = *m.Welcome
		return nil
	}
	_ = s.Close()
	return fmt.Errorf("join the run at %s: %w", s.address, err)
}

// further opens another connection to the run.
func (s *session) further(ctx context.Context, purpose purpose) (*channel, error) {
	ch, err := s.identity.join(ctx, s.address)
	if err != nil {
		return nil, err
	}
	if err := ch.send(&message{Hello: &hello{Version: s.Version, For: purpose, Key: s.welcome.Key}}); err != nil {
		_ = ch.Close()
		return nil, err
	}
	return ch, nil
}

// compareClock answers clock comparisons until ctx ends.
func (s *session) compareClock(ctx context.Context) {
	for ctx.Err() == nil {
		if ch, err := s.further(ctx, clockReadings); err == nil {
			stop := context.AfterFunc(ctx, func() { _ = ch.Close() })
			_ = s.clock.answer(ch)
			stop()
			_ = ch.Close()
		}
		_ = wait.Sleep(ctx, resumeEvery)
	}
}

// hear receives orders. The end of the connection is the end of the run, except during an upload.
func (s *session) hear(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		m, err := s.receive()
		if err != nil {
			if close(s.lost); !s.over.Load() || s.sending == nil {
				cancel(fmt.Errorf("%w: %w", errEnded, err))
			}
			return
		}
		select {
		case s.orders <- m:
		case <-ctx.Done():
			return
		}
	}
}

// sayHere sends signs of life until ctx ends. A worker or machine that has stopped is detected by its
// silence.
func sayHere(ctx context.Context, c *channel) {
	for wait.Sleep(ctx, hereEvery) == nil {
		_ = c.send(&message{}) // a lost connection ends the worker anyway
	}
}

// next waits for the next order.
func next(ctx context.Context, orders <-chan *message) (*message, error) {
	select {
	case m := <-orders:
		if m.Abort || m.Stop {
			return nil, errEnded
		}
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *session) work(ctx context.Context) (err error) {
	m, err := next(ctx, s.orders)
	if err != nil {
		return err
	}
	if m.Assign == nil {
		return fmt.Errorf("take a part of the run: it gave none")
	}
	part, err := s.Open(ctx, m.Assign)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, part.Close()) }()
	o := &part.Options
	if o.History, err = history.Create(filepath.Join(s.Folder, OwnFolder), part.Header, o.All+len(o.Background)); err != nil {
		return err
	}
	if err := s.send(&message{Ready: &ready{part.Header, part.Servers}}); err != nil {
		return err
	}
	m, err = next(ctx, s.orders)
	if err == nil && m.Start == nil {
		err = errors.New("begin the load phase: the run did not say when")
	}
	if err != nil {
		return errors.Join(err, o.History.Close())
	}
	complete := make(chan struct{})
	s.sending = &sender{path: filepath.Join(s.Folder, OwnFolder, history.FileName), complete: complete, limit: resumeLimit,
		connect: func(ctx context.Context) (*channel, error) { return s.further(ctx, uploads) }}
	if s.welcome.Stream {
		s.startSending(ctx)
	}
	if err := s.generate(ctx, part, m.Start); err != nil {
		return err
	}
	close(complete)
	return s.finish(ctx)
}

// startSending starts the upload.
func (s *session) startSending(ctx context.Context) {
	go func() { s.sent <- s.sending.run(ctx) }()
}

// finish waits until the coordinator has everything.
func (s *session) finish(ctx context.Context) error {
	whole, lost := false, s.lost
	for { // an order to stop may cross the result
		select {
		case m := <-s.orders:
			switch {
			case m.Done:
				return nil
			case m.Collect && !s.welcome.Stream:
				s.startSending(ctx)
			}
		case err := <-s.sent:
			if whole = err == nil; !whole {
				return err
			}
		case <-lost: // it was not needed any more, or the upload goes on
			lost = nil
			if !s.welcome.Stream && !whole {
				return errEnded
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if whole && lost == nil {
			return nil
		}
	}
}

// generate runs the worker's part of the load phase.
func (s *session) generate(ctx context.Context, part *Opened, begin *start) (err error) {
	o := part.Options
	o.Start = s.clock.base.Add(time.Duration(begin.At - s.clock.at))
	released, release := context.WithCancel(ctx)
	defer release()
	o.Connected = func(client int, at int64, server string) {
		_ = s.send(&message{Moved: &moved{client, at, server}}) // a lost connection ends the worker anyway
	}
	o.Ended = func() {
		_ = s.send(&message{Over: true})
		<-released.Done()
	}
	if err := wait.Sleep(ctx, time.Until(o.Start.Add(begin.In))); err != nil {
		return err
	}
	result, err := s.drive(ctx, load.New(o), release)
	err = errors.Join(err, o.History.Close())
	if result == nil {
		return err
	}
	sent := &message{Result: result}
	if err != nil {
		sent.Failed = err.Error()
	}
	s.over.Store(true)
	return s.send(sent)
}

// drive runs the driver, which the coordinator's orders end, and reports its progress.
func (s *session) drive(ctx context.Context, driver *load.Driver, release func()) (*load.Result, error) {
	driving, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ctx, driver.Abort)()
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		ticker := time.NewTicker(statusEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case m := <-s.orders:
				switch {
				case m.Stop:
					stop()
				case m.Abort:
					driver.Abort()
				case m.Release:
					release()
				}
			case <-ticker.C:
				snapshot := driver.Snapshot()
				_ = s.send(&message{Status: &snapshot})
			}
		}
	}()
	result, err := driver.Run(driving)
	close(ended)
	<-watched
	last := driver.Snapshot()
	return result, errors.Join(err, s.send(&message{Status: &last}))
}
