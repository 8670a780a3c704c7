package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// line carries out one line of the script, one injection after the other.
type line struct {
	*Nemesis
	index    int
	fault    Fault
	rng      *rand.Rand
	reported bool // something was reported of this line
}

func (l *line) run(ctx context.Context) {
	for k := 0; ; k++ {
		// Every injection has chance of its own: what came before does not change it.
		rng := rand.New(rand.NewPCG(l.rng.Uint64(), l.rng.Uint64()))
		due, ok := l.fault.when.due(k, rng)
		if !ok {
			return
		}
		effect := l.fault.choose(k, rng)
		record := Injection{Line: l.index + 1, Fault: effect.String(), Scheduled: int64(due)}
		if late := time.Duration(l.clock()) - due; k > 0 && late > l.bounds.late {
			l.end(record, skipError(fmt.Sprintf("the one before it was not over until %s", short((due+late).Round(time.Millisecond)))))
			continue
		}
		if !l.injectWhenDue(ctx, effect, record, rng) {
			return
		}
	}
}

// choose takes the effect of the k-th injection.
func (f Fault) choose(k int, rng *rand.Rand) effect {
	if f.order == mix {
		return f.effects[rng.IntN(len(f.effects))]
	}
	return f.effects[k%len(f.effects)]
}

// injectWhenDue injects one effect when it is due and heals it when its time has come.
// It returns false when the drive has ended.
func (l *line) injectWhenDue(ctx context.Context, e effect, record Injection, rng *rand.Rand) bool {
	due := time.Duration(record.Scheduled)
	if !l.sleep(ctx, due-l.bounds.ahead) {
		l.unreached(record)
		return false
	}
	watch := l.watchLeader(ctx)
	defer watch.stop()
	if !l.sleep(ctx, due) {
		l.unreached(record)
		return false
	}
	leader, err := watch.leader(e.needsLeader(), l.bounds.leader)
	if err != nil {
		l.end(record, err)
		return ctx.Err() == nil
	}
	if late := time.Duration(l.clock()) - due; late > l.bounds.late {
		record.Late = "it waited until a node led"
	}
	c := situation{rng: rng, drive: ctx}
	c.leader, c.age = l.leads(ctx, leader)
	i, err := l.open(e, record, c)
	if i == nil {
		if err != nil {
			l.end(record, err)
			return true
		}
		l.unreached(record)
		return false
	}
	l.reported = true
	l.inject(i)
	return l.close(ctx, i, e.heals())
}

// leads asks once more who leads, now that it matters. Where the answer does not
// come in time it is the node that led last, and the age of that knowledge.
func (l *line) leads(ctx context.Context, last answer) (leader int, age time.Duration) {
	if last.leader < 0 {
		return -1, 0
	}
	limited, cancel := context.WithTimeout(ctx, l.bounds.sure)
	defer cancel()
	if now, err := l.state.cluster.Leader(limited); err == nil {
		return now, 0
	}
	return last.leader, time.Duration(l.clock() - last.asked)
}

// open plans the injection and adds it to the state; it returns nil without an
// error when the drive has ended.
func (l *line) open(e effect, record Injection, c situation) (*injection, error) {
	s := l.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil
	}
	i, err := e.plan(s, c)
	if err != nil {
		return nil, err
	}
	record.Target = i.target
	i.record = record
	i.settled = make(chan struct{})
	i.record.Injected = l.clock()
	s.injections = append(s.injections, i)
	return i, nil
}

// inject does what was planned. It goes on when the drive ends, so that it is
// known what there is to heal.
func (l *line) inject(i *injection) {
	ctx, cancel := context.WithTimeout(context.Background(), l.bounds.inject)
	defer cancel()
	var err error
	if i.effect, err = i.inject(ctx); err != nil {
		i.record.Err = err.Error()
		return
	}
	i.record.Verified = i.effect.Seen
	i.record.InEffect = l.clock()
}

// close heals the injection when its time has come, or leaves it to the end of the
// drive; then it returns false.
func (l *line) close(ctx context.Context, i *injection, h healing) bool {
	failed := i.record.Err != ""
	lasts := l.fault.when.duration()
	if h != healAlways {
		lasts = l.fault.when.lasts
	}
	switch {
	case i.effect.Heal == nil, !failed && (h == healNever || h == healIfAsked && lasts == 0):
		i.healing.Store(true)
		l.state.remove(i)
		close(i.settled)
		l.over(i)
		return ctx.Err() == nil
	case failed, h == healAtOnce && lasts == 0:
		if !failed {
			l.report(i.record)
		}
		ours := i.healing.CompareAndSwap(false, true)
		close(i.settled)
		if ours {
			l.heal(i)
		}
		return ctx.Err() == nil
	}
	l.report(i.record)
	end := time.Duration(i.record.Injected) + lasts
	close(i.settled)
	if lasts == 0 {
		<-ctx.Done()
		return false
	}
	// Between the end of the sleep and the heal the drive may end: then whoever
	// comes first heals.
	if !l.sleep(ctx, end) || !i.healing.CompareAndSwap(false, true) {
		return false
	}
	l.heal(i)
	return ctx.Err() == nil
}

// sleep waits until a time of the run's clock; false: ctx ended first.
func (l *line) sleep(ctx context.Context, until time.Duration) bool {
	for {
		left := until - time.Duration(l.clock())
		if left <= 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// end reports an injection that was not made: left out, or failed.
func (l *line) end(record Injection, why error) {
	if skip, ok := errors.AsType[skipError](why); ok {
		record.Skipped = skip.Error()
	} else {
		record.Err = why.Error()
	}
	record.Over = true
	l.reported = true
	l.report(record)
}

// unreached reports a line that the drive left no time for: what the script
// asked for was never done.
func (l *line) unreached(record Injection) {
	if !l.reported {
		l.end(record, fmt.Errorf("the drive ended at %s, before its time, %s: drive for longer or inject it earlier",
			short(time.Duration(l.clock()).Round(time.Millisecond)), short(time.Duration(record.Scheduled))))
	}
}

// leaderWatch learns who leads shortly before an injection, so that the injection need
// not wait for it.
type leaderWatch struct {
	stop  context.CancelFunc
	first chan struct{} // closed with the first answer
	done  chan struct{} // closed when it asks no more
	last  atomic.Pointer[answer]
}

// answer is which node led, -1 if none is known to, at some time since it was asked.
type answer struct {
	leader int
	asked  int64 // of the run's clock
}

// askAgain is how long it rests between two questions.
const askAgain = 100 * time.Millisecond

// watchLeader begins to ask. Its answer is at most as old as one question and a rest.
func (l *line) watchLeader(ctx context.Context) *leaderWatch {
	w := &leaderWatch{first: make(chan struct{}), done: make(chan struct{})}
	w.last.Store(&answer{leader: -1})
	ctx, w.stop = context.WithCancel(ctx)
	if !l.state.leads {
		close(w.first)
		return w
	}
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			asked := l.clock()
			if leader, err := l.state.cluster.Leader(ctx); err == nil && w.last.Swap(&answer{leader, asked}).leader < 0 {
				close(w.first)
			}
			select {
			case <-ctx.Done():
			case <-time.After(askAgain):
			}
		}
	}()
	return w
}

// leader returns the latest answer, which is none if it is not needed or the nodes
// are equal. Where it is needed it waits for the first one, so long.
func (w *leaderWatch) leader(needed bool, within time.Duration) (answer, error) {
	if needed {
		timer := time.NewTimer(within)
		defer timer.Stop()
		select {
		case <-w.first:
		case <-w.done:
			if w.last.Load().leader < 0 {
				return answer{}, errors.New("no node led when it was due, and none did until the drive ended")
			}
		case <-timer.C:
			return answer{}, fmt.Errorf("no node led when it was due, and none within %s after", short(within))
		}
	}
	w.stop()
	return *w.last.Load(), nil
}
