package cli

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/live"
)

// TestHangUpAfterTheLoadPhase: a terminal that is closed while a run is checked does not end
// the check, and another signal does.
func TestHangUpAfterTheLoadPhase(t *testing.T) {
	a := &app{stdout: t.Output(), stderr: t.Output()}
	s := a.begin(live.NewFeed())
	defer s.stop()
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
	if s.ctx.Err() != nil {
		t.Fatal("the check was ended")
	}
	send(syscall.SIGHUP) // again, by the kernel
	send(syscall.SIGTERM)
	select {
	case <-s.ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("SIGTERM ended nothing")
	}
	if !errors.Is(context.Cause(s.ctx), errInterrupted) {
		t.Errorf("it ended with %v", context.Cause(s.ctx))
	}
}
