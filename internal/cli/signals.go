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

// errInterrupted is the cause of a call that a person ended.
var errInterrupted = errors.New("interrupted: " + recordsLeft)

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

// session is a call that a person can end while it runs. It is a run.Progress: it
// passes on what it gets to the person and to those who watch from outside.
type session struct {
	ctx       context.Context
	interrupt chan struct{} // closed by the first signal during the load phase
	*progress
	feed *live.Feed // nil: nobody watches from outside
	stop func()
}

// Begin names the phase that begins.
func (s *session) Begin(phase string) {
	s.progress.Begin(phase)
	s.feed.Begin(phase)
}

// Show keeps how far the phase is.
func (s *session) Show(state run.State) {
	s.progress.Show(state)
	s.feed.Show(state)
}

// Fault shows a fault that was injected, and again when it was healed.
func (s *session) Fault(fault report.Fault) {
	s.progress.Fault(fault)
	s.feed.Fault(fault)
}

// Known keeps what is known of the run's result.
func (s *session) Known(r *report.Result) { s.feed.Known(r) }

// named shows in which directory the run is.
func (s *session) named(dir string) {
	s.note("run directory %s", dir)
	s.feed.Named(filepath.Base(dir))
}

// watched is begin for what can be watched from outside.
func (a *app) watched(l *liveServers) *session {
	s := a.begin()
	if l != nil {
		s.feed = l.feed
		l.open(s.note)
	}
	return s
}

// begin starts a session: the first SIGINT, SIGTERM or SIGHUP (a terminal that was
// closed) during the load phase ends that phase and lets the check go on; any other
// ends everything. That nobody reads what is printed any more is no reason to
// leave a cluster behind, so that SIGPIPE ends nothing.
func (a *app) begin() *session {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &session{ctx: ctx, interrupt: make(chan struct{}), progress: newProgress(a.stderr, a.terminal(a.stderr))}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	next := func() bool {
		select {
		case <-ctx.Done():
			return false
		case <-signals:
			return true
		}
	}
	go func() {
		came := next()
		if came && s.current() == "drive" {
			s.note("The load phase ends early and what it did is checked; once more ends everything.")
			close(s.interrupt)
			came = next()
		}
		if came {
			signal.Stop(signals) // one more ends the process
			cancel(errInterrupted)
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

// cause replaces the error of a call that a person ended by what is left of it.
func (s *session) cause(err error, left string) error {
	if err != nil && errors.Is(context.Cause(s.ctx), errInterrupted) {
		return &exitError{exitFailed, &interruption{left, err}}
	}
	return err
}
