package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"stroppy/internal/live"
	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
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

// session is a call that a person can end while it runs. It is a run.Progress: what
// its feed gets is shown to the person, and to those who watch from outside.
type session struct {
	ctx       context.Context
	interrupt chan struct{} // closed by the first signal during the load phase
	*live.Feed
	*progress
	stop func()
	dir  string // that was shown as the run's; empty: none was
	// loaded are the databases that runs of this session have loaded, by URL.
	loaded map[string]bool
}

// Fault shows a fault that was injected, and again when it was healed.
func (s *session) Fault(f report.Fault) {
	s.Feed.Fault(f)
	switch {
	case f.Error != "":
		s.note("fault %d at %.1f s: %s was not injected: %s", f.Number, f.AtSeconds, f.Fault, f.Error)
	case f.Skipped != "":
		s.note("fault %d at %.1f s: %s was skipped: %s", f.Number, f.AtSeconds, f.Fault, f.Skipped)
	case f.HealError != "":
		s.note("fault %d: %s on %s was not healed: %s", f.Number, f.Fault, f.Target, f.HealError)
	case f.HealedSeconds != nil:
		s.note("fault %d at %.1f s: healed", f.Number, *f.HealedSeconds)
	default:
		s.note("fault %d at %.1f s: %s: %s", f.Number, f.AtSeconds, f.Fault, f.Target)
	}
}

// Violation shows that a check has found one while the load phase goes on.
func (s *session) Violation(name, what string) {
	first, _, _ := strings.Cut(what, "\n")
	s.note("violation of %s: %s", name, first)
}

// named shows in which directory the run is.
func (s *session) named(dir string) {
	s.note("run directory %s", dir)
	s.Named(filepath.Base(dir))
	s.dir = dir
}

// unnamed takes that back of a directory that was removed again, if it was shown.
func (s *session) unnamed(dir string) {
	if s.dir == dir {
		s.note("the run directory is removed again: nothing was recorded")
	}
}

// begin starts a session of a feed: the first SIGINT, SIGTERM or SIGHUP (a terminal that was
// closed) during the load phase ends that phase and lets the check go on, and so does a
// SIGHUP after it, when nothing but the report is left to be made; any other ends everything. That nobody reads what is printed any more is no reason to
// leave a cluster behind, so that SIGPIPE ends nothing.
func (a *app) begin(feed *live.Feed) *session {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &session{ctx: ctx, interrupt: make(chan struct{}), Feed: feed, progress: newProgress(a.notes(), a.terminal(a.notes()), feed.Snapshot)}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	closed := false // the terminal: a shell passes that on, and the kernel repeats it when the shell ends
	next := func() bool {
		for {
			select {
			case <-ctx.Done():
				return false
			case came := <-signals:
				again := closed && came == syscall.SIGHUP
				if closed = closed || came == syscall.SIGHUP; !again {
					return true
				}
			}
		}
	}
	go func() {
		came := next()
		if now := s.Snapshot(); came && (now.Phase == live.PhaseDrive || closed && slices.Contains(now.Phases, live.PhaseDrive)) {
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

// reportOverwrite has a load report what it replaces, unless a run of this session has loaded that.
func (s *session) reportOverwrite(w workload.Workload, url string) {
	if s.loaded[url] {
		return
	}
	w.OnOverwrite(func(what string) {
		s.note("%s", what)
	})
	if s.loaded == nil {
		s.loaded = map[string]bool{}
	}
	s.loaded[url] = true
}

// checkable adds to the error of a run that a person ended, and that left a recording, the
// command that checks it, and notes that command where the database went away. What runs
// outside this process is named, because its end state can still be downloaded.
func (s *session) checkable(err error, config *config, dir string) error {
	command := "stroppy check " + scenario.Quote(dir)
	if config.DB != "" && !embedded(config.DB) {
		command += " --db " + config.Address()
	}
	var ended *interruption
	switch {
	case errors.As(err, &ended) && ended.left == recordsLeft:
		ended.left += ": `" + command + "` checks it"
	case errors.Is(err, load.ErrUnreachable) && holdsHistory(dir):
		s.note("%s", toPaste("what was recorded is kept; once the database is back, check it", command))
	}
	return err
}

func holdsHistory(dir string) bool {
	_, err := run.Header(dir)
	return err == nil
}

// cause replaces the error of a call that a person ended by what is left of it.
func (s *session) cause(err error, left string) error {
	if err != nil && errors.Is(context.Cause(s.ctx), errInterrupted) {
		return &exitError{exitFailed, &interruption{left, err}}
	}
	return err
}
