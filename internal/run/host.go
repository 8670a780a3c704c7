package run

import (
	"runtime"
	"slices"
	"time"

	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/resource"
)

// From these bounds on, measurements may be limited by the client or its machine rather than by the database.
const (
	busyClient   = 0.8                   // of the processors that this program may use
	latePacing   = 10 * time.Millisecond // 99th percentile, of a client that was free
	fullHost     = 0.9                   // of the processors of the machine
	outsideShare = 0.1                   // of the processors, kept busy by processes outside the run
	stealShare   = 0.05                  // of the processors' time
	throttleMost = 0.1                   // of the enforcement periods of a CPU limit
	leastWaiting = 0.05                  // of the time in which the client's threads could have run
	starvedShare = 0.1                   // of the sampled time
	leastSample  = 200 * time.Millisecond
)

// hostWatch samples the clients' machine beside the resource meter. One goroutine uses it at a time.
type hostWatch struct {
	meter     *resource.HostMeter
	elsewhere bool // the clients are on other machines
	samples   []hostSecond
}

// hostSecond holds one interval: the machine, and the use of it by processes outside the run.
type hostSecond struct {
	resource.HostSample
	outside *float64 // processors
}

// groups returns the processes that are measured: the client, the database's servers, and behind
// them, from the number rest on, what else this program has started.
func (c *conductor) groups(workers []int) (list []resource.Group, rest int) {
	list = resource.WithRest(append([]resource.Group{resource.Self(workers...)}, c.o.Servers...)...)
	return list, len(list) - 1
}

// sample ends an interval, in which the groups have used so much.
func (h *hostWatch) sample(now time.Duration, groups []resource.Usage, servers []resource.Group) {
	s := h.meter.Sample(now)
	if s.To-s.From < leastSample || h.elsewhere {
		return // too short for the ticks that time is counted in
	}
	here := []resource.Usage{groups[0], groups[len(groups)-1]}
	for i, g := range servers {
		if g.Read == nil {
			here = append(here, groups[1+i])
		}
	}
	h.samples = append(h.samples, hostSecond{s, s.Outside(here)})
}

// starvedBy returns why the run did not get the processors that it needed in an interval, or an empty string. mine
// means that no process outside the run belongs to the database's servers.
func (s *hostSecond) starvedBy(mine bool) report.WarningKind {
	all := float64(s.Processors)
	switch {
	case s.Throttled != nil && *s.Throttled >= throttleMost:
		return report.HostThrottled
	case s.Steal != nil && *s.Steal >= stealShare:
		return report.HostSteal
	case !mine || !s.full() || *s.outside < outsideShare*all:
		return ""
	case s.Pressure != nil && *s.Pressure < outsideShare:
		return "" // nobody waited
	case s.Waited != nil && *s.Waited+*s.Ran > 0 && float64(*s.Waited) < leastWaiting*float64(*s.Waited+*s.Ran):
		return "" // the others have a lower priority
	}
	return report.HostBusy
}

// full reports whether the processors of the machine were used up.
func (s *hostSecond) full() bool {
	return s.Busy != nil && s.outside != nil && *s.Busy+*s.Steal*float64(s.Processors) >= fullHost*float64(s.Processors)
}

// mean returns the mean of the known values, weighted by their time, or nil.
func mean(samples []hostSecond, of func(*hostSecond) *float64) *float64 {
	var sum, time float64
	for i := range samples {
		if x, took := of(&samples[i]), (samples[i].To - samples[i].From).Seconds(); x != nil {
			sum, time = sum+*x*took, time+took
		}
	}
	if time == 0 {
		return nil
	}
	return new(sum / time)
}

// length returns the total length of the samples.
func length(samples []hostSecond) (sum time.Duration) {
	for i := range samples {
		sum += samples[i].To - samples[i].From
	}
	return sum
}

// host sums up the samples; nil without samples. mine is as for starvedBy.
func (h *hostWatch) host(mine bool) *report.Host {
	if len(h.samples) == 0 {
		return nil
	}
	r := &report.Host{
		Seconds: length(h.samples).Seconds(), Processors: h.samples[0].Processors, ServersUnknown: !mine,
		BusyProcessors:  mean(h.samples, func(s *hostSecond) *float64 { return s.Busy }),
		OtherProcessors: mean(h.samples, func(s *hostSecond) *float64 { return s.outside }),
		RunQueue:        mean(h.samples, func(s *hostSecond) *float64 { return s.RunQueue }),
		CPUPressure:     mean(h.samples, func(s *hostSecond) *float64 { return s.Pressure }),
		GroupPressure:   mean(h.samples, func(s *hostSecond) *float64 { return s.GroupPressure }),
		Steal:           mean(h.samples, func(s *hostSecond) *float64 { return s.Steal }),
		Throttled:       mean(h.samples, func(s *hostSecond) *float64 { return s.Throttled }),
	}
	for i := range h.samples {
		s := &h.samples[i]
		if s.Load != nil && (r.LoadAverage == nil || *s.Load > *r.LoadAverage) {
			r.LoadAverage = new(*s.Load)
		}
		if s.Stopped != nil {
			r.ThrottledFor = new(*orZero(r.ThrottledFor) + s.Stopped.Seconds())
		}
		if s.starvedBy(mine) != "" {
			r.StarvedSeconds += (s.To - s.From).Seconds()
		}
	}
	return r
}

func orZero(x *float64) *float64 {
	if x == nil {
		return new(float64)
	}
	return x
}

// runDelay returns how long the client's threads waited for a processor; nil if that is not known.
func (h *hostWatch) runDelay() *float64 {
	var sum *float64
	for i := range h.samples {
		if w := h.samples[i].Waited; w != nil {
			sum = new(*orZero(sum) + w.Seconds())
		}
	}
	return sum
}

// warnings returns what a reader must know of the machine: that it was starved, and why most of
// that time, or that the run itself used it up.
func (h *hostWatch) warnings(mine, together bool) []report.Warning {
	by := map[report.WarningKind][]hostSecond{}
	var most report.WarningKind
	starved := 0
	for i := range h.samples {
		kind := h.samples[i].starvedBy(mine)
		if kind == "" {
			continue
		}
		by[kind] = append(by[kind], h.samples[i])
		if starved++; len(by[kind]) > len(by[most]) {
			most = kind
		}
	}
	all := length(h.samples)
	var time time.Duration
	for _, list := range by {
		time += length(list)
	}
	if starved > 0 && time.Seconds() >= starvedShare*all.Seconds() {
		w := describeHost(most, by[most])
		w.Seconds, w.OfSeconds = time.Seconds(), all.Seconds()
		return []report.Warning{w}
	}
	var full []hostSecond
	for i := range h.samples {
		if h.samples[i].full() {
			full = append(full, h.samples[i])
		}
	}
	if !together || len(full) == 0 || length(full).Seconds() < 0.5*all.Seconds() {
		return nil
	}
	kind := report.HostShared
	if !mine {
		kind = report.HostFull
	}
	w := describeHost(kind, full)
	w.Processors = *orZero(mean(full, func(s *hostSecond) *float64 { return s.Busy }))
	w.Seconds, w.OfSeconds = length(full).Seconds(), all.Seconds()
	return []report.Warning{w}
}

// describeHost returns a warning with the means of the samples, of which there must be one.
func describeHost(kind report.WarningKind, samples []hostSecond) report.Warning {
	value := func(of func(*hostSecond) *float64) float64 { return *orZero(mean(samples, of)) }
	w := report.Warning{Kind: kind, Of: float64(samples[0].Processors)}
	w.Waiting = value(func(s *hostSecond) *float64 { return s.Pressure })
	switch kind {
	case report.HostBusy:
		w.Processors = value(func(s *hostSecond) *float64 { return s.outside })
	case report.HostSteal:
		w.Share = value(func(s *hostSecond) *float64 { return s.Steal })
	case report.HostThrottled:
		w.Share = value(func(s *hostSecond) *float64 { return s.Throttled })
	}
	for i := range samples {
		w.Load = max(w.Load, *orZero(samples[i].Load))
	}
	return w
}

// warn writes the properties of the machine, and the warnings that a reader of the measurements needs.
func (c *conductor) warn(l *load.Result) {
	r, h := c.result, c.host
	on := false // servers may be on this machine
	if e := r.Environment; e != nil {
		on = e.Servers == report.OnThisMachine || e.Servers == report.OnBoth
	}
	mine := !on || c.serversMeasured()
	if h != nil {
		r.Host, r.Client.RunDelaySeconds = h.host(mine), h.runDelay()
		r.Warnings = h.warnings(mine, on)
	}
	d := r.Drive
	r.Warnings = clientWarnings(r.Warnings, clientUse{
		cpu: l.CPUSeconds, seconds: d.WarmupSeconds + d.Seconds, threads: l.Threads, pacing: d.Pacing,
		embedded: c.o.Embedded, known: r.Host != nil && r.Host.BusyProcessors != nil,
	})
	for i := range r.Warnings {
		if text := r.Warnings[i].Bottleneck(); text != "" {
			r.Client.Bottleneck = text
		}
	}
	c.warnLoop()
}

// warnLoop adds the warning about a closed loop.
func (c *conductor) warnLoop() {
	if w := c.result.LoopWarning(); w != nil {
		c.result.Warnings = append(c.result.Warnings, *w)
	}
}

// serversMeasured reports whether the processor time of every server that may be on this machine is
// known.
func (c *conductor) serversMeasured() bool {
	for _, g := range c.o.Servers {
		if g.Read != nil { // which may be processes of this machine
			return false
		}
	}
	for _, s := range c.result.Servers {
		if s.CPUSeconds == nil {
			return false
		}
	}
	return len(c.result.Servers) > 0
}

// clientUse holds what a client used of its machine.
type clientUse struct {
	cpu, seconds float64
	threads      int // that it had; 0 is all processors
	pacing       *report.Latency
	embedded     bool // its processor time may be the database's
	known        bool // how busy the machine was
}

// clientWarnings adds to the warnings about the machine that the client was the bottleneck. Only a
// client that was busy itself is one, or one that was late for no reason that shows: if the machine
// was starved or used up, that is why the client was late.
func clientWarnings(host []report.Warning, u clientUse) []report.Warning {
	processors := runtime.GOMAXPROCS(0)
	if u.threads == 0 {
		u.threads = processors
	}
	late := 0.0
	if u.pacing != nil && u.pacing.P99 >= float64(latePacing)/float64(time.Millisecond) {
		late = u.pacing.P99
	}
	if busy := u.cpu / u.seconds; !u.embedded && u.seconds > 0 && busy >= busyClient*float64(u.threads) {
		w := report.Warning{Kind: report.ClientBusy, Processors: busy, Of: float64(processors)}
		if u.threads < processors {
			w = report.Warning{Kind: report.ClientThreads, Processors: busy, Of: float64(u.threads)}
		}
		return append(host, w)
	}
	switch {
	case late == 0:
	case len(host) > 0:
		host[0].LateMS = late
	case u.known && !u.embedded:
		return append(host, report.Warning{Kind: report.ClientLate, LateMS: late})
	}
	return host
}

// Environment holds what the caller knows of the place of a run.
type Environment struct {
	// Servers is the place of the database's servers, one of report's constants; empty: it is not known.
	Servers string
	// Data holds the folders with the database's data on this machine.
	Data  []string
	Build report.Build
}

// fingerprint returns the properties of the machine and of the caller that influence measurements.
func (e *Environment) fingerprint(dir string) *report.Environment {
	m := resource.ThisMachine()
	r := &report.Environment{
		Processor: m.Processor, Cores: m.Cores, Threads: m.Threads, UsableThreads: m.Usable, MemoryBytes: m.Memory, System: m.System, Kernel: m.Kernel,
		Governor: m.Governor, CPULimit: m.CPULimit, MemoryLimitBytes: m.MemoryLimit, Servers: e.Servers, Build: e.Build,
	}
	if s, known := resource.StorageOf(dir); known {
		r.RunDirectory = new(report.Storage(s))
	}
	for _, data := range e.Data {
		s, known := resource.StorageOf(data)
		same := func(other report.Storage) bool { return other.FileSystem == s.FileSystem && other.Device == s.Device }
		if known && !slices.ContainsFunc(r.ServerData, same) {
			r.ServerData = append(r.ServerData, report.Storage(s))
		}
	}
	return r
}
