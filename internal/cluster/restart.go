package cluster

import (
	"context"
	"time"
)

// endedEvery is the interval between two checks for servers that ended by themselves. endedAgain is the interval
// between two attempts to start one.
const endedEvery, endedAgain = 50 * time.Millisecond, time.Second

// RestartEnded restarts servers that end by themselves, until the cluster is stopped, unless the options forbid it.
// The log notes each start and each failure.
func (f *NodeSet[N]) RestartEnded(log *EventLog) {
	if f.Options.Unsupervised {
		return
	}
	f.Tasks.Go(func() {
		for every := endedEvery; Sleep(f.Life, every) == nil; {
			every = endedEvery
			for _, n := range f.List() {
				if !n.Ended() {
					continue
				}
				log.Note("%s has ended by itself, and is started on its own data", n.Name())
				if err := n.RestartEnded(f.Life); err != nil && f.Life.Err() == nil {
					log.Note("%s did not start: %v", n.Name(), err)
					every = endedAgain
				}
			}
		}
	})
}

// Ended reports whether the server ended although nobody killed or stopped it.
func (s *Server) Ended() bool {
	s.mu.Lock()
	started := s.process != nil
	s.mu.Unlock()
	return started && !s.Running()
}

// RestartEnded starts a server that has Ended. Kill, Terminate and Close abort the start. After any other error the
// server still counts as Ended.
func (s *Server) RestartEnded(ctx context.Context) error {
	ctx, cancel := s.Bound(ctx)
	defer cancel()
	s.life.Lock()
	defer s.life.Unlock()
	if !s.Ended() {
		return nil
	}
	s.mu.Lock()
	ended := s.process
	s.restarting = cancel
	s.mu.Unlock()
	err := s.start(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarting = nil
	if err != nil {
		s.process = ended
	}
	return err
}

// endRestart aborts a RestartEnded that holds life, so that nobody waits for it.
func (s *Server) endRestart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.restarting != nil {
		s.restarting()
	}
}
