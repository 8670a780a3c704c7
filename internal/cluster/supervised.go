package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Hold says who keeps a supervisor's hands off a node.
type Hold string

// What a node can be held as; the zero value is not held.
const (
	Unheld  Hold = ""
	Killed  Hold = "killed"
	Stopped Hold = "stopped"
	Paused  Hold = "paused"
	Joining Hold = "joining"
)

var errHurt = errors.New("the node was killed, stopped or replaced meanwhile")

const (
	// resumeLimit bounds the return of a paused node that has to join again.
	resumeLimit = time.Minute
	// retryAfter is the time between two tries to bring a node back.
	retryAfter = time.Second
)

// SupervisedNode is the node of a cluster with a supervisor, which brings back what nobody
// has ended or paused on purpose. A kind's node embeds one; see
// Failover.NewSupervisedNode.
type SupervisedNode struct {
	*Server
	unheard atomic.Pointer[time.Time] // when the first question was asked that has no answer; nil if all have
	// Busy is held while the server is started, rejoined or replaced.
	Busy Lock
	// Held is guarded by the cluster's Mu, as is what follows.
	Held    Hold
	cancel  context.CancelCauseFunc // ends what is being done to it; nil if nothing is
	retryAt time.Time               // when the next try may be made to bring it back

	mu      *sync.Mutex // the cluster's
	restore func(ctx context.Context) error
}

// Supervised is the node as its supervisor has it.
func (w *SupervisedNode) Supervised() *SupervisedNode { return w }

// Asked notes that the node is asked over the network, as clients do, whether it lives.
func (w *SupervisedNode) Asked() {
	now := time.Now()
	w.unheard.CompareAndSwap(nil, &now)
}

// Answered notes that the node has answered.
func (w *SupervisedNode) Answered() { w.unheard.Store(nil) }

// Unanswered is how long the node has not answered, zero if it has.
func (w *SupervisedNode) Unanswered() time.Duration {
	if since := w.unheard.Load(); since != nil {
		return time.Since(*since)
	}
	return 0
}

// Idle says that nobody holds the node and nothing is being done to it; the
// cluster's Mu is held.
func (w *SupervisedNode) Idle() bool { return w.Held == Unheld && w.cancel == nil }

// Hold notes who ends the node, so that the supervisor leaves it so, and ends what
// is being done to it.
func (w *SupervisedNode) Hold(by Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Held = by
	if w.cancel != nil {
		w.cancel(errHurt)
	}
}

// Holder returns who holds the node.
func (w *SupervisedNode) Holder() Hold {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Held
}

// swap notes who holds the node and returns who did before.
func (w *SupervisedNode) swap(by Hold) (before Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.Held = w.Held, by
	return before
}

// release undoes a Hold, if it is that of by.
func (w *SupervisedNode) release(by Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Held == by {
		w.Held = Unheld
	}
}

// delay puts off the next try to bring the node back.
func (w *SupervisedNode) delay() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retryAt = time.Now().Add(retryAfter)
}

// Begin waits until nothing else is done to the node and returns a context that
// ends when somebody kills the node, removes it, or stops the cluster. With
// release nobody holds the node from here on; else Begin refuses a node that is
// held. end must be called.
func (w *SupervisedNode) Begin(ctx context.Context, release bool) (_ context.Context, end func(), err error) {
	if err := w.Busy.Acquire(ctx); err != nil {
		return nil, nil, err
	}
	return w.enter(ctx, release)
}

// enter is Begin when Busy is held already; an error releases it.
func (w *SupervisedNode) enter(ctx context.Context, release bool) (_ context.Context, end func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !release && w.Held != Unheld {
		err = errHurt
	}
	if w.being.Err() != nil {
		err = context.Cause(w.being)
	}
	if err != nil {
		w.Busy.Release()
		return nil, nil, err
	}
	w.Held = Unheld
	ctx, done := w.Bound(ctx)
	ctx, w.cancel = context.WithCancelCause(ctx)
	return ctx, func() {
		done()
		w.mu.Lock()
		w.cancel = nil
		w.mu.Unlock()
		w.Busy.Release()
	}, nil
}

// Kill ends the node with SIGKILL. It stays down until Restart.
func (w *SupervisedNode) Kill(ctx context.Context) error {
	w.Hold(Killed)
	return w.Server.Kill(ctx)
}

// Terminate shuts the node down in good order. It stays down until Restart.
func (w *SupervisedNode) Terminate(ctx context.Context) error {
	w.Hold(Stopped)
	return w.Server.Terminate(ctx)
}

// Pause stops the node's processes where they are. A primary that is paused for
// longer than the cluster's time-out is ended if another node may be promoted:
// then it is down until Resume or Restart.
func (w *SupervisedNode) Pause(ctx context.Context) error {
	before := w.swap(Paused)
	err := w.Server.Pause(ctx)
	if err != nil {
		w.swap(before)
	}
	return err
}

// Resume undoes Pause. A node that was ended meanwhile joins again, and Resume
// returns when it answers.
func (w *SupervisedNode) Resume(ctx context.Context) error {
	held := w.Holder()
	if err := w.Server.Resume(ctx); err != nil || held != Paused {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resumeLimit)
	defer cancel()
	return w.Restart(ctx)
}

// Restart starts the node in the role that is its own, unless it runs, and returns
// when it answers: the primary on its own data, any other as its kind follows the
// present primary. A paused node goes on.
func (w *SupervisedNode) Restart(ctx context.Context) error {
	ctx, end, err := w.Begin(ctx, true)
	if err == nil {
		defer end()
		if err = w.Server.Resume(ctx); err == nil {
			err = w.restore(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("restart %s: %w", w.Name(), err)
	}
	return nil
}

// Close ends the node for good, as Server's does. What is being done to it ends by
// itself, for its life is over.
func (w *SupervisedNode) Close() error {
	if err := w.Busy.Acquire(context.Background()); err != nil {
		return err
	}
	defer w.Busy.Release()
	return w.Server.Close()
}
