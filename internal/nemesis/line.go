package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"stroppy/internal/cluster/wait"
	"stroppy/internal/fault"
)

// line carries out one line of the script, one injection after the other.
type line struct {
	*Nemesis
	number   int // from 1
	fault    Fault
	chance   func() *rand.Rand // the random numbers of the next injection
	reported bool              // something was reported of this line
}

func (l *line) run(ctx context.Context) {
	for k := 0; ; k++ {
		rng := l.chance()
		due, effect, ok := l.fault.next(k, rng)
		if !ok {
			return
		}
		record := fault.Injection{Line: l.number, Fault: effect.String(), Scheduled: fault.Seconds(due), At: fault.Seconds(due)}
		if late := l.clock() - due; k > 0 && late > l.late {
			l.end(record, skipError(fmt.Sprintf("the one before it was not over until %s", short((due+late).Round(time.Millisecond)))))
			continue
		}
		if !l.injectWhenDue(ctx, effect, record, rng) {
			if !l.reported {
				l.end(record, fmt.Errorf("the drive ended at %s, before its time, %s: drive for longer or inject it earlier",
					short(l.clock().Round(time.Millisecond)), short(due)))
			}
			l.missed(ctx, k+1)
			return
		}
	}
}

// missed reports the injections from the k-th on that were due in the load phase but could not begin in time. The one
// before was not over.
func (l *line) missed(ctx context.Context, k int) {
	if l.fault.when.every == 0 {
		return
	}
	<-ctx.Done()
	<-l.ended
	for ; ; k++ {
		due, effect, ok := l.fault.next(k, l.chance())
		if !ok || due+l.late >= l.length {
			return
		}
		l.end(fault.Injection{Line: l.number, Fault: effect.String(), Scheduled: fault.Seconds(due), At: fault.Seconds(due)},
			skipError("the one before it was not over when the load phase ended"))
	}
}

// injectWhenDue injects one effect when it is due and heals it when its time has come.
// It returns false when the load phase has ended.
func (l *line) injectWhenDue(ctx context.Context, e effect, record fault.Injection, rng *rand.Rand) bool {
	due := time.Duration(record.Scheduled)
	if !l.sleep(ctx, due-askAhead) {
		return false
	}
	c, err := l.askLeader(ctx, &record, e.needsLeader() && l.state.leads)
	if err != nil {
		l.end(record, err)
		return ctx.Err() == nil
	}
	if ctx.Err() != nil {
		return false
	}
	c.rng = rng
	i, err := l.open(e, record, c)
	switch {
	case err != nil:
		l.end(record, err)
		return true
	case i == nil:
		return false
	}
	l.reported = true
	l.inject(i)
	return l.close(ctx, i, e.heals())
}

// askLeader asks who leads until the injection is due, and then once more. If the last answer
// does not come in time, it returns the previous leader and the age of that knowledge. If a leader
// is needed, it waits for the first answer.
func (l *line) askLeader(ctx context.Context, record *fault.Injection, needed bool) (situation, error) {
	c, due := situation{leader: -1, drive: ctx}, time.Duration(record.Scheduled)
	if !l.state.leads {
		l.sleep(ctx, due)
		return c, nil
	}
	var known time.Duration
	ask := func(limit time.Duration) bool {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		asked := l.clock()
		leader, err := l.state.cluster.Leader(limited)
		if err == nil {
			c.leader, known = leader, asked
		}
		return err == nil
	}
	began := l.clock()
	left := func() time.Duration {
		end := due
		if needed && c.leader < 0 {
			end = max(due, began) + awaitLeader
		}
		return end - l.clock()
	}
	for ctx.Err() == nil && left() > 0 {
		ask(left())
		_ = wait.Sleep(ctx, min(askEvery, left())) // the loop sees the end
	}
	late := l.clock() - due
	switch {
	case late < 0:
	case c.leader >= 0:
		if late > l.late {
			record.Late = "it waited until a node led"
		}
		if !ask(askAgain) {
			c.age = l.clock() - known
		}
	case needed && ctx.Err() != nil:
		return c, errors.New("no node led when it was due, and none did until the drive ended")
	case needed:
		return c, fmt.Errorf("no node led when it was due, and none within %s after", short(awaitLeader))
	}
	return c, nil
}

// open plans the injection and adds it to the state; it returns nil without an
// error when the drive has ended.
func (l *line) open(e effect, record fault.Injection, c situation) (*injection, error) {
	s := l.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil
	}
	plan := e.kind().plan
	if plan == nil {
		plan = planNodes
	}
	i, err := plan(e, s, c)
	if err != nil {
		return nil, err
	}
	record.Target = i.target
	record.At = fault.Seconds(l.clock())
	i.record, i.settled = record, make(chan struct{})
	s.injections = append(s.injections, i)
	return i, nil
}

// inject injects the planned fault. It continues when the load phase ends, because its result
// decides what must be healed.
func (l *line) inject(i *injection) {
	ctx, cancel := context.WithTimeout(context.Background(), injectLimit)
	defer cancel()
	var err error
	if i.effect, err = i.inject(ctx); err != nil {
		i.record.Error = err.Error()
		return
	}
	i.record.Verified = i.effect.Seen
	i.record.InEffect = l.now()
}

// close heals the injection when its time has come, or leaves it to the end of the
// load phase; then it returns false.
func (l *line) close(ctx context.Context, i *injection, h healing) bool {
	failed := i.record.Error != ""
	lasts := l.fault.when.lasts
	if h == healAlways {
		lasts = l.fault.when.duration()
	}
	nothing := i.effect.Heal == nil || !failed && (h == healNever || h == healIfAsked && lasts == 0)
	if !nothing && !failed {
		l.report(&i.record)
	}
	if nothing || failed || (h == healAtOnce || i.effect.EndsItself) && l.fault.when.lasts == 0 {
		i.healing.Store(true) // before anybody else may heal it
		close(i.settled)
		if nothing {
			l.over(i, true)
		} else {
			l.heal(i)
		}
		return ctx.Err() == nil
	}
	end := time.Duration(i.record.At) + lasts
	close(i.settled)
	// The load phase may end between the sleep and the heal. Then the first to come heals.
	if lasts == 0 || !l.sleep(ctx, end) || !i.healing.CompareAndSwap(false, true) {
		return false
	}
	l.heal(i)
	return ctx.Err() == nil
}

// sleep waits until a time of the run's clock. It returns false if ctx ends first.
func (l *line) sleep(ctx context.Context, until time.Duration) bool {
	return wait.Sleep(ctx, until-l.clock()) == nil && ctx.Err() == nil
}

// end reports an injection that was left out or failed.
func (l *line) end(record fault.Injection, why error) {
	if skip, ok := errors.AsType[skipError](why); ok {
		record.Skipped = skip.Error()
	} else {
		record.Error = why.Error()
	}
	record.Over = true
	l.reported = true
	l.report(&record)
}
