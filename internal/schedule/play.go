package schedule

import (
	"context"
	"fmt"
	"time"

	"stroppy/internal/db"
)

// worker carries out the steps of one session, one at a time, in a goroutine of its own. So a
// waiting step does not delay other sessions.
type worker struct {
	client Client
	where  int // the number of the replica that it is on; -1: on the table itself
	jobs   chan func()
	done   chan *executed
	// The play owns the following fields.
	busy    *executed // nil: idle
	begun   bool      // a transaction is open
	broken  bool      // it must be reset
	since   int       // how many transactions had ended when the step began
	pending []*Step   // steps that were due while the session was waiting
}

func newWorker(c Client, where int) *worker {
	w := &worker{client: c, where: where, jobs: make(chan func()), done: make(chan *executed, 1)}
	go func() {
		for job := range w.jobs {
			job()
		}
	}()
	return w
}

// end leaves the session ready for another transaction, or returns the reason why it cannot.
func (w *worker) end(ctx context.Context) error {
	if w.busy != nil {
		e := <-w.done // its context has ended
		w.broken = w.broken || e.err != nil && unusable(e.err)
	}
	open, broken := w.begun, w.broken
	w.busy, w.begun, w.broken, w.pending = nil, false, false, nil
	if open && !broken {
		broken = w.client.Rollback(ctx) != nil
	}
	if broken {
		return w.client.Reset(ctx)
	}
	return nil
}

// unusable reports whether an error leaves a session that must be reset.
func unusable(err error) bool {
	class := db.ClassOf(err)
	return class == db.Unknown || class == db.Unavailable
}

func (w *worker) close() error {
	close(w.jobs)
	return w.client.Close()
}

// play is one run of a schedule.
type play struct {
	schedule *Schedule
	workers  []*worker
	wait     time.Duration
	*observed
	ended   int  // transactions that have ended so far
	numbers int  // steps that have ended so far
	slow    bool // a step took long, and no lock was the reason
}

// run carries out all steps. If a step does not end within the wait, the schedule goes on with the
// other transactions. It returns errors that have nothing to do with isolation.
func (p *play) run(ctx context.Context) error {
	for i := range p.schedule.Steps {
		step := &p.schedule.Steps[i]
		w := p.workers[step.Transaction-1]
		w.pending = append(w.pending, step)
		if w.busy == nil { // else settle sees to it
			if err := p.advance(ctx, w, p.wait); err != nil {
				return err
			}
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
	for w := p.unfinished(); w != nil; w = p.unfinished() {
		if err := p.advance(ctx, w, p.wait); err != nil {
			return err
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// unfinished returns a session with a step in progress or to come; nil if there is none.
func (p *play) unfinished() *worker {
	for _, w := range p.workers[:len(p.fate)-1] {
		if w.busy != nil || len(w.pending) > 0 {
			return w
		}
	}
	return nil
}

// settle lets sessions go on whose step ended after steps of others.
func (p *play) settle(ctx context.Context) error {
	for _, w := range p.workers[:len(p.fate)-1] {
		if w.busy == nil {
			continue
		}
		limit := time.Duration(0)
		if p.ended > w.since { // the transaction that it waited for may have ended
			limit = p.wait
		}
		if err := p.advance(ctx, w, limit); err != nil {
			return err
		}
	}
	return nil
}

// advance waits for the current step of a session, and begins its next ones, unless one takes
// longer than the limit.
func (p *play) advance(ctx context.Context, w *worker, limit time.Duration) error {
	for {
		if w.busy == nil {
			if len(w.pending) == 0 {
				return nil
			}
			step := w.pending[0]
			w.pending = w.pending[1:]
			if p.fate[step.Transaction] != isOpen { // it was aborted
				continue
			}
			p.begin(ctx, w, step)
			limit = p.wait
		}
		e := await(w, limit)
		if e == nil {
			w.busy.waited = true
			return nil
		}
		if err := p.finish(w, e); err != nil {
			return err
		}
	}
}

func await(w *worker, limit time.Duration) *executed {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case e := <-w.done:
		return e
	default:
	}
	select {
	case e := <-w.done:
		return e
	case <-timer.C:
		return nil
	}
}

// begin hands a step to its session.
func (p *play) begin(ctx context.Context, w *worker, step *Step) {
	e := &executed{step: step}
	first := !w.begun
	readOnly := p.schedule.readOnly(step.Transaction)
	w.busy, w.begun, w.since = e, true, p.ended
	p.begun = append(p.begun, e)
	w.jobs <- func() {
		// The play reads e only after done, and waited is its own.
		result, err := carryOut(ctx, w.client, step, first, readOnly)
		w.done <- &executed{Result: result, err: err}
	}
}

func carryOut(ctx context.Context, c Client, step *Step, first, readOnly bool) (r Result, err error) {
	if first {
		if err := c.Begin(ctx, readOnly); err != nil {
			return r, err
		}
	}
	switch step.Kind {
	case Commit:
		return r, c.Commit(ctx)
	case Rollback:
		return r, c.Rollback(ctx)
	}
	return c.Do(ctx, step.Operation)
}

// finish stores the result of a step.
func (p *play) finish(w *worker, result *executed) error {
	e := w.busy
	w.busy = nil
	e.Result, e.err = result.Result, result.err
	p.numbers++
	e.number = p.numbers
	if e.waited && e.err == nil && p.ended == w.since {
		p.slow = true // no lock was given up meanwhile
	}
	t := e.step.Transaction
	if e.err != nil {
		switch err := asError(e.err); err.Class {
		case db.Aborted, db.Constraint:
			p.fate[t] = isAborted
		default:
			w.broken = unusable(e.err)
			return fmt.Errorf("step %s of T%d: %w", e.step, t, e.err)
		}
	}
	switch {
	case e.err != nil:
	case e.step.Kind == Commit:
		p.fate[t] = isCommitted
	case e.step.Kind == Rollback:
		p.fate[t] = isRolledBack
	}
	if p.fate[t] != isOpen {
		p.ended++
		w.begun = false
	}
	return nil
}

// readFinal reads the rows that the schedule left. An anomaly that shows must show again a little
// later: the first answer may come from a replica that is behind.
func (p *play) readFinal(ctx context.Context, table Table) (err error) {
	if p.final, err = table.Rows(ctx); err != nil || !p.schedule.Leaves || p.schedule.seen(p.observed) == "" {
		return err
	}
	select {
	case <-time.After(replicaDelay):
	case <-ctx.Done():
		return ctx.Err()
	}
	p.final, err = table.Rows(ctx)
	return err
}

// replicaDelay is the longest delay of a replica that answers for the rows left by a schedule.
const replicaDelay = 200 * time.Millisecond
