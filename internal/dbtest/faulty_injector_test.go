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

// Injector injects the faults of a script in all sessions of the databases that it wraps.
type Injector struct {
	script   Script
	off      atomic.Bool
	sessions atomic.Uint64

	mu    sync.Mutex
	fired map[Fault]int
}

// newInjector returns an enabled injector.
func newInjector(script Script) *Injector {
	return &Injector{script: script, fired: map[Fault]int{}}
}

// Enable switches the injector on or off.
func (in *Injector) Enable(on bool) { in.off.Store(!on) }

// Fired returns how often a fault has happened. A fault that falsifies a result counts only if the result changed.
func (in *Injector) Fired(fault Fault) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.fired[fault]
}

// count adds one to the number of times that a fault has happened.
func (in *Injector) count(fault Fault) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.fired[fault]++
}

// Wrap returns the database with faulty sessions. It keeps the optional interfaces of the database, except several
// transactions on one connection.
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

// errInjected is the cause of every injected error.
var errInjected = errors.New("a fault was injected")

// line is the part of a faulty session that all data models share. It draws and injects the faults of each step.
type line struct {
	in        *Injector
	random    *rand.Rand
	rollback  func(ctx context.Context) // rolls back the transaction of the wrapped session
	broken    bool                      // set until Reset succeeds
	resolving bool                      // set while the outcome of a commit is unknown
}

// line returns the shared part of a new session.
func (in *Injector) line(rollback func(ctx context.Context)) line {
	return line{in: in, random: rand.New(rand.NewPCG(in.script.Seed, in.sessions.Add(1))), rollback: rollback}
}

// draw returns the fault for a step among the given faults, or an empty fault. It waits if the script delays the step.
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

// among reports whether faults contains fault.
func among(faults []Fault, fault Fault) bool {
	for _, f := range faults {
		if f == fault {
			return true
		}
	}
	return false
}

// do executes a step or injects a fault that a correct database may show.
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
	l.broken = l.broken && err != nil // Reset repairs the session
	return err
}

// lost breaks the connection. If the step was a commit, its outcome is unknown.
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

// commitStep returns LookUp if the commit belongs to a look-up, otherwise Commit.
func (l *line) commitStep() Step {
	if l.resolving {
		return LookUp
	}
	return Commit
}

// commit executes a commit as do executes a step.
func (l *line) commit(ctx context.Context, send func() error) error {
	err := l.do(ctx, l.commitStep(), send)
	if err == nil {
		l.resolving = false
	}
	return err
}
