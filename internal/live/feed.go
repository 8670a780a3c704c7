// Package live shows a run in progress as the report's page in a browser, and as metrics for Prometheus. Both
// read from a Feed. Observers do not affect the measurement.
package live

import (
	"slices"
	"sync"
	"time"

	"stroppy/internal/fault"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/stats"
)

// PhaseDrive is the phase of a run that sends transactions.
const PhaseDrive = "drive"

// changeEvery is the interval in which a phase's progress counts as a change.
const changeEvery = time.Second

// Feed holds what is known of the current run. It is a run.Progress. Any goroutine may call its methods.
type Feed struct {
	mu      sync.Mutex
	now     Snapshot
	changed time.Time // when the progress of the phase last counted as a change
	next    int       // the second of the load phase that was not seen yet
	warm    bool      // the warm-up is over
}

// Snapshot is the state of a run at one time. It and its content are immutable.
type Snapshot struct {
	Version uint64 // grows with every change
	Run     string // the name of the run's directory
	Phase   string // what is being done; empty before the first phase
	Phases  []string
	Since   time.Time      // when the phase began
	Latest  run.State      // of the phase
	Began   time.Time      // the load phase; zero before it
	State   run.State      // at most a second old during the load phase; the last state after it
	Result  *report.Result // as far as it is known; nil before that
	Faults  []fault.Record // as they were injected, by their number
	Seconds []stats.Second // of the load phase, the warm-up included

	Kinds     []run.KindCount   // of the load phase, the warm-up included; nil before it
	Errors    map[string]uint64 // of the same, by the name of their class
	Latencies *stats.Reading    // of all committed transactions of the load phase; nil before it

	KindLatencies map[string]*stats.Reading // the same by kind, of those that committed some
	// Warmup is the state at the end of the warm-up, which is not measured; zero: there was no warm-up.
	Warmup          run.State
	WarmupLatencies *stats.Reading

	Final  *report.Input // the content of the run's directory; nil while the run goes on
	Notes  []string      // further notes for the reader
	Broken string        // why there will be no result; empty: there may be one
}

// Over reports whether the snapshot is final.
func (s *Snapshot) Over() bool { return s.Final != nil || s.Broken != "" }

// NewFeed returns a feed of a run that has not begun.
func NewFeed() *Feed { return &Feed{now: Snapshot{Version: 1}} }

// Snapshot returns the current state.
func (f *Feed) Snapshot() Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *Feed) update(change func(now *Snapshot)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.now)
	f.now.Version++
}

// Fresh starts another run, whose state is unknown yet.
func (f *Feed) Fresh() {
	f.update(func(now *Snapshot) {
		*now = Snapshot{Version: now.Version}
		f.changed, f.next, f.warm = time.Time{}, 0, false
	})
}

// Named sets the name of the run's directory.
func (f *Feed) Named(name string) { f.update(func(now *Snapshot) { now.Run = name }) }

// Begin starts a phase.
func (f *Feed) Begin(phase string) {
	f.update(func(now *Snapshot) {
		if drive := now.Latest.Drive; drive != nil { // it is over
			f.take(drive.Seconds(f.next))
		}
		now.Since, now.Latest = time.Now(), run.State{}
		if now.Phase = phase; !slices.Contains(now.Phases, phase) {
			now.Phases = append(slices.Clip(now.Phases), phase)
		}
		if phase == PhaseDrive {
			now.Began = now.Since
		}
		if now.State.Drive == nil { // the measurements of the load phase stay
			now.State = run.State{}
		}
	})
}

// Known sets what is known of the result.
func (f *Feed) Known(r *report.Result) { f.update(func(now *Snapshot) { now.Result = r }) }

// Fault keeps a fault in place of what was known of it before.
func (f *Feed) Fault(one fault.Record) {
	f.update(func(now *Snapshot) {
		now.Faults = slices.Clone(now.Faults)
		if at := slices.IndexFunc(now.Faults, func(other fault.Record) bool { return other.Number == one.Number }); at >= 0 {
			now.Faults[at] = one
		} else {
			now.Faults = append(now.Faults, one)
		}
	})
}

// Show sets the progress of the phase. The load phase is read once a second.
func (f *Feed) Show(s run.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now.Latest = s
	if s.Drive != nil {
		if fresh := s.Drive.Seconds(f.next); len(fresh) > 0 || f.now.State.Drive == nil {
			f.take(fresh)
			f.now.Version++
		}
		return
	}
	if f.now.State.Drive == nil {
		f.now.State = s
	}
	if now := time.Now(); now.Sub(f.changed) >= changeEvery {
		f.changed = now
		f.now.Version++
	}
}

// take stores the latest state of the load phase and its new seconds. It records the state at the end of the
// warm-up once, to a second.
func (f *Feed) take(fresh []stats.Second) {
	n := &f.now
	n.State, n.KindLatencies = n.Latest, n.Latest.Drive.KindLatencies()
	n.Latencies = stats.Joined(n.KindLatencies)
	n.Kinds, n.Errors = n.Latest.Drive.Kinds(), n.Latest.Drive.Errors()
	if len(fresh) > 0 {
		// Earlier snapshots do not see what is appended.
		n.Seconds = append(n.Seconds, fresh...)
		f.next = fresh[len(fresh)-1].Second + 1
	}
	if f.warm || n.Result == nil || n.Result.Drive == nil || n.State.Elapsed.Seconds() < n.Result.Drive.WarmupSeconds {
		return
	}
	f.warm = true
	if n.Result.Drive.WarmupSeconds > 0 {
		n.Warmup, n.WarmupLatencies = n.State, n.Latencies
	}
}

// End sets the result from the finished run's directory, with notes for the reader.
func (f *Feed) End(in report.Input, notes ...string) {
	in.Live = false
	f.update(func(now *Snapshot) { now.Final, now.Notes = &in, notes })
}

// Break sets the reason why there will be no result.
func (f *Feed) Break(why string) { f.update(func(now *Snapshot) { now.Broken = why }) }
