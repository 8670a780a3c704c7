package dbtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"stroppy/internal/db"
)

// Injector carries a script out in all sessions of the databases that it wraps.
type Injector struct {
	script   Script
	off      atomic.Bool
	sessions atomic.Uint64

	mu    sync.Mutex
	fired map[Fault]int
}

// newInjector makes an injector that is on.
func newInjector(script Script) *Injector {
	return &Injector{script: script, fired: map[Fault]int{}}
}

// Enable switches the injector on or off, for what is not to be disturbed.
func (in *Injector) Enable(on bool) { in.off.Store(!on) }

// Fired returns how often a fault has happened. One that falsifies counts where it
// had something to falsify.
func (in *Injector) Fired(fault Fault) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.fired[fault]
}

func (in *Injector) count(fault Fault) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.fired[fault]++
}

// Wrap returns the database with sessions that misbehave. It has the capabilities
// of the one inside but for several transactions on one connection.
func (in *Injector) Wrap(database db.Database) db.Database {
	switch d := database.(type) {
	case db.SQL:
		own := &sqlDatabase{SQL: d, in: in, past: past{database: d}, fork: newFork(d)}
		if bulk, ok := database.(db.BulkLoader); ok {
			return bulkDatabase{own, bulk}
		}
		return own
	case db.KV:
		own := &kvDatabase{KV: d, in: in, first: map[string][]byte{}}
		if c, ok := database.(db.Constrainer); ok {
			return constrainedKV{own, c}
		}
		return own
	}
	panic("the database has no model that can be wrapped")
}

// errInjected is what an injected error wraps.
var errInjected = errors.New("a fault was injected")

// line is what a session of any model has in common: it draws what happens at each
// step, and lets it happen.
type line struct {
	in        *Injector
	random    *rand.Rand
	rollback  func(ctx context.Context) // gives up the transaction inside
	broken    bool                      // until Reset
	resolving bool                      // the outcome of a commit is unknown
}

func (in *Injector) line(rollback func(ctx context.Context)) line {
	return line{in: in, random: rand.New(rand.NewPCG(in.script.Seed, in.sessions.Add(1))), rollback: rollback}
}

// draw returns what happens at a step, of the faults that are asked for; empty for
// nothing. It waits where the step is to be delayed.
func (l *line) draw(ctx context.Context, step Step, faults ...Fault) Fault {
	if l.in.off.Load() {
		return ""
	}
	for _, r := range l.in.script.Rules {
		if r.Step != step || !among(faults, r.Fault) || l.random.Float64() >= r.Rate {
			continue
		}
		if r.Fault != Delay {
			return r.Fault
		}
		l.in.count(Delay)
		select {
		case <-ctx.Done():
		case <-time.After(r.Wait):
		}
	}
	return ""
}

func among(faults []Fault, fault Fault) bool {
	for _, f := range faults {
		if f == fault {
			return true
		}
	}
	return false
}

// do carries a step out, or lets a fault happen that breaks no promise.
func (l *line) do(ctx context.Context, step Step, send func() error) error {
	if l.broken && step != Reset {
		return &db.Error{Class: db.Unavailable, Op: string(step), Err: errInjected}
	}
	fault := l.draw(ctx, step, Refuse, Lose, Cut, Delay)
	switch fault {
	case Refuse:
		l.rollback(ctx)
		l.in.count(fault)
		return &db.Error{Class: db.Aborted, Op: string(step), Err: errInjected}
	case Cut:
		if err := send(); err != nil {
			return err
		}
		fallthrough
	case Lose:
		l.in.count(fault)
		return l.lost(ctx, step)
	}
	err := send()
	l.broken = l.broken && err != nil // a Reset has mended it
	return err
}

// lost ends the connection. Nobody knows then what became of a commit.
func (l *line) lost(ctx context.Context, step Step) error {
	l.rollback(ctx)
	l.broken = true
	class := db.Unavailable
	if step == Commit || step == LookUp || step == Load {
		class = db.Unknown
		l.resolving = true
	}
	return &db.Error{Class: class, Op: string(step), Err: errInjected}
}

// commitStep is Commit, or LookUp where the commit is that of a look-up.
func (l *line) commitStep() Step {
	if l.resolving {
		return LookUp
	}
	return Commit
}

// commit is do for a commit.
func (l *line) commit(ctx context.Context, send func() error) error {
	err := l.do(ctx, l.commitStep(), send)
	if err == nil {
		l.resolving = false
	}
	return err
}
