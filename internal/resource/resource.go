// Package resource measures the processor time and memory of this machine's processes, second by second. It
// uses the operating system, so that it measures databases like this program. For processes elsewhere, it
// uses readings from their machines, which may include received, sent and stored bytes.
package resource

import (
	"os"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// Group is a set of processes that are reported together, such as the processes of one server.
type Group struct {
	Name string
	// PIDs returns the current processes. It is called at every sample, so that a restarted server is found.
	PIDs func() []int
	// Read replaces PIDs for processes on another machine. It returns the last reading; false: there is none.
	Read func() (Reading, bool)
}

// Reading holds the resources that processes on another machine have used since they began.
type Reading struct {
	Of  string    // whose it is; another one began at nothing
	At  time.Time // of the reading, by any clock that does not jump
	CPU float64   // seconds of user and system time
	RSS int64     // memory in bytes then
	// Traffic holds the received and sent bytes; nil: not known.
	Traffic *Traffic
	Stored  *int64 // bytes on their volumes then; nil where that is not known
}

// Traffic is the number of bytes that processes have received and sent since they began.
type Traffic struct {
	At             time.Time // of the reading; the processor time may have another
	Received, Sent int64
}

// Rate is traffic in bytes per second.
type Rate struct{ Received, Sent float64 }

// Self returns the group of this program and its worker processes.
func Self(workers ...int) Group {
	pids := append([]int{os.Getpid()}, workers...)
	return Group{Name: "client", PIDs: func() []int { return pids }}
}

// Usage holds the resources that a group used in one interval. The zero value is not known.
type Usage struct {
	Known bool
	CPU   float64 // seconds of user and system time
	// Over is the time in which CPU was used, if it is not the interval: a reading covers the time since the
	// previous one, and intervals without a reading have no value.
	Over time.Duration
	// RSS is the resident memory at the end of the interval in bytes: the private memory of each process,
	// plus the largest shared memory once.
	RSS     int64
	Traffic *Rate  // over about the same time; nil where it is not known
	Stored  *int64 // bytes on volumes at the interval's end; nil where that is not known
}

// Sample is one interval of all groups.
type Sample struct {
	From, To time.Duration // on the caller's clock
	Groups   []Usage       // in the order of New
}

// Total holds the resources that a group used over all samples.
type Total struct {
	Name   string
	Known  bool // at least one sample saw it
	CPU    float64
	MaxRSS int64
	// Traffic is the total received and sent; nil: not known.
	Traffic   *Traffic
	MaxStored *int64
}

// Meter measures groups. It must be used by one goroutine at a time.
//
// The use of a process between its last sample and its end is lost. So totals are too small by less than one interval
// of the ended processes.
type Meter struct {
	groups []Group
	last   []map[int]used // what the processes of each group had used at the last sample
	read   []Reading      // of each group that has them, the last
	at     time.Duration
	totals []Total
}

type used struct {
	started          int64   // ms since the epoch: a number may be given to another process later
	cpu              float64 // s
	resident, shared int64   // bytes now
}

// New returns a meter whose first interval begins at now.
func New(now time.Duration, groups ...Group) *Meter {
	m := &Meter{groups: groups, at: now, last: make([]map[int]used, len(groups)), read: make([]Reading, len(groups)), totals: make([]Total, len(groups))}
	for i, g := range groups {
		m.totals[i].Name = g.Name
		if g.Read != nil {
			m.read[i], _ = g.Read()
		} else {
			_, m.last[i] = measure(g.PIDs(), nil)
		}
	}
	return m
}

// Sample ends an interval and begins the next.
func (m *Meter) Sample(now time.Duration) Sample {
	s := Sample{From: m.at, To: now, Groups: make([]Usage, len(m.groups))}
	m.at = now
	for i, g := range m.groups {
		var usage Usage
		if g.Read != nil {
			usage = m.reading(i)
		} else {
			usage, m.last[i] = measure(g.PIDs(), m.last[i])
		}
		s.Groups[i] = usage
		if t := &m.totals[i]; usage.Known {
			t.Known, t.CPU, t.MaxRSS = true, t.CPU+usage.CPU, max(t.MaxRSS, usage.RSS)
			t.store(usage.Stored)
		}
	}
	return s
}

// reading returns what a group used since its previous reading, if there is a new one. The use before the
// very first reading is not known. For a replacement, the use before its first reading counts.
func (m *Meter) reading(i int) (u Usage) {
	before := m.read[i]
	now, known := m.groups[i].Read()
	if !known || now.Of == before.Of && !now.At.After(before.At) {
		return u
	}
	m.read[i] = now
	if now.Of == before.Of && now.Traffic == nil {
		m.read[i].Traffic = before.Traffic // the next reading has what came meanwhile
	}
	if before.Of == "" {
		return u
	}
	u = Usage{Known: true, RSS: now.RSS, Over: now.At.Sub(before.At), CPU: now.CPU, Stored: now.Stored}
	if now.Of == before.Of {
		u.CPU = max(0, now.CPU-before.CPU)
		u.Traffic = m.totals[i].since(before.Traffic, now.Traffic)
	} else if now.Traffic != nil {
		m.totals[i].carry(now.Traffic.Received, now.Traffic.Sent)
	}
	return u
}

// since adds the traffic between two readings of the same processes, and returns it as a rate, or nil if it
// is not known.
func (t *Total) since(before, now *Traffic) *Rate {
	if before == nil || now == nil || !now.At.After(before.At) || now.Received < before.Received || now.Sent < before.Sent {
		return nil
	}
	received, sent, took := now.Received-before.Received, now.Sent-before.Sent, now.At.Sub(before.At).Seconds()
	t.carry(received, sent)
	return &Rate{float64(received) / took, float64(sent) / took}
}

func (t *Total) carry(received, sent int64) {
	if t.Traffic == nil {
		t.Traffic = new(Traffic)
	}
	t.Traffic.Received += received
	t.Traffic.Sent += sent
}

func (t *Total) store(bytes *int64) {
	if bytes != nil && (t.MaxStored == nil || *bytes > *t.MaxStored) {
		t.MaxStored = new(*bytes)
	}
}

// Totals returns the totals of all samples so far, in the order of New.
func (m *Meter) Totals() []Total { return append([]Total(nil), m.totals...) }

// measure adds up the processes of a group. A process that did not exist at the last sample counts with all
// that it has used.
func measure(pids []int, last map[int]used) (Usage, map[int]used) {
	var usage Usage
	var shared int64
	processes := make(map[int]used, len(pids))
	for _, pid := range pids {
		u, err := look(pid)
		if err != nil { // it has ended, or may not be read
			continue
		}
		usage.Known = true
		before := last[pid]
		if another(before, u) {
			before = used{}
		}
		usage.CPU += max(0, u.cpu-before.cpu)
		usage.RSS += max(0, u.resident-u.shared)
		shared = max(shared, u.shared)
		processes[pid] = u
	}
	usage.RSS += shared
	return usage, processes
}

// another reports whether a process number now belongs to another process. Start times use the wall clock,
// which may be adjusted.
func another(before, now used) bool {
	const clockSet = 5_000
	return now.cpu < before.cpu || now.started-before.started > clockSet || before.started-now.started > clockSet
}

func look(pid int) (used, error) {
	p := process.Process{Pid: int32(pid)}
	started, err := p.CreateTime()
	if err != nil {
		return used{}, err
	}
	times, err := p.Times()
	if err != nil {
		return used{}, err
	}
	resident, shared, err := residentMemory(&p)
	return used{started, times.User + times.System, resident, shared}, err
}

// Resident returns the resident memory of this process in bytes; 0: not known.
func Resident() int64 {
	resident, _, err := residentMemory(&process.Process{Pid: int32(os.Getpid())})
	if err != nil {
		return 0
	}
	return resident
}
