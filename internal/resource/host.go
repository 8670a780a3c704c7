package resource

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// HostSample is the state of this machine in one interval. Nil values are not known, because the system has
// no such file. Shares are from 0 to 1.
type HostSample struct {
	From, To   time.Duration // on the caller's clock
	Processors int           // that are online; 0: not known

	Busy     *float64 // processors that were not idle and not stolen, on average
	Steal    *float64 // share of the processors' time that the hypervisor gave to others
	RunQueue *float64 // tasks that ran or could have run, at the end of the interval
	Load     *float64 // load average of one minute, at the end of the interval

	// Pressure is the share of the time in which at least one task of the machine waited for a processor.
	// GroupPressure is the same for this program's control group.
	Pressure, GroupPressure *float64

	// Throttled is the share of a CPU limit's enforcement periods in which this program's control group, or
	// one above, was stopped. Stopped is the total time, summed over processors.
	Throttled *float64
	Stopped   *time.Duration

	// Waited is the time for which the client's threads were ready but had no processor, and Ran the time for
	// which they had one.
	Waited, Ran *time.Duration
}

// These are the roots of the files that a HostMeter reads.
const (
	procRoot  = "/proc"
	groupRoot = "/sys/fs/cgroup"
)

// mostThreads limits the number of threads whose waiting time is read at every sample.
const mostThreads = 256

// HostMeter samples this machine from Linux's files. It must be used by one goroutine at a time.
type HostMeter struct {
	proc      string
	pressure  []string // the cpu.pressure of this program's own control group, at most one
	throttles []string // the cpu.stat of the groups that may have a limit
	pids      func() []int
	last      hostCounters
	at        time.Duration
}

// hostCounters holds the monotonic counters; nil: not known.
type hostCounters struct {
	total, idle, steal      *float64 // ticks of all processors
	pressure, groupPressure *float64 // microseconds
	throttles               map[string]throttle
	threads                 map[string]threadTime
}

type throttle struct{ periods, throttled, seconds float64 }

type threadTime struct{ ran, waited time.Duration }

// NewHost returns a meter whose first interval begins at now. pids returns the processes of the client.
func NewHost(now time.Duration, pids func() []int) *HostMeter {
	return newHost(procRoot, groupRoot, now, pids)
}

func newHost(proc, groups string, now time.Duration, pids func() []int) *HostMeter {
	m := &HostMeter{proc: proc, pids: pids, at: now}
	m.pressure, m.throttles = cpuFiles(filepath.Join(proc, "self", "cgroup"), groups)
	m.last = m.read(new(HostSample))
	return m
}

// Sample ends an interval and begins the next.
func (m *HostMeter) Sample(now time.Duration) HostSample {
	s := HostSample{From: m.at, To: now}
	before := m.last
	m.last, m.at = m.read(&s), now
	took := float64(s.To-s.From) / float64(time.Microsecond)
	total, idle := difference(before.total, m.last.total), difference(before.idle, m.last.idle)
	steal := difference(before.steal, m.last.steal)
	if total != nil && idle != nil && steal != nil && *total > 0 && s.Processors > 0 {
		s.Steal = new(min(1, *steal / *total))
		s.Busy = new(float64(s.Processors) * max(0, 1 - (*idle+*steal) / *total))
	}
	if took > 0 {
		s.Pressure = shareOf(difference(before.pressure, m.last.pressure), took)
		s.GroupPressure = shareOf(difference(before.groupPressure, m.last.groupPressure), took)
	}
	s.throttled(before.throttles, m.last.throttles)
	s.waited(before.threads, m.last.threads)
	return s
}

// difference returns the difference of two counters, or nil if one is not known or the second is smaller.
func difference(before, now *float64) *float64 {
	if before == nil || now == nil || *now < *before {
		return nil
	}
	return new(*now - *before)
}

func shareOf(part *float64, whole float64) *float64 {
	if part == nil {
		return nil
	}
	return new(min(1, *part/whole))
}

// throttled uses the group that was stopped most.
func (s *HostSample) throttled(before, now map[string]throttle) {
	for file, n := range now {
		b, known := before[file]
		if !known {
			continue
		}
		if n.periods < b.periods || n.throttled < b.throttled { // its counters began anew
			s.Throttled, s.Stopped = nil, nil
			return
		}
		share := 0.0
		if n.periods > b.periods {
			share = (n.throttled - b.throttled) / (n.periods - b.periods)
		}
		if s.Throttled == nil || share > *s.Throttled {
			s.Throttled = new(share)
			s.Stopped = new(time.Duration(max(0, n.seconds-b.seconds) * float64(time.Second)))
		}
	}
}

func (s *HostSample) waited(before, now map[string]threadTime) {
	if before == nil || now == nil {
		return
	}
	s.Waited, s.Ran = new(time.Duration), new(time.Duration)
	for thread, n := range now {
		b := before[thread] // one that began since then has waited and run since then
		if n.ran >= b.ran && n.waited >= b.waited {
			*s.Ran += n.ran - b.ran
			*s.Waited += n.waited - b.waited
		}
	}
}

// read reads all counters, and stores other values in the sample.
func (m *HostMeter) read(s *HostSample) (c hostCounters) {
	m.readStat(s, &c)
	if load, _, _ := strings.Cut(line(filepath.Join(m.proc, "loadavg")), " "); load != "" {
		s.Load = number(load)
	}
	c.pressure = pressure(filepath.Join(m.proc, "pressure", "cpu"))
	for _, file := range m.pressure {
		c.groupPressure = pressure(file)
	}
	c.throttles = map[string]throttle{}
	for _, file := range m.throttles {
		if t, known := readThrottle(file); known {
			c.throttles[file] = t
		}
	}
	c.threads = m.readThreads()
	return c
}

// readStat reads /proc/stat; see proc_stat(5). Waiting for a disk is idle time, and guest time is part of
// user time.
func (m *HostMeter) readStat(s *HostSample, c *hostCounters) {
	const idle, wait, steal, last = 3, 4, 7, 7
	data, err := os.ReadFile(filepath.Join(m.proc, "stat"))
	if err != nil {
		return
	}
	for text := range strings.Lines(string(data)) {
		fields := strings.Fields(text)
		switch {
		case len(fields) > last+1 && fields[0] == "cpu":
			var ticks [last + 1]float64
			var total float64
			for i := range ticks {
				ticks[i], _ = strconv.ParseFloat(fields[i+1], 64)
				total += ticks[i]
			}
			c.total, c.idle, c.steal = &total, new(ticks[idle]+ticks[wait]), &ticks[steal]
		case len(fields) > 1 && strings.HasPrefix(fields[0], "cpu") && fields[0] != "cpu":
			s.Processors++
		case len(fields) == 2 && fields[0] == "procs_running":
			s.RunQueue = number(fields[1])
		}
	}
}

// readThreads returns for each thread of the client its running and waiting times in nanoseconds
// (https://docs.kernel.org/scheduler/sched-stats.html), or nil if they are not known.
func (m *HostMeter) readThreads() map[string]threadTime {
	threads := map[string]threadTime{}
	for _, pid := range m.pids() {
		dir := filepath.Join(m.proc, strconv.Itoa(pid), "task")
		list, err := os.ReadDir(dir)
		if err != nil || len(threads)+len(list) > mostThreads {
			return nil
		}
		for _, thread := range list {
			file := filepath.Join(dir, thread.Name(), "schedstat")
			fields := strings.Fields(line(file))
			if len(fields) < 2 { // it has ended
				continue
			}
			ran, err := strconv.ParseInt(fields[0], 10, 64)
			waited, err2 := strconv.ParseInt(fields[1], 10, 64)
			if err == nil && err2 == nil {
				threads[file] = threadTime{time.Duration(ran), time.Duration(waited)}
			}
		}
	}
	if len(threads) == 0 {
		return nil
	}
	return threads
}

// pressure returns the microseconds for which at least one task waited, from a file of pressure stall
// information (https://docs.kernel.org/accounting/psi.html), or nil if there is none.
func pressure(file string) *float64 {
	some := line(file)
	if !strings.HasPrefix(some, "some ") {
		return nil
	}
	_, total, found := strings.Cut(some, "total=")
	if !found {
		return nil
	}
	return number(total)
}

// readThrottle reads cpu.stat of a control group of version 1 or 2. It reports false without the periods of a
// limit.
func readThrottle(file string) (t throttle, known bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return t, false
	}
	for text := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(text), " ")
		n := number(value)
		if n == nil {
			continue
		}
		switch name {
		case "nr_periods":
			t.periods, known = *n, true
		case "nr_throttled":
			t.throttled = *n
		case "throttled_usec":
			t.seconds = *n / 1e6
		case "throttled_time": // version 1, in nanoseconds
			t.seconds = *n / 1e9
		}
	}
	return t, known
}

func number(text string) *float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// cpuFiles returns the pressure file of this process's control group, at most one, and the existing cpu.stat files of
// that group and those above. See groupDirs.
func cpuFiles(groups, root string) (pressures, stats []string) {
	for controller, dir := range groupDirs(groups, root) {
		if controller != "" && controller != "cpu" {
			continue
		}
		if file := filepath.Join(dir, "cpu.pressure"); len(pressures) == 0 && there(file) {
			pressures = append(pressures, file)
		}
		if file := filepath.Join(dir, "cpu.stat"); there(file) {
			stats = append(stats, file)
		}
	}
	return pressures, stats
}

// Outside returns the number of processors used by processes outside of the groups, or nil if that is not known. The
// groups must all be of this machine.
func (s *HostSample) Outside(groups []Usage) *float64 {
	took := (s.To - s.From).Seconds()
	if s.Busy == nil || took <= 0 {
		return nil
	}
	ours := 0.0
	for _, g := range groups {
		ours += g.CPU
	}
	return new(max(0, *s.Busy-ours/took))
}
