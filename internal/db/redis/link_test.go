package redis

import (
	"net"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// TestUnsentCommitIsNotApplied checks that a commit is not applied if nothing of it was written, and that a partly
// written commit is unknown.
func TestUnsentCommitIsNotApplied(t *testing.T) {
	here, there := net.Pipe()
	s, w := &session{}, &watched{Conn: here}
	there.Close()
	if _, err := w.Write([]byte("ab")); err == nil || w.wrote || s.phase() != optimistic.Unsent {
		t.Errorf("a write to a closed connection: %v, phase %d", err, s.phase())
	}
	here, there = net.Pipe()
	w = &watched{Conn: here}
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		if _, err := there.Read(make([]byte, 1)); err != nil { // only one byte
			t.Error(err)
		}
		there.Close()
	}()
	_, err := w.Write([]byte("ab"))
	if s.wrote = w.wrote; err == nil || s.phase() != optimistic.Sent {
		t.Errorf("a write that was cut: %v, phase %d", err, s.phase())
	}
	<-taken
	for at, want := range map[optimistic.Phase]db.Class{optimistic.Unsent: db.Unavailable, optimistic.Sent: db.Unknown} {
		if class := failure("commit", "h", net.ErrClosed, at).Class; class != want {
			t.Errorf("phase %d: %v", at, class)
		}
	}
}
