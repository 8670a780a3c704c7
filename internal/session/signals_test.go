package session

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/live"
)

// TestHangUpAfterTheLoadPhase checks that a terminal that is closed while a run is checked does not end
// the check, and another signal does.
func TestHangUpAfterTheLoadPhase(t *testing.T) {
	a := &App{Stdout: t.Output(), Stderr: t.Output()}
	s := a.Begin(live.NewFeed())
	defer s.Stop()
	s.Begin("load")
	s.Begin(live.PhaseDrive)
	s.Begin("check")
	send := func(signal syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), signal); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGHUP)
	select {
	case <-s.interrupt: // so that no other run is begun
	case <-time.After(10 * time.Second):
		t.Fatal("the closed terminal was not noticed")
	}
	if s.Context.Err() != nil {
		t.Fatal("the check was ended")
	}
	send(syscall.SIGHUP) // again, by the kernel
	send(syscall.SIGTERM)
	select {
	case <-s.Context.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("SIGTERM ended nothing")
	}
	if !errors.Is(context.Cause(s.Context), ErrInterrupted) {
		t.Errorf("it ended with %v", context.Cause(s.Context))
	}
}
