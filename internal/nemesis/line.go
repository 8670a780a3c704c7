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
	index int
	fault Fault
	rng   *rand.Rand
	told  bool // something was told of this line
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
			l.leave(record, fmt.Sprintf("the one before it was not over until %s", short((due+late).Round(time.Millisecond))))
			continue
		}
		if !l.attack(ctx, effect, record, rng) {
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

// attack injects one effect when it is due and heals it when its time has come.
// It returns false when the drive has ended.
func (l *line) attack(ctx context.Context, e effect, record Injection, rng *rand.Rand) bool {
	due := time.Duration(record.Scheduled)
	if !l.sleep(ctx, due-l.bounds.ahead) {
		l.unreached(record)
		return false
	}
	s := l.scout(ctx)
	defer s.stop()
	if !l.sleep(ctx, due) {
		l.unreached(record)
		return false
	}
	leader, err := s.leader(needsLeader(e), l.bounds.leader)
	if err != nil {
		l.fail(record, err)
		return ctx.Err() == nil
	}
	if late := time.Duration(l.clock()) - due; late > l.bounds.late {
		record.Late = "it waited until a node led"
	}
	m := moment{rng: rng, drive: ctx}
	m.leader, m.age = l.leads(ctx, leader)
	w, err := l.open(e, record, m)
	if w == nil {
		if err != nil {
			l.explain(record, err)
			return true
		}
		l.unreached(record)
		return false
	}
	l.told = true
	l.inject(w)
	return l.close(ctx, w, e.heals())
}

// leads asks once more who leads, now that it matters. Where the answer does not
// come in time it is the node that led last, and the age of that knowledge.
func (l *line) leads(ctx context.Context, last answer) (leader int, age time.Duration) {
	if last.leader < 0 {
		return -1, 0
	}
	limited, cancel := context.WithTimeout(ctx, l.bounds.sure)
	defer cancel()
	if now, err := l.ground.cluster.Leader(limited); err == nil {
		return now, 0
	}
	return last.leader, time.Duration(l.clock() - last.asked)
}

// open plans the wound and puts it on the ground; it returns nil without an error
// when the drive has ended.
func (l *line) open(e effect, record Injection, m moment) (*wound, error) {
	g := l.ground
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil
	}
	w, err := e.plan(g, m)
	if err != nil {
		return nil, err
	}
	record.Target = w.target
	w.record = record
	w.settled = make(chan struct{})
	w.record.Injected = l.clock()
	g.wounds = append(g.wounds, w)
	return w, nil
}

// inject does what was planned and looks for the effect. It goes on when the
// drive ends, so that it is known what there is to heal.
func (l *line) inject(w *wound) {
	ctx, cancel := context.WithTimeout(context.Background(), l.bounds.inject)
	defer cancel()
	err := w.inject(ctx)
	if err == nil {
		w.record.Verified, err = w.verify(ctx)
	}
	if err != nil {
		w.record.Err, w.record.Verified = err.Error(), ""
		return
	}
	w.record.InEffect = l.clock()
}

// close heals the wound when its time has come, or leaves it to the end of the
// drive; then it returns false.
func (l *line) close(ctx context.Context, w *wound, h healing) bool {
	failed := w.record.Err != ""
	lasts := l.fault.when.duration()
	if h != healAlways {
		lasts = l.fault.when.lasts
	}
	switch {
	case w.heal == nil, !failed && (h == healNever || h == healIfAsked && lasts == 0):
		w.claimed.Store(true)
		l.ground.remove(w)
		close(w.settled)
		l.over(w)
		return ctx.Err() == nil
	case failed, h == healAtOnce && lasts == 0:
		if !failed {
			l.tell(w.record)
		}
		claimed := w.claimed.CompareAndSwap(false, true)
		close(w.settled)
		if claimed {
			l.heal(w)
		}
		return ctx.Err() == nil
	}
	l.tell(w.record)
	end := time.Duration(w.record.Injected) + lasts
	close(w.settled)
	if lasts == 0 {
		<-ctx.Done()
		return false
	}
	// Between the end of the sleep and the claim the drive may end: then whoever
	// claims first heals.
	if !l.sleep(ctx, end) || !w.claimed.CompareAndSwap(false, true) {
		return false
	}
	l.heal(w)
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

// leave tells that an injection was left out.
func (l *line) leave(record Injection, why string) {
	record.Skipped = why
	record.Over = true
	l.told = true
	l.tell(record)
}

// fail tells that an injection could not be made.
func (l *line) fail(record Injection, err error) {
	record.Err = err.Error()
	record.Over = true
	l.told = true
	l.tell(record)
}

// explain tells that no wound could be planned.
func (l *line) explain(record Injection, err error) {
	var skip skipError
	if errors.As(err, &skip) {
		l.leave(record, skip.Error())
		return
	}
	l.fail(record, err)
}

// unreached tells of a line that the drive left no time for: what the script
// asked for was never done.
func (l *line) unreached(record Injection) {
	if !l.told {
		l.fail(record, fmt.Errorf("the drive ended at %s, before its time, %s: drive for longer or inject it earlier",
			short(time.Duration(l.clock()).Round(time.Millisecond)), short(time.Duration(record.Scheduled))))
	}
}

// scout learns who leads shortly before an injection, so that the injection need
// not wait for it.
type scout struct {
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

// askAgain is how long a scout rests between two questions.
const askAgain = 100 * time.Millisecond

// scout begins to ask. Its answer is at most as old as one question and a rest.
func (l *line) scout(ctx context.Context) *scout {
	s := &scout{first: make(chan struct{}), done: make(chan struct{})}
	s.last.Store(&answer{leader: -1})
	ctx, s.stop = context.WithCancel(ctx)
	if !l.ground.leads {
		close(s.first)
		return s
	}
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			asked := l.clock()
			if leader, err := l.ground.cluster.Leader(ctx); err == nil && s.last.Swap(&answer{leader, asked}).leader < 0 {
				close(s.first)
			}
			select {
			case <-ctx.Done():
			case <-time.After(askAgain):
			}
		}
	}()
	return s
}

// leader returns the latest answer, which is none if it is not needed or the nodes
// are equal. Where it is needed it waits for the first one, so long.
func (s *scout) leader(needed bool, patience time.Duration) (answer, error) {
	if needed {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-s.first:
		case <-s.done:
			if s.last.Load().leader < 0 {
				return answer{}, errors.New("no node led when it was due, and none did until the drive ended")
			}
		case <-timer.C:
			return answer{}, fmt.Errorf("no node led when it was due, and none within %s after", short(patience))
		}
	}
	s.stop()
	return *s.last.Load(), nil
}
