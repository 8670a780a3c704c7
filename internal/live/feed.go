// Package live shows a running run: as the report's page in a browser, and as metrics
// for Prometheus, both from a Feed. Watching a run does not affect the measurement.
package live

import (
	"slices"
	"sync"
	"time"

	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/stats"
)

// PhaseDrive is the phase of a run in which transactions are sent.
const PhaseDrive = "drive"

// changeEvery is how often what a phase says of its progress counts as a change.
const changeEvery = time.Second

// Feed is what is known of the current run. It is a run.Progress; all of its
// methods may be called by any goroutine.
type Feed struct {
	mu      sync.Mutex
	now     Snapshot
	changed time.Time // when the progress of the phase last counted as a change
	next    int       // the second of the load phase that was not seen yet
	warm    bool      // the warm-up is over
}

// Snapshot is a run at one time. Neither it nor what it points to is changed.
type Snapshot struct {
	Version uint64 // grows with every change
	Run     string // the name of the run's directory
	Phase   string // what is being done; empty before the first phase
	Phases  []string
	Since   time.Time      // when the phase began
	Latest  run.State      // of the phase
	Began   time.Time      // the load phase; zero before it
	State   run.State      // Latest, a second old at most in the load phase; that of the load phase after it
	Result  *report.Result // as far as it is known; nil before that
	Faults  []report.Fault // as they were injected, by their number
	Seconds []stats.Second // of the load phase, the warm-up included

	Kinds     []run.KindCount   // of the load phase, the warm-up included; nil before it
	Errors    map[string]uint64 // of the same, by the name of their class
	Latencies *stats.Reading    // of all committed transactions of the load phase; nil before it

	KindLatencies map[string]*stats.Reading // the same by kind, of those that committed some
	// What was there when the warm-up ended, which is not measured; zero: there was none.
	Warmup          run.State
	WarmupLatencies *stats.Reading

	Final  *report.Input // what the run's directory says of it; nil while it runs
	Notes  []string      // further notes for the reader
	Broken string        // why nothing more will come, where there is no result
}

// Over says that nothing will change any more.
func (s *Snapshot) Over() bool { return s.Final != nil || s.Broken != "" }

// NewFeed returns a feed of a run that has not begun.
func NewFeed() *Feed { return &Feed{now: Snapshot{Version: 1}} }

// Snapshot returns what is known now.
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

// Fresh begins another run, of which nothing is known yet.
func (f *Feed) Fresh() {
	f.update(func(now *Snapshot) {
		*now = Snapshot{Version: now.Version}
		f.changed, f.next, f.warm = time.Time{}, 0, false
	})
}

// Named sets the name of the run's directory.
func (f *Feed) Named(name string) { f.update(func(now *Snapshot) { now.Run = name }) }

// Begin names the phase that begins.
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

// Known keeps what is known of the result.
func (f *Feed) Known(r *report.Result) { f.update(func(now *Snapshot) { now.Result = r }) }

// Fault keeps a fault in place of what was known of it before.
func (f *Feed) Fault(fault report.Fault) {
	f.update(func(now *Snapshot) {
		now.Faults = slices.Clone(now.Faults)
		if at := slices.IndexFunc(now.Faults, func(other report.Fault) bool { return other.Number == fault.Number }); at >= 0 {
			now.Faults[at] = fault
		} else {
			now.Faults = append(now.Faults, fault)
		}
	})
}

// Show keeps how far the phase is. The load phase is read once a second.
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

// take takes the latest state of the load phase and its fresh seconds, and notes once
// what the warm-up has done, which is known to a second.
func (f *Feed) take(fresh []stats.Second) {
	n := &f.now
	n.State, n.KindLatencies = n.Latest, n.Latest.Drive.KindLatencies()
	n.Latencies = stats.Joined(n.KindLatencies)
	n.Kinds, n.Errors = n.Latest.Drive.Kinds(), n.Latest.Drive.Errors()
	if len(fresh) > 0 {
		// Those who have an earlier snapshot see none of what is appended.
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

// Break reports why there is no result, and that none will come.
func (f *Feed) Break(why string) { f.update(func(now *Snapshot) { now.Broken = why }) }

// Active says that a fault is in effect. One that could not be healed is so to
// the end; what could not be injected, or was left out, never was.
func Active(f report.Fault) bool { return f.Error == "" && f.Skipped == "" && f.HealedSeconds == nil }
