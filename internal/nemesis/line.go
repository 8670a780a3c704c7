package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"stroppy/internal/cluster"
)

// line carries out one line of the script, one injection after the other.
type line struct {
	*Nemesis
	number   int // from 1
	fault    Fault
	rng      *rand.Rand
	reported bool // something was reported of this line
}

func (l *line) run(ctx context.Context) {
	for k := 0; ; k++ {
		// Every injection has chance of its own: what came before does not change it.
		rng := rand.New(rand.NewPCG(l.rng.Uint64(), l.rng.Uint64()))
		due, ok := l.fault.due(k, rng)
		if !ok {
			return
		}
		effect := l.fault.choose(k, rng)
		record := Injection{Line: l.number, Fault: effect.String(), Scheduled: int64(due)}
		if late := time.Duration(l.clock()) - due; k > 0 && late > l.late {
			l.end(record, skipError(fmt.Sprintf("the one before it was not over until %s", short((due+late).Round(time.Millisecond)))))
			continue
		}
		if !l.injectWhenDue(ctx, effect, record, rng) {
			l.unreached(record)
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
// It returns false when the load phase has ended.
func (l *line) injectWhenDue(ctx context.Context, e effect, record Injection, rng *rand.Rand) bool {
	due := time.Duration(record.Scheduled)
	if !l.sleep(ctx, due-askAhead) {
		return false
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	answers := l.watchLeader(asking)
	if !l.sleep(ctx, due) {
		return false
	}
	last, err := latest(ctx, answers, e.needsLeader() && l.state.leads)
	stop()
	if err != nil {
		l.end(record, err)
		return ctx.Err() == nil
	}
	if late := time.Duration(l.clock()) - due; late > l.late {
		record.Late = "it waited until a node led"
	}
	c := situation{rng: rng, drive: ctx}
	c.leader, c.age = l.leads(ctx, last)
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

// leads asks once more who leads, now that it matters. Where the answer does not
// come in time it is the node that led last, and the age of that knowledge.
func (l *line) leads(ctx context.Context, last answer) (leader int, age time.Duration) {
	if last.leader < 0 {
		return -1, 0
	}
	limited, cancel := context.WithTimeout(ctx, askAgain)
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
	plan := e.kind().plan
	if plan == nil {
		plan = planNodes
	}
	i, err := plan(e, s, c)
	if err != nil {
		return nil, err
	}
	record.Target = i.target
	record.Injected = l.clock()
	i.record, i.settled = record, make(chan struct{})
	s.injections = append(s.injections, i)
	return i, nil
}

// inject does what was planned. It goes on when the drive ends, so that it is
// known what there is to heal.
func (l *line) inject(i *injection) {
	ctx, cancel := context.WithTimeout(context.Background(), injectLimit)
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
// load phase; then it returns false.
func (l *line) close(ctx context.Context, i *injection, h healing) bool {
	failed := i.record.Err != ""
	lasts := l.fault.when.lasts
	if h == healAlways {
		lasts = l.fault.when.duration()
	}
	nothing := i.effect.Heal == nil || !failed && (h == healNever || h == healIfAsked && lasts == 0)
	if !nothing && !failed {
		l.report(&i.record)
	}
	if nothing || failed || h == healAtOnce && lasts == 0 {
		i.healing.Store(true) // before anybody else may heal it
		close(i.settled)
		if nothing {
			l.over(i, true)
		} else {
			l.heal(i)
		}
		return ctx.Err() == nil
	}
	end := time.Duration(i.record.Injected) + lasts
	close(i.settled)
	// Between the end of the sleep and the heal the load phase may end: then whoever
	// comes first heals.
	if lasts == 0 || !l.sleep(ctx, end) || !i.healing.CompareAndSwap(false, true) {
		return false
	}
	l.heal(i)
	return ctx.Err() == nil
}

// sleep waits until a time of the run's clock; false: ctx ended first.
func (l *line) sleep(ctx context.Context, until time.Duration) bool {
	return cluster.Sleep(ctx, until-time.Duration(l.clock())) == nil && ctx.Err() == nil
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
	l.report(&record)
}

// unreached reports a line that the load phase left no time for: what the script
// asked for was never done.
func (l *line) unreached(record Injection) {
	if !l.reported {
		l.end(record, fmt.Errorf("the drive ended at %s, before its time, %s: drive for longer or inject it earlier",
			short(time.Duration(l.clock()).Round(time.Millisecond)), short(time.Duration(record.Scheduled))))
	}
}

// answer is which node led, -1 if none is known to, at some time since it was asked.
type answer struct {
	leader int
	asked  int64 // of the run's clock
}

const askEvery = 100 * time.Millisecond

// watchLeader asks who leads until ctx ends, so that an injection need not wait for it.
// The channel has the latest answer, which is at most as old as one question and askEvery.
func (l *line) watchLeader(ctx context.Context) <-chan answer {
	answers := make(chan answer, 1)
	if l.state.leads {
		go func() {
			for ctx.Err() == nil {
				asked := l.clock()
				if leader, err := l.state.cluster.Leader(ctx); err == nil {
					select {
					case <-answers:
					default:
					}
					answers <- answer{leader, asked}
				}
				_ = cluster.Sleep(ctx, askEvery) // the loop sees the end
			}
		}()
	}
	return answers
}

// latest returns the latest answer, which may be none if it is not needed. Where it is
// needed it waits for the first one.
func latest(ctx context.Context, answers <-chan answer, needed bool) (answer, error) {
	none := answer{leader: -1}
	select {
	case last := <-answers:
		return last, nil
	default:
	}
	if !needed {
		return none, nil
	}
	select {
	case last := <-answers:
		return last, nil
	case <-ctx.Done():
		return none, errors.New("no node led when it was due, and none did until the drive ended")
	case <-time.After(awaitLeader):
		return none, fmt.Errorf("no node led when it was due, and none within %s after", short(awaitLeader))
	}
}
