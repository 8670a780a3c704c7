package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"stroppy/internal/live"
	"stroppy/internal/report"
	"stroppy/internal/run"
)

var errInterrupted error = interrupted{}

type interrupted struct{}

func (interrupted) Error() string { return "interrupted: " + recordsLeft }

// What is there after a call that a person ended.
const (
	recordsLeft = "what was recorded until then is kept"
	nothingLeft = "nothing was recorded"
	halfLeft    = "the load is not finished"
)

// interruption is the error of a call that a person ended. What failed then is no
// reason that anybody asks for, and is wrapped.
type interruption struct {
	left string
	err  error
}

func (e *interruption) Error() string { return "interrupted: " + e.left }
func (e *interruption) Unwrap() error { return e.err }

// session is what a person can end while it runs. It is a run.Onlooker: what it
// is told goes to the person and to those who look from outside.
type session struct {
	ctx       context.Context
	interrupt chan struct{} // closed by the first signal during the drive
	*progress
	feed *live.Feed // nil: nobody looks from outside
	stop func()
}

// Begin names the phase that begins.
func (s *session) Begin(phase string) {
	s.progress.Begin(phase)
	if s.feed != nil {
		s.feed.Begin(phase)
	}
}

// Show tells how far the phase is.
func (s *session) Show(state run.State) {
	s.progress.Show(state)
	if s.feed != nil {
		s.feed.Show(state)
	}
}

// Fault tells a fault that was injected, and again when it was healed.
func (s *session) Fault(f report.Fault) {
	s.progress.Fault(f)
	if s.feed != nil {
		s.feed.Fault(f)
	}
}

// Known tells what is known of the run's result.
func (s *session) Known(r *report.Result) {
	if s.feed != nil {
		s.feed.Known(r)
	}
}

// fresh begins another run.
func (s *session) fresh() {
	if s.feed != nil {
		s.feed.Fresh()
	}
}

// named tells in which directory the run is.
func (s *session) named(dir string) {
	s.note("run directory %s", dir)
	if s.feed != nil {
		s.feed.Named(filepath.Base(dir))
	}
}

// watched is begin for what can be looked at from outside.
func (a *app) watched(b *board) *session {
	s := a.begin()
	if b != nil {
		s.feed = b.feed
		b.open(s.note)
	}
	return s
}

// begin starts a session: the first SIGINT, SIGTERM or SIGHUP (a terminal that was
// closed) during the drive ends the drive and lets the check go on; any other
// ends everything. That nobody reads what is printed any more is no reason to
// leave a cluster behind, so that SIGPIPE ends nothing.
func (a *app) begin() *session {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &session{ctx: ctx, interrupt: make(chan struct{}), progress: newProgress(a.stderr, a.terminal(a.stderr))}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		first := true
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
			}
			if first && s.current() == "drive" {
				first = false
				s.note("The load phase ends early and what it did is checked; once more ends everything.")
				close(s.interrupt)
				continue
			}
			signal.Stop(signals) // one more ends the process
			cancel(errInterrupted)
			return
		}
	}()
	s.stop = sync.OnceFunc(func() {
		signal.Stop(signals)
		signal.Reset(syscall.SIGPIPE)
		cancel(nil)
		s.progress.close()
	})
	return s
}

// cause replaces the error of a call that a person ended, and tells what is left of
// it.
func (s *session) cause(err error, left string) error {
	if err != nil && errors.Is(context.Cause(s.ctx), errInterrupted) {
		return &exitError{exitFailed, &interruption{left, err}}
	}
	return err
}
