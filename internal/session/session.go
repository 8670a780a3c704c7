package session

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

	"stroppy/internal/exit"
	"stroppy/internal/fault"
	"stroppy/internal/live"
	"stroppy/internal/load"
	"stroppy/internal/registry"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
)

// ErrInterrupted is the cause of an interrupted call.
var ErrInterrupted = errors.New("interrupted: " + RecordsLeft)

// RecordsLeft, NothingLeft and HalfLeft describe what an interrupted call has left.
const (
	RecordsLeft = "the recording so far is kept"
	NothingLeft = "nothing was recorded"
	HalfLeft    = "the load is not finished"
)

// interruption is the error of an interrupted call. It wraps the failure that followed the interrupt.
type interruption struct {
	left string
	err  error
}

func (e *interruption) Error() string { return "interrupted: " + e.left }

func (e *interruption) Unwrap() error { return e.err }

// Session is a call that the user can interrupt. It is a run.Progress, and shows the progress to the user and, through
// its feed, to live pages.
type Session struct {
	Context   context.Context
	interrupt chan struct{} // closed by the first signal during the load phase
	*live.Feed
	*progress
	Stop func()
	dir  string // the shown run directory; empty: none was shown
	// loaded holds the URLs of the databases that this session has loaded.
	loaded map[string]bool
}

// Fault shows an injected fault, and shows it again after its heal.
func (s *Session) Fault(f fault.Record) {
	s.Feed.Fault(f)
	switch {
	case f.Error != "":
		s.Note("fault %d at %.1f s: %s was not injected: %s", f.Number, f.At.Seconds(), f.Fault, f.Error)
	case f.Skipped != "":
		s.Note("fault %d at %.1f s: %s was skipped: %s", f.Number, f.At.Seconds(), f.Fault, f.Skipped)
	case f.HealError != "":
		s.Note("fault %d: %s on %s was not healed: %s", f.Number, f.Fault, f.Target, f.HealError)
	case f.Healed != nil:
		s.Note("fault %d at %.1f s: healed", f.Number, f.Healed.Seconds())
	default:
		s.Note("fault %d at %.1f s: %s: %s", f.Number, f.At.Seconds(), f.Fault, f.Target)
	}
}

// Violation shows a violation that was found during the load phase.
func (s *Session) Violation(name, what string) {
	first, _, _ := strings.Cut(what, "\n")
	s.Note("violation of %s: %s", name, first)
}

// named shows the directory of the run.
func (s *Session) named(dir string) {
	s.Note("run directory %s", dir)
	s.Named(filepath.Base(dir))
	s.dir = dir
}

// unnamed reports that a directory was removed again, if named has shown it.
func (s *Session) unnamed(dir string) {
	if s.dir == dir {
		s.Note("the run directory is removed again: nothing was recorded")
	}
}

// Begin starts a session. The first SIGINT, SIGTERM or SIGHUP during the load phase ends that
// phase, and the check follows. A SIGHUP after the load phase (a closed terminal) ends nothing,
// because only the report is left. Every other signal ends everything. SIGPIPE ends nothing,
// because a closed pipe is no reason to leave a cluster behind.
func (a *App) Begin(feed *live.Feed) *Session {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &Session{Context: ctx, interrupt: make(chan struct{}), Feed: feed, progress: newProgress(a.notes(), a.Terminal(a.notes()), feed.Snapshot)}
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
			s.Note("The load phase ends early and is then checked. One more interrupt ends everything.")
			close(s.interrupt)
			came = next()
		}
		if came {
			signal.Stop(signals) // one more ends the process
			cancel(ErrInterrupted)
		}
	}()
	s.Stop = sync.OnceFunc(func() {
		signal.Stop(signals)
		signal.Reset(syscall.SIGPIPE)
		cancel(nil)
		s.progress.close()
	})
	return s
}

// announceChanges makes a load report the data that it replaces, unless this session has loaded them. Changes of tables
// that the user made need an agreement.
func (a *App) announceChanges(s *Session, w workload.Workload, config *Config) {
	if altering, ok := w.(workload.Altering); ok {
		altering.OnAlter(func(tables string) error {
			return a.agree(s, config, "the run adds columns to tables that stroppy did not make, "+tables, "these tables may be changed")
		})
	}
	url := config.DB
	if s.loaded[url] {
		return
	}
	w.OnOverwrite(func(what string) {
		s.Note("%s", what)
	})
	if s.loaded == nil {
		s.loaded = map[string]bool{}
	}
	s.loaded[url] = true
}

// checkable adds to the error of an interrupted run the command that checks its recording. If the database became
// unreachable, it shows the command as a note. The command names a database outside this process, whose end state can
// still be downloaded.
func (s *Session) checkable(err error, config *Config, dir string) error {
	command := "stroppy check " + scenario.Quote(dir)
	if config.DB != "" && !registry.Embedded(config.DB) {
		command += " --db " + config.Address()
	}
	var ended *interruption
	switch {
	case errors.As(err, &ended) && ended.left == RecordsLeft:
		ended.left += ": `" + command + "` checks it"
	case errors.Is(err, load.ErrUnreachable) && holdsHistory(dir):
		s.Note("%s", ToPaste("what was recorded is kept; once the database is back, check it", command))
	}
	return err
}

func holdsHistory(dir string) bool {
	_, err := run.Header(dir)
	return err == nil
}

// Cause replaces the error of an interrupted call by a description of what the call has left.
func (s *Session) Cause(err error, left string) error {
	if err != nil && errors.Is(context.Cause(s.Context), ErrInterrupted) {
		return exit.With(exit.Failed, &interruption{left, err})
	}
	return err
}
