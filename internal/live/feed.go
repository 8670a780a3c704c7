// Package live shows a run in progress as the report's page in a browser, and as metrics for Prometheus. Both
// read from a Feed. Observers do not affect the measurement.
package live

import (
	"fmt"
	"slices"
	"strings"
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

// input returns the input of the report's page.
func (s *Snapshot) input() report.Input {
	if s.Final != nil {
		return *s.Final
	}
	in := report.Input{Result: s.result(), Seconds: s.Seconds, Live: s.Broken == ""}
	if s.Broken != "" {
		in.Result.Reason = "The run could not be carried out: " + s.Broken
	}
	return in
}

func (s *Snapshot) data() *report.Document {
	in := s.input()
	if s.driving() && !s.Over() {
		in.Now, in.SoFar = s.rateNow(), s.outcomes()
	}
	d := report.RunDocument(in)
	for _, text := range s.Notes {
		d.Notes = append(d.Notes, report.Note{Kind: "note", Text: text})
	}
	if s.Over() {
		return d
	}
	d.Reason = s.reason()
	d.Notes = append(s.warnings(), d.Notes...)
	s.verdictSoFar(d)
	return d
}

// rateNow returns the throughput of the last whole second and the requested rate.
func (s *Snapshot) rateNow() []report.Figure {
	last := s.State.Second
	if last == nil {
		return nil
	}
	var below []string
	if s.State.Target > 0 {
		below = append(below, "asked for "+report.RateText(s.State.Target)+"/s")
	}
	return []report.Figure{report.NewFigure("Throughput, last second", report.RateText(float64(last.Committed)), "/s", below...)}
}

// verdictSoFar adds the result of the check during the run. A violation is final, but the absence of one
// decides nothing.
func (s *Snapshot) verdictSoFar(d *report.Document) {
	l := s.State.LiveCheck
	if l == nil || finished(s.Result) {
		return
	}
	looked := report.Counted(l.Checked, "transaction") + " checked so far"
	if l.Skipped > 0 {
		looked += fmt.Sprintf(", and %s left out until the end of the run because the check did not keep up", report.Counted(l.Skipped, "transaction"))
	}
	if len(l.Violations) == 0 {
		d.Reason += fmt.Sprintf(" The check beside the clients has found no violation (%s).", looked)
		return
	}
	names := report.Texts(l.Violations, func(v run.LiveViolation) string { return v.Check })
	d.Verdict = "invalid"
	d.Reason = fmt.Sprintf("The check beside the clients has found a violation of %s (%s). The run goes on. ", strings.Join(names, ", "), looked) + s.phase()
	d.Title = "Invalid" + strings.TrimPrefix(d.Title, "Running")
}

// driving reports whether the measurements are from a load phase in progress.
func (s *Snapshot) driving() bool {
	return s.Phase == PhaseDrive && s.Result != nil && s.Result.Drive != nil
}

// result returns the result as far as it is known, with the current load phase.
func (s *Snapshot) result() *report.Result {
	r := report.Result{Schema: report.Schema, Verdict: "unknown"}
	if s.Result != nil {
		r = *s.Result
	}
	if s.Broken != "" {
		return &r
	}
	r.Finished = true // nothing cut it off
	if !finished(s.Result) {
		r.Faults = s.Faults
		r.Checks = s.violations()
	}
	if s.driving() {
		r.Drive = s.drive()
	}
	return &r
}

// violations returns the checks with a violation found during the run. Drawings become files at the end of
// the run.
func (s *Snapshot) violations() (list []report.Check) {
	if s.State.LiveCheck == nil {
		return nil
	}
	for _, v := range s.State.LiveCheck.Violations {
		c := v.Found
		c.Anomalies = slices.Clone(c.Anomalies)
		for i := range c.Anomalies {
			c.Anomalies[i].Drawing = ""
		}
		list = append(list, c)
	}
	return list
}

// drive returns the load phase since its warm-up.
func (s *Snapshot) drive() *report.Drive {
	d := *s.Result.Drive
	c, w := s.State.Counters, s.Warmup.Counters
	elapsed := s.State.Elapsed.Seconds() - d.WarmupSeconds
	if elapsed < 0 {
		return &d
	}
	d.Seconds = elapsed
	d.Committed, d.Aborted, d.Unknown = c.Committed-w.Committed, c.Aborted-w.Aborted, c.Unknown-w.Unknown
	// The rule that rejected a transaction is known only at the end.
	d.Rejected = report.Rejected{report.Unsplit: c.Rejected - w.Rejected}
	d.Conflicts, d.Reconnects = c.Conflicts, c.Reconnects // retries are among the outcomes: what they took is not known yet
	d.Outcomes = map[string]*report.Latency{}
	d.TPS = &report.Throughput{}
	if elapsed > 0 {
		d.TPS.Mean = new(float64(d.Committed) / elapsed)
	}
	from, to := int(d.WarmupSeconds+1-1e-9), int(s.State.Elapsed/time.Second)
	if to > from {
		d.TPS.Median, d.TPS.Max = stats.TPS(s.Seconds, from, to)
	}
	for _, second := range s.Seconds {
		d.MaxBacklog = max(d.MaxBacklog, second.Waiting)
	}
	d.Latency, d.Histogram = latency(s.measured())
	return &d
}

// measured returns the latencies since the warm-up.
func (s *Snapshot) measured() *stats.Reading {
	if s.Latencies == nil || s.WarmupLatencies == nil {
		return s.Latencies
	}
	return s.Latencies.Since(s.WarmupLatencies)
}

// latency returns a reading in the form of the report, or nil if it is empty.
func latency(r *stats.Reading) (*report.Latency, *report.Histogram) {
	if r == nil || r.Count() == 0 {
		return nil, nil
	}
	ms := func(q float64) float64 { return float64(r.Quantile(q)) / float64(time.Millisecond) }
	return &report.Latency{
		Mean: sum(r.Buckets()) / float64(r.Count()) * 1e3,
		P50:  ms(0.5), P90: ms(0.9), P95: ms(0.95), P99: ms(0.99), P999: ms(0.999), Max: ms(1),
	}, report.NewHistogram(r.Buckets())
}

func (s *Snapshot) reason() string {
	if finished(s.Result) {
		return fmt.Sprintf("The run came to %s: %s What comes next is on its way.", strings.ToUpper(s.Result.Verdict), s.Result.Reason)
	}
	return s.phase() + " Nothing is decided before its end."
}

// phase returns a sentence about the progress of the run.
func (s *Snapshot) phase() string {
	st, text := s.State, fmt.Sprintf("Its phase is %s.", s.Phase)
	switch driving := s.Phase == PhaseDrive; {
	case s.Phase == "":
		text = "The run is about to begin."
	case driving && st.Of > 0 && st.Elapsed >= st.Of:
		text = "It waits for the last transactions."
	case driving && st.Of > 0:
		text = fmt.Sprintf("The load phase takes another %s.", (st.Of - st.Elapsed).Round(time.Second))
	case driving && st.Total > 0:
		text = fmt.Sprintf("Load phase: %s of %s are done.", report.Group(st.Done), report.Counted(st.Total, "transaction"))
	case st.Drive == nil && st.Total > 0:
		text = fmt.Sprintf("Its phase is %s: %s of %s.", s.Phase, report.Group(st.Done), report.Group(st.Total))
	}
	return text
}

func (s *Snapshot) warnings() []report.Note {
	n := &report.Notes{}
	for _, f := range s.Faults {
		if f.Active() {
			n.Warn("The fault %s is in effect on %s since %.1f s.", f.Fault, f.Target, f.At.Seconds())
		}
	}
	if !s.driving() {
		return n.All()
	}
	c := s.State.Counters
	if c.Reconnecting > 0 {
		n.Warn("%d of %d clients have lost the database and try to reach it again.", c.Reconnecting, s.State.Clients)
	}
	if c.Backlog > 0 {
		n.Warn("Due and not sent yet: %s.", report.Counted(c.Backlog, "transaction"))
	}
	if c.Shed > 0 {
		n.Warn("Due while the queue of late work was full, and never sent: %s. The latencies do not hold them.", report.Counted(c.Shed, "transaction"))
	}
	return n.All()
}

// outcomes counts the transactions by outcome, including the warm-up.
func (s *Snapshot) outcomes() []report.DataTable {
	c := s.State.Counters
	t := report.NewTable("", "So far, the warm-up included.", []int{0, 2}, "outcome", "transactions", "of these")
	count := report.Group
	t.Add("committed", count(c.Committed), "")
	t.Add("rejected", count(c.Rejected), "by a rule of the workload")
	t.Add("aborted", count(c.Aborted), fmt.Sprintf("given up; of all, conflicts %s and retries %s", count(c.Conflicts), count(c.Retries)))
	t.Add("unknown", count(c.Unknown), "in doubt; reconnects "+count(c.Reconnects))
	t.Add("not sent", count(c.Backlog+c.Shed), fmt.Sprintf("waiting %s · shed %s", count(c.Backlog), count(c.Shed)))
	return []report.DataTable{t}
}

// finished reports whether the run has a final verdict.
func finished(r *report.Result) bool { return r != nil && r.Finished }

// middle returns the middle of a bucket in seconds.
func middle(b stats.Bucket) float64 { return (b.Lower + b.Upper).Seconds() / 2 }

// sum returns the approximate sum of all durations in seconds, with each in the middle of its bucket.
func sum(buckets []stats.Bucket) (total float64) {
	for _, b := range buckets {
		total += middle(b) * float64(b.Count)
	}
	return total
}
