package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"stroppy/internal/fault"
)

// WarningKind names what a reader must know before the figures of a run.
type WarningKind string

const (
	// HostBusy: processes that are not of the run took processors that the run needed.
	HostBusy WarningKind = "host-busy"
	// HostSteal: the hypervisor gave the processors to other machines.
	HostSteal WarningKind = "host-steal"
	// HostThrottled: the CPU limit of the container stopped the client.
	HostThrottled WarningKind = "host-throttled"
	// HostShared: client and servers ran on one machine and used all of it.
	HostShared WarningKind = "host-shared"
	// HostFull: the machine was used up; what the servers took of it is not known.
	HostFull WarningKind = "host-full"
	// ClientBusy: the client used its processors up, so it was the bottleneck.
	ClientBusy WarningKind = "client-busy"
	// ClientThreads: the client used up the threads that it chose at the start, fewer than it could
	// have had, so it was the bottleneck.
	ClientThreads WarningKind = "client-threads"
	// ClientLate: the client sent late although neither it nor the machine was busy.
	ClientLate WarningKind = "client-late"
	// ClosedLoop: clients that waited sent nothing, so the percentiles leave an outage out.
	ClosedLoop WarningKind = "closed-loop"
)

// Warning is one such fact. The kind decides which arguments it has; the others are 0.
type Warning struct {
	Kind       WarningKind `json:"kind"`
	Seconds    float64     `json:"seconds,omitempty"`    // starved; of ClosedLoop: without a request
	OfSeconds  float64     `json:"of_seconds,omitempty"` // that were sampled
	Processors float64     `json:"processors,omitempty"` // kept busy, in that time: by others, by the client, or by all
	Of         float64     `json:"of,omitempty"`         // processors or threads that there were
	Share      float64     `json:"share,omitempty"`      // of time: stolen, or of enforcement periods: throttled
	Waiting    float64     `json:"waiting,omitempty"`    // share of the time in which some task waited for a processor; 0: not known
	Load       float64     `json:"load,omitempty"`       // largest load average of one minute; 0: not known
	LateMS     float64     `json:"late_ms,omitempty"`    // 99th percentile of the pacing error
	Rate       float64     `json:"rate,omitempty"`       // to use instead of a closed loop, per second; 0: not known
	Faults     bool        `json:"faults,omitempty"`     // the run has injected some
}

// Host is the machine of the clients during the load phase, from one sample a second. A value that is not
// known is null. Shares of the sampled time are from 0 to 1.
type Host struct {
	Seconds         float64  `json:"seconds"` // that were sampled
	Processors      int      `json:"processors,omitempty"`
	BusyProcessors  *float64 `json:"busy_processors"`  // mean
	OtherProcessors *float64 `json:"other_processors"` // mean, of processes that are not of this run
	LoadAverage     *float64 `json:"load_average_max"` // of one minute
	RunQueue        *float64 `json:"run_queue_mean"`   // tasks that ran or could have run
	CPUPressure     *float64 `json:"cpu_pressure"`     // share of the time in which some task waited for a processor
	GroupPressure   *float64 `json:"cgroup_cpu_pressure"`
	Steal           *float64 `json:"steal"`                     // share of the processors' time
	Throttled       *float64 `json:"throttled"`                 // share of the enforcement periods of a CPU limit
	ThrottledFor    *float64 `json:"throttled_s"`               // added up over processors
	StarvedSeconds  float64  `json:"starved_s"`                 // in which the run did not get the processors that it needed
	ServersUnknown  bool     `json:"servers_unknown,omitempty"` // other_processors may include the database's servers
}

// Silence is the time in which all clients of a closed loop waited and sent nothing, as far as it is
// long against the latency.
type Silence struct {
	Seconds   float64 `json:"seconds"` // in all
	Longest   float64 `json:"longest_s"`
	AtSeconds float64 `json:"at_s"` // when the longest began, since the run's start
	Count     int     `json:"count"`
}

// RecordedCounts are all transactions that a run committed, the warm-up's among them. Checks count
// these.
type RecordedCounts struct {
	Committed  uint64 `json:"committed"`  // by the measured clients
	Writes     uint64 `json:"writes"`     // by the measured clients, not read-only
	Background uint64 `json:"background"` // beside them, by the clients that audit
}

// Resolved are the transactions of a run whose outcome the clients never learned, and what the end
// state says of them.
type Resolved struct {
	Unknown    uint64 `json:"unknown"`
	Applied    uint64 `json:"applied"`
	NotApplied uint64 `json:"not_applied"`
	By         string `json:"by"` // what decided it, such as ledger
}

// ofHost reports whether the run did not get the processors that it needed.
func (w *Warning) ofHost() bool {
	return w.Kind == HostBusy || w.Kind == HostSteal || w.Kind == HostThrottled
}

// ofClient reports whether the client was the bottleneck.
func (w *Warning) ofClient() bool {
	return w.Kind == ClientBusy || w.Kind == ClientThreads || w.Kind == ClientLate
}

// severe reports whether it is a warning; otherwise it is a note.
func (w *Warning) severe() bool {
	return w.Kind != HostShared && w.Kind != HostFull || w.LateMS > 0
}

// Bottleneck returns why the measurements may be the client's own rather than the database's, or nothing.
func (w *Warning) Bottleneck() string {
	const faster = ", so the database may be faster than measured: "
	switch w.Kind {
	case ClientBusy:
		return fmt.Sprintf("this client kept %.1f of its %.0f processors busy", w.Processors, w.Of) + faster +
			"give the client more of them, or generate load from several machines"
	case ClientThreads:
		return fmt.Sprintf("this client kept %.1f of the %.0f threads busy that it chose at the start", w.Processors, w.Of) +
			faster + "give a --warmup that is under the full load"
	case ClientLate:
		return fmt.Sprintf("this client sent one in a hundred transactions %.0f ms or more after its intended start time"+
			" although the client was free and the machine was not busy, and the latencies include that time", w.LateMS)
	}
	return ""
}

// Text is the warning for people.
func (w *Warning) Text() string {
	switch w.Kind {
	case HostBusy, HostSteal, HostThrottled:
		return w.starvedText()
	case HostShared:
		return fmt.Sprintf("Client and servers shared one machine and kept %.1f of its %.0f processors busy.%s", w.Processors, w.Of, w.late()) +
			" On machines of their own the figures may be better."
	case HostFull:
		return fmt.Sprintf("The servers run on the client's machine, of which %.1f of %.0f processors were busy.", w.Processors, w.Of) +
			" How much of that the servers took is not known." + w.late()
	case ClosedLoop:
		return w.closedLoop()
	}
	return "The client was the bottleneck, so the measurements may be its own rather than the database's: " +
		withPeriod(w.Bottleneck())
}

// starvedText names who took the processors that the run needed.
func (w *Warning) starvedText() string {
	who, cure := "", ""
	switch w.Kind {
	case HostBusy:
		who = fmt.Sprintf("processes outside this run kept %.1f of its %.0f processors busy", w.Processors, w.Of)
		cure = " Measure again on a machine that does nothing else."
	case HostSteal:
		who = fmt.Sprintf("the hypervisor gave %s of the processors' time to other machines", percent(w.Share))
	case HostThrottled:
		who = fmt.Sprintf("the CPU limit of its container stopped the client in %s of the enforcement periods", percent(w.Share))
		cure = " Raise the limit."
	}
	return fmt.Sprintf("The host was starved for %s of %s: %s%s.", seconds(w.Seconds), seconds(w.OfSeconds), who, w.evidence()) +
		w.late() + cure
}

// evidence returns further signs that tasks waited.
func (w *Warning) evidence() string {
	text := ""
	if w.Waiting > 0 {
		text = fmt.Sprintf(", and tasks waited for a processor %s of that time", percent(w.Waiting))
	}
	if w.Load > 0 {
		text += fmt.Sprintf(" (load average %.1f)", w.Load)
	}
	return text
}

func (w *Warning) late() string {
	if w.LateMS == 0 {
		return ""
	}
	return fmt.Sprintf(" If the client was free, 1 %% of its transactions left %.0f ms or more after their intended"+
		" start time.", w.LateMS)
}

func (w *Warning) closedLoop() string {
	text, rate := "clients that wait send nothing, so the percentiles do not show what users feel during a fault", ""
	if w.Seconds > 0 {
		text = fmt.Sprintf("waiting clients sent nothing for %s, and the percentiles leave that time out", seconds(w.Seconds))
	}
	if w.Rate > 0 {
		rate = fmt.Sprintf(" %.10g (about half of the measured maximum)", w.Rate)
	}
	return fmt.Sprintf("Closed loop: %s. Use --rate%s to measure latency from the intended start time.", text, rate)
}

// SuggestedRate is about half of the largest measured throughput, rounded down to two digits; 0 if
// that is not known.
func (d *Drive) SuggestedRate() float64 {
	t := d.throughput()
	most := cmp.Or(t.Max, t.Mean)
	if most == nil || *most < 2 {
		return 0
	}
	half := *most / 2
	step := math.Pow(10, math.Max(0, math.Floor(math.Log10(half))-1))
	return math.Floor(half/step) * step
}

// hiddenShare is the share of the measured time from which on a silence would move the 99.9th
// percentile.
const hiddenShare = 0.001

// silent returns the silence that the percentiles hide; nil if there is none.
func (d *Drive) silent() *Silence {
	if s := d.Silence; s != nil && s.Seconds >= hiddenShare*d.Seconds {
		return s
	}
	return nil
}

// text marks a percentile beside which the silence stands.
func (s *Silence) text() string {
	text := "closed loop: waiting clients sent nothing for " + seconds(s.Seconds)
	if s.Count > 1 {
		text += fmt.Sprintf(" (%d times, at most %s)", s.Count, seconds(s.Longest))
	}
	return text
}

// LoopWarning returns the warning about a closed loop, or nil. A run gets it if it had faults, or a silence
// that the percentiles hide.
func (r *Result) LoopWarning() *Warning {
	d := r.Drive
	if d == nil || open(d) {
		return nil
	}
	injected := slices.ContainsFunc(r.Faults, func(f fault.Record) bool { return f.Done() })
	s := d.silent()
	if s == nil && !injected {
		return nil
	}
	w := &Warning{Kind: ClosedLoop, Rate: d.SuggestedRate(), Faults: injected}
	if s != nil {
		w.Seconds = s.Seconds
	}
	return w
}

// Starved reports whether the host was starved according to a warning.
func (r *Result) Starved() bool {
	return slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.ofHost() })
}

func percent(share float64) string {
	if share >= 0.995 && share < 1 {
		return "> 99 %"
	}
	if share >= 0.0995 {
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}
