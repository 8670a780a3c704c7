package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Replica is a node of a cluster in which one leads, the primary, and the others
// follow it. Its kind embeds a SupervisedNode.
type Replica interface {
	Member
	// Answers asks the node, which runs, whether it lives. It is asked all the time.
	Answers(ctx context.Context) bool
	// CheckPrimary says why the node does not take writes; nil if it does.
	CheckPrimary(ctx context.Context) error
	// StartPrimary starts the node as the primary on its own data, unless it runs. The
	// roles are held.
	StartPrimary(ctx context.Context) error
	// StartReplica brings the node up behind the present primary, which need not run; Busy is
	// held. While it is not done, it has to be seen again who leads.
	StartReplica(ctx context.Context) (done bool, err error)

	Supervised() *SupervisedNode
}

// FailoverKind is what a kind of cluster knows of its lead. The functions are called
// while the roles are held.
type FailoverKind[N Replica] struct {
	Replica string        // what a node is called that is not the primary, such as standby
	Timeout time.Duration // how long a node that does not answer is waited for
	Every   time.Duration // between two looks at whether the primary is lost

	// Candidates are the nodes that may be promoted in place of a lost primary, and that
	// answer.
	Candidates func(p N) []N
	// Farthest is the candidate that has most of what a dead primary had; false: none
	// answers.
	Farthest func(ctx context.Context, p N) (n N, ok bool)
	// Promote makes a node the primary in the records, and then lets it lead in place of
	// one that is dead.
	Promote func(ctx context.Context, p, n N) error
	// WhyWaiting says why a lost primary is waited for; empty if nobody need know.
	WhyWaiting func(p N) string
	// Review looks at a primary that is not lost.
	Review func(ctx context.Context, p N)
	// NeedsRestart says that a node which nobody holds has to be brought back; Mu is held.
	NeedsRestart func(N) bool

	// Next is the node that is best to take the lead over from a primary that answers.
	Next func(ctx context.Context, p N) (N, error)
	// HandOver hands the lead over in good order, unless the node leads already.
	HandOver func(ctx context.Context, to N) error
	// Discard notes that the data of a node that does not lead are taken away.
	Discard func(ctx context.Context, n N) error
}

// Failover is a NodeSet with a primary, and a supervisor that sees to it that
// there is one. A kind's cluster embeds one. Create it with NewFailover.
//
// Patroni and Sentinel need more processes, and cannot know whether a primary that they
// do not reach is dead: they wait for its lease to end, or have two primaries for a
// while. Here one program owns all processes. It ends the old primary with SIGKILL and
// has seen it gone before it promotes another, so the only wait is the time-out after
// which a silent primary is given up.
type Failover[N Replica] struct {
	*NodeSet[N]
	EventLog
	// Roles is held while it is decided, and made true, who leads.
	Roles Lock
	// Primary is the node that leads, or that is about to; guarded by Mu.
	Primary N

	kind      FailoverKind[N]
	supervise bool // has begun

	// The supervisor's own.
	lostAt       time.Time // when the loss of the primary was seen; zero while it answers
	waitingNoted string    // why there was nobody to promote, as noted last
}

// NewFailover describes a cluster as NewNodeSet does.
func NewFailover[N Replica](
	name string, kind FailoverKind[N], found func(ctx context.Context, number int, host *Host) (N, error), healthy func() func(ctx context.Context) error,
) *Failover[N] {
	return &Failover[N]{NodeSet: NewNodeSet(name, found, healthy), Roles: NewLock(), kind: kind}
}

// NewSupervisedNode wraps a node's server. A node that comes once the supervisor
// is at work is held as Joining.
func (s *Failover[N]) NewSupervisedNode(n N, server *Server) *SupervisedNode {
	w := &SupervisedNode{Server: server, Busy: NewLock(), mu: &s.Mu, restore: func(ctx context.Context) error { return s.restore(ctx, n) }}
	if s.supervise {
		w.Held = Joining
	}
	return w
}

// AskEvery is the time between two questions for a node's health.
const AskEvery = 100 * time.Millisecond

// Description says who fails over, and after what time; empty for one node, whose lead nobody
// can take over.
func (s *Failover[N]) Description() string {
	if len(s.List()) == 1 {
		return ""
	}
	return fmt.Sprintf("by stroppy's own supervisor, when the node that leads does not answer for %v", s.kind.Timeout)
}

// Supervise begins to watch the nodes, and to replace a lost primary, until the cluster
// is stopped, unless the options say otherwise. While somebody else holds the roles, as
// for a switch-over, it does nothing.
func (s *Failover[N]) Supervise() {
	if s.supervise = !s.Options.Unsupervised; !s.supervise {
		return
	}
	for _, n := range s.List() {
		s.watch(n)
	}
	s.Tasks.Go(func() {
		for Sleep(s.Life, s.kind.Every) == nil {
			if s.Roles.Try() {
				s.step(s.Life)
				s.Roles.Release()
			}
		}
	})
}

// step looks whether the primary is lost, and does what is to be done then; the
// roles are held.
func (s *Failover[N]) step(ctx context.Context) {
	p := s.Leading()
	why := s.Lost(p)
	if why != "" && s.lostAt.IsZero() {
		s.lostAt = time.Now()
		s.Note("%s, which leads, is lost: %s", p.Name(), why)
	}
	switch {
	case why == "":
		s.lostAt, s.waitingNoted = time.Time{}, ""
		s.kind.Review(ctx, p)
	case len(s.kind.Candidates(p)) > 0:
		s.failOver(ctx, p)
	default:
		s.awaitReturn(ctx, p)
	}
	s.restartLost()
}

// failOver gives the lead of a lost primary to another node. The primary is ended
// for sure before anything else: a server that does not answer this program may
// answer others yet, and go on.
func (s *Failover[N]) failOver(ctx context.Context, p N) {
	if err := p.Supervised().Server.Kill(ctx); err != nil {
		s.noteWaiting(fmt.Sprintf("%s cannot be fenced, so nobody is promoted: %v", p.Name(), err))
		return
	}
	chosen, ok := s.kind.Farthest(ctx, p)
	if !ok {
		s.noteWaiting(fmt.Sprintf("%s was fenced, and no %s answers to be promoted", p.Name(), s.kind.Replica))
		return
	}
	s.Note("%s was fenced; %s is promoted", p.Name(), chosen.Name())
	if err := s.kind.Promote(ctx, p, chosen); err != nil {
		s.Note("%s does not take the lead yet: %v", chosen.Name(), err)
		return
	}
	s.NoteLeader(chosen.Name(), "%s leads, %v after the loss of %s was seen", chosen.Name(), time.Since(s.lostAt).Round(time.Millisecond), p.Name())
	s.lostAt = time.Time{}
}

// WithRoles calls do while nobody else decides who leads.
func (s *Failover[N]) WithRoles(ctx context.Context, do func() error) error {
	if err := s.Roles.Acquire(ctx); err != nil {
		return err
	}
	defer s.Roles.Release()
	return do()
}

// MoveLeader hands the lead over in good order, as soon as the node can take it.
func (s *Failover[N]) MoveLeader(ctx context.Context, to int) error {
	return s.Move(to, func(n N) error {
		return Retry(ctx, func() error {
			return s.WithRoles(ctx, func() error { return s.kind.HandOver(ctx, n) })
		})
	})
}

// Yield hands the lead of a node over, if it has it, to the one that is best, and calls
// then while nobody can give it back.
func (s *Failover[N]) Yield(ctx context.Context, n N, then func() error) error {
	return Retry(ctx, func() error {
		return s.WithRoles(ctx, func() error {
			if s.Leading() == n {
				next, err := s.kind.Next(ctx, n)
				if err == nil {
					err = s.kind.HandOver(ctx, next)
				}
				if err != nil {
					return err
				}
			}
			return then()
		})
	})
}

// watch asks a node all the time whether it lives.
func (s *Failover[N]) watch(n N) {
	w := n.Supervised()
	s.Tasks.Go(func() {
		for Sleep(w.being, AskEvery) == nil {
			if !n.Running() {
				w.Answered()
				continue
			}
			if w.Asked(); n.Answers(w.being) {
				w.Answered()
			}
		}
	})
}

// Lost says why a node cannot lead any more; empty if it can.
func (s *Failover[N]) Lost(n N) string {
	switch {
	case !n.Running():
		return "its process is gone"
	case n.Supervised().Unanswered() >= s.kind.Timeout:
		return fmt.Sprintf("it has not answered for %v", s.kind.Timeout)
	}
	return ""
}

// Leading is the node that leads, or that is about to.
func (s *Failover[N]) Leading() N {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Primary
}

// Leader returns the number of the node that takes the writes. While there is
// none, or it does not answer, Leader waits until ctx ends.
func (s *Failover[N]) Leader(ctx context.Context) (int, error) {
	var p N
	err := Retry(ctx, func() error {
		var nobody N
		if p = s.Leading(); p == nobody {
			return errors.New("nobody has led yet")
		}
		return p.CheckPrimary(ctx)
	})
	if err != nil {
		return 0, fmt.Errorf("find the primary of %s: %w", s.name, err)
	}
	return p.Number(), nil
}

// AwaitPrimary returns when a node other than n takes writes.
func (s *Failover[N]) AwaitPrimary(ctx context.Context, n N) error {
	return Retry(ctx, func() error {
		p := s.Leading()
		if p == n {
			return fmt.Errorf("%s leads itself", n.Name())
		}
		return p.CheckPrimary(ctx)
	})
}

// ReplaceNode gives a node other data: free says whether its own may go, and lets
// another node lead if it can; then the node is killed, and when it does not lead
// any more rejoin brings it back. A node of which free says no comes back on its
// data.
func (s *Failover[N]) ReplaceNode(ctx context.Context, n N, free, rejoin func(ctx context.Context) error) error {
	w, err := n.Supervised(), errAlone
	if len(s.List()) > 1 {
		err = free(ctx)
	}
	if err == nil {
		err = errors.Join(w.Kill(ctx), Retry(ctx, func() error {
			if s.Leading() == n {
				return fmt.Errorf("no %s could be promoted", s.kind.Replica)
			}
			return nil
		}))
	}
	if err != nil {
		w.release(Killed) // the supervisor starts it on its own data
		return fmt.Errorf("replace %s: %w", n.Name(), err)
	}
	ctx, end, err := w.Begin(ctx, true)
	if err == nil {
		defer end()
		err = rejoin(ctx)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", n.Name(), err)
	}
	return nil
}

// Add makes one more host and a node on it.
func (s *Failover[N]) Add(ctx context.Context) (int, error) {
	return s.AddNode(ctx, func(ctx context.Context, n N) error {
		if s.supervise {
			s.watch(n)
		}
		return n.Restart(ctx)
	}, func(context.Context, N) error { return nil })
}

// Remove takes a node out of the cluster, shuts it down and removes its data. One
// that leads hands the lead over first.
func (s *Failover[N]) Remove(ctx context.Context, number int) error {
	var ended error // which keeps nobody from removing it
	err := s.RemoveNode(ctx, number, func(ctx context.Context, n N) error {
		w := n.Supervised()
		err := s.Yield(ctx, n, func() error {
			err := s.kind.Discard(ctx, n)
			if err == nil {
				w.Hold(Stopped)
			}
			return err
		})
		if err == nil {
			ended = w.Server.Terminate(ctx)
		}
		return err
	})
	return errors.Join(err, ended)
}

// restore brings a node up in the role that is its own; Busy is held.
func (s *Failover[N]) restore(ctx context.Context, n N) error {
	for {
		leads := false
		err := s.WithRoles(ctx, func() error {
			if leads = s.Leading() == n; leads {
				return n.StartPrimary(ctx)
			}
			return nil
		})
		if leads || err != nil {
			return err
		}
		if done, err := n.StartReplica(ctx); done || err != nil {
			return err
		}
	}
}

// CheckUp says what is wrong with a node that is to be up; nil if nothing is.
func (s *Failover[N]) CheckUp(n N) error {
	switch held := n.Supervised().Holder(); {
	case held != Unheld:
		return fmt.Errorf("%s is %s", n.Name(), held)
	case !n.Running():
		return fmt.Errorf("%s is down", n.Name())
	}
	return nil
}

// crashLimit bounds the return of a primary that ended by itself.
const crashLimit = 2 * time.Minute

// awaitReturn deals with a lost primary that nobody may replace: it is waited for, and
// started on its own data if it ended by itself.
func (s *Failover[N]) awaitReturn(ctx context.Context, p N) {
	w := p.Supervised()
	s.Mu.Lock()
	held, early := w.Held, time.Now().Before(w.retryAt)
	s.Mu.Unlock()
	if p.Running() || held != Unheld || early {
		s.noteWaiting(s.kind.WhyWaiting(p))
		return
	}
	if !w.Busy.Try() {
		return // somebody restarts it, and waits for the roles
	}
	ctx, cancel := context.WithTimeout(ctx, crashLimit)
	defer cancel()
	ctx, end, err := w.enter(ctx, false)
	if err != nil {
		return
	}
	defer end()
	s.Note("%s is started on its own data", p.Name())
	if err := p.StartPrimary(ctx); err != nil {
		w.delay()
		s.Note("%s did not start: %v", p.Name(), err)
	}
}

// restartLost brings back the nodes that nobody holds and that need it.
func (s *Failover[N]) restartLost() {
	now := time.Now()
	s.Mu.Lock()
	var down []N
	for _, n := range s.nodes {
		w := n.Supervised()
		if n != s.Primary && w.Idle() && now.After(w.retryAt) && s.kind.NeedsRestart(n) {
			w.retryAt = now.Add(retryAfter)
			down = append(down, n)
		}
	}
	s.Mu.Unlock()
	for _, n := range down {
		s.Tasks.Go(func() {
			w := n.Supervised()
			ctx, end, err := w.Begin(w.being, false)
			if err != nil {
				return
			}
			defer end()
			if err := s.restore(ctx, n); err != nil && ctx.Err() == nil {
				w.delay()
				s.Note("%s did not come back: %v", n.Name(), err)
			}
		})
	}
}

// noteWaiting notes, once, why nobody is promoted.
func (s *Failover[N]) noteWaiting(why string) {
	if why != "" && why != s.waitingNoted {
		s.waitingNoted = why
		s.Note("%s", why)
	}
}

// Event is something that a cluster saw or did by itself.
type Event struct {
	Time   time.Time
	Text   string
	Leader string // the node that leads from then on; empty: the event is another one
	Named  string // the node that clients can learn from then on to lead, where that is later; empty: the event is another one
	Repair bool   // it is what an operator has to do, for the cluster does not do it by itself
}

// EventLog keeps the events of a cluster. The zero value has none. Its methods may be
// called from several goroutines.
type EventLog struct {
	mu   sync.Mutex
	list []Event
}

// Events are all events so far, the oldest first.
func (l *EventLog) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// Note records an event, unless it is the last one again.
func (l *EventLog) Note(format string, args ...any) { l.note(Event{}, format, args) }

// NoteLeader records that a node leads now.
func (l *EventLog) NoteLeader(name, format string, args ...any) {
	l.note(Event{Leader: name}, format, args)
}

// NoteNamed records that clients can learn now that a node leads.
func (l *EventLog) NoteNamed(name, format string, args ...any) {
	l.note(Event{Named: name}, format, args)
}

// NoteRepair records what was done as an operator does it.
func (l *EventLog) NoteRepair(format string, args ...any) {
	l.note(Event{Repair: true}, format, args)
}

func (l *EventLog) note(e Event, format string, args []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time, e.Text = time.Now(), fmt.Sprintf(format, args...)
	if last := len(l.list) - 1; last >= 0 && l.list[last].Text == e.Text {
		return
	}
	l.list = append(l.list, e)
}
