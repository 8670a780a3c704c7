package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

var errInterrupted error = interrupted{}

type interrupted struct{}

func (interrupted) Error() string { return "interrupted: what was recorded until then is kept" }

// session is what a person can end while it runs.
type session struct {
	ctx       context.Context
	interrupt chan struct{} // closed by the first signal during the drive
	*progress
	stop func()
}

// begin starts a session: the first SIGINT or SIGTERM during the drive ends the
// drive and lets the check go on; any other ends everything.
func (a *app) begin() *session {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &session{ctx: ctx, interrupt: make(chan struct{}), progress: newProgress(a.stderr, a.terminal(a.stderr))}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
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
				s.note("The drive ends early and what it did is checked; once more ends everything.")
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
		cancel(nil)
		s.progress.close()
	})
	return s
}

// cause replaces the error of a run that a person ended.
func (s *session) cause(err error) error {
	if err != nil && errors.Is(context.Cause(s.ctx), errInterrupted) {
		return errInterrupted
	}
	return err
}
