package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// decide runs the transaction until its outcome is known or nothing more can be done, and then reads the
// clock.
func (w *worker) decide() {
	tx := &w.tx
	for {
		tx.Attempts++
		err := w.client.Attempt(w.aborting, tx)
		w.last = w.clock()
		if err == nil {
			w.reached()
			return
		}
		tx.Outcome, tx.Reason = history.Unknown, 0
		if !w.again(err) {
			return
		}
		for i := range tx.Ops { // what a try that was not applied has observed
			op := &tx.Ops[i]
			op.Observed, op.Version, op.Value, op.Writer = false, 0, 0, 0
		}
		tx.Elements, tx.Broken = tx.Elements[:0], tx.Broken[:0]
		tx.Try = w.last
	}
}

// again reports whether another try must follow one that ended with err. If not, it has set the outcome.
func (w *worker) again(err error) bool {
	kind, final := classify(err)
	if errors.Is(err, ErrAlreadyApplied) {
		w.alreadyApplied(kind, err)
		return false
	}
	w.note(kind, err)
	switch kind.class {
	case db.Aborted:
		w.reached()
		return w.retry()
	case db.Unavailable:
		w.lost()
		repaired := w.repair(w.stopping)
		w.last = w.clock()
		if repaired {
			return true
		}
		w.tx.Outcome = history.Aborted
	case db.Constraint, db.Fatal:
		w.tx.Outcome = history.Aborted
		w.fail(w.transaction(), err)
	default:
		w.unknown(final)
	}
	return false
}

func (w *worker) alreadyApplied(kind errorKind, err error) {
	if _, classed := errors.AsType[*db.Error](err); classed && (kind.class == db.Unknown || kind.class == db.Unavailable) {
		w.lost()
	} else {
		kind.class = db.Aborted
		w.reached()
	}
	w.note(kind, err)
	w.tx.Outcome = history.Aborted
}

// retry waits before the next try after a conflict, except for the first retry.
func (w *worker) retry() bool {
	add(&w.counters.conflicts)
	if w.retried == w.driver.options.Retries || w.open.Err() != nil {
		w.tx.Outcome = history.Aborted
		return false
	}
	w.retried++
	if n := w.retried - 2; n >= 0 {
		slept := w.sleep(w.open, fullJitter(w.random, conflictBase, conflictCap, n))
		w.last = w.clock()
		if !slept {
			w.tx.Outcome = history.Aborted
			return false
		}
	}
	add(&w.counters.retries)
	return true
}

// unknown ends a transaction that may have been applied. A read-only one counts as not applied; any other is
// looked up, unless final is set.
func (w *worker) unknown(final bool) {
	w.lost()
	switch {
	case w.tx.Kind.ReadOnly():
		w.tx.Outcome = history.Aborted
	case !final:
		w.resolve()
		w.last = w.clock()
	}
}

// resolve looks the transaction up until there is an answer or the time is over.
func (w *worker) resolve() {
	ctx, cancel := context.WithTimeout(w.aborting, resolveLimit)
	defer cancel()
	for conflicts := 0; ctx.Err() == nil && w.repair(ctx); {
		err := w.client.ResolveUnknown(ctx, &w.tx)
		if err == nil {
			w.tx.LookedUp = w.tx.Outcome != history.Unknown
			w.last = w.clock()
			w.reached()
			return
		}
		w.tx.Outcome, w.tx.Reason = history.Unknown, 0
		kind, final := classify(err)
		w.note(kind, err)
		switch kind.class {
		case db.Aborted:
			w.last = w.clock()
			w.reached()
			w.sleep(ctx, fullJitter(w.random, conflictBase, conflictCap, conflicts))
			conflicts++
		case db.Constraint, db.Fatal:
			w.fail(w.transaction(), err)
			return
		default:
			w.lost()
			if final {
				return
			}
		}
	}
}

// repair replaces a broken session. It retries with growing waits, and returns false if ctx ends first.
func (w *worker) repair(ctx context.Context) bool {
	for w.broken {
		if !w.sleep(ctx, fullJitter(w.random, outageBase, outageCap, w.outage)) {
			return false
		}
		w.outage++
		err := w.client.Reset(w.watched(ctx))
		if err == nil {
			w.broken = false
			add(&w.counters.reconnects)
			return true
		}
		kind, _ := classify(err)
		w.note(kind, err)
		if kind.class == db.Fatal || kind.class == db.Constraint {
			w.fail("new session", err)
			return false
		}
	}
	return true
}

// watched returns ctx with a hook that reports the server of a new connection, if requested.
func (w *worker) watched(ctx context.Context) context.Context {
	connected := w.driver.options.Connected
	if connected == nil {
		return ctx
	}
	return db.WithConnected(ctx, func(server string) { connected(w.number, w.clock(), server) })
}

// watchedMove returns the context of a connection whose server is reported only if it is another one than before.
func (w *worker) watchedMove() context.Context {
	connected := w.driver.options.Connected
	if connected == nil {
		return w.stopping
	}
	return db.WithConnected(w.stopping, func(server string) {
		if server != w.server {
			w.server = server
			connected(w.number, w.clock(), server)
		}
	})
}

// repairBetween is repair before a transaction. It stops at the clock until, from which no transaction is
// started.
func (w *worker) repairBetween(until int64) {
	ctx := w.stopping
	if until < math.MaxInt64 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(until-w.last))
		defer cancel()
	}
	w.repair(ctx)
	w.last = w.clock()
}

// lost records that the session is unusable until Reset. From then on, the client counts as reconnecting
// until the database answers again.
func (w *worker) lost() {
	w.broken = true
	if !w.down {
		w.down = true
		w.counters.downSince.Store(max(w.last, 1))
	}
}

// reached records an answer of the database at the latest reading of the clock.
func (w *worker) reached() {
	w.answer = w.last
	if w.down {
		w.down, w.outage = false, 0
		w.counters.downSince.Store(0)
	}
}

// fail ends the whole run because of an error that no retry can resolve.
func (w *worker) fail(doing string, err error) {
	w.driver.fail(fmt.Errorf("client %d, %s: %w", w.number, doing, err))
}

func (w *worker) transaction() string { return "transaction " + w.tx.ID.String() }
