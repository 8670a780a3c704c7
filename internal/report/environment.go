package report

import (
	"fmt"
	"strings"
)

// Environment describes the machine and the build of a run. An empty field is not known, or does not apply.
type Environment struct {
	Processor        string    `json:"processor,omitempty"`
	Cores            int       `json:"cores,omitempty"`
	Threads          int       `json:"threads,omitempty"`        // that the cores run at once
	UsableThreads    int       `json:"usable_threads,omitempty"` // of these, by the clients
	MemoryBytes      int64     `json:"memory_bytes,omitempty"`
	System           string    `json:"system,omitempty"`
	Kernel           string    `json:"kernel,omitempty"`
	Governor         string    `json:"governor,omitempty"`           // of the processors' frequency
	CPULimit         float64   `json:"cpu_limit,omitempty"`          // processors that the container may keep busy
	MemoryLimitBytes int64     `json:"memory_limit_bytes,omitempty"` // of the container
	RunDirectory     *Storage  `json:"run_directory,omitempty"`
	ServerData       []Storage `json:"server_data,omitempty"` // of the servers on this machine, each once
	Servers          string    `json:"servers,omitempty"`     // their place: one of the constants
	Build            Build     `json:"build"`
}

// The places of the servers of a database.
const (
	OnThisMachine   = "on the client machine"
	OnOtherMachines = "on other machines"
	OnBoth          = "on the client machine and on others"
	InThisProcess   = "in the client's process"
)

// Storage is a file system.
type Storage struct {
	FileSystem string `json:"file_system,omitempty"`
	Device     string `json:"device,omitempty"`
	Model      string `json:"disk_model,omitempty"`
	Rotating   *bool  `json:"disk_rotating,omitempty"`
}

// Build is the program that measured, as Go recorded it.
type Build struct {
	Version   string `json:"version,omitempty"`
	Commit    string `json:"commit,omitempty"`
	Committed string `json:"committed_at,omitempty"` // RFC 3339
	Dirty     *bool  `json:"dirty,omitempty"`        // the sources had changes that are in no commit
	Go        string `json:"go,omitempty"`
}

// Text returns one line about the machine, or other if e is nil.
func (e *Environment) Text(other string) string {
	if e == nil {
		return other
	}
	var parts []string
	for _, f := range e.facts() {
		if f.Name != "governor" {
			parts = append(parts, f.Value)
		}
	}
	return joined(parts...)
}

func (e *Environment) facts() []Setting {
	memory := ""
	if e.MemoryBytes != 0 {
		memory = bytesText(e.MemoryBytes) + " memory"
	}
	system := append([]string{e.System}, labelled("kernel ", e.Kernel)...)
	return present(
		Setting{"processor", e.Processor}, Setting{"cores", listed(countedOr(e.Cores, "core"), e.threadsText())},
		Setting{"governor", e.Governor}, Setting{"memory", memory}, Setting{"system", listed(system...)},
		Setting{"run directory", e.RunDirectory.text()}, Setting{"container", e.limitText()})
}

func (e *Environment) threadsText() string {
	switch {
	case e.UsableThreads > 0 && e.UsableThreads != e.Threads:
		return fmt.Sprintf("%d of %s usable", e.UsableThreads, Counted(uint64(e.Threads), "thread"))
	case e.Threads != e.Cores:
		return countedOr(e.Threads, "thread")
	}
	return ""
}

// limitText returns the limits of a container, if they are below the machine's.
func (e *Environment) limitText() string {
	var limits []string
	if e.CPULimit > 0 {
		limits = append(limits, fmt.Sprintf("%.3g processors", e.CPULimit))
	}
	if e.MemoryLimitBytes > 0 && (e.MemoryBytes == 0 || e.MemoryLimitBytes < e.MemoryBytes) {
		limits = append(limits, bytesText(e.MemoryLimitBytes)+" memory")
	}
	if len(limits) == 0 {
		return ""
	}
	return "limited to " + strings.Join(limits, " and ")
}

func (s *Storage) text() string {
	if s == nil {
		return ""
	}
	text := s.FileSystem
	if s.Device != "" {
		text += " on " + s.Device
	}
	kind := ""
	if s.Rotating != nil {
		kind = map[bool]string{false: "not rotating", true: "rotating"}[*s.Rotating]
	}
	if disk := listed(s.Model, kind); disk != "" {
		text += " (" + disk + ")"
	}
	return text
}

// text returns one line about the build, or other if nothing is known of it.
func (b *Build) text(other string) string {
	commit := ""
	if b.Commit != "" {
		commit = "commit " + b.Commit[:min(len(b.Commit), 12)]
	}
	if b.Dirty != nil && *b.Dirty {
		commit = listed(commit, "with uncommitted changes")
	}
	if text := joined(b.Version, commit, b.Go); text != "" {
		return text
	}
	return other
}

// Table returns a table with a row for everything that is known; it is empty if e is nil. stroppy is the version
// if the build is not known.
func (e *Environment) Table(stroppy string) DataTable {
	if e == nil {
		return DataTable{}
	}
	facts := e.facts()
	for i := range e.ServerData {
		facts = append(facts, Setting{"servers' data", e.ServerData[i].text()})
	}
	facts = append(facts, present(Setting{"servers", e.Servers}, Setting{"stroppy", e.Build.text(stroppy)})...)
	return settingsTable("Machine and build", "of the client", "", facts)
}

func countedOr(n int, noun string) string {
	if n == 0 {
		return ""
	}
	return Counted(uint64(n), noun)
}

// hostTable describes the clients' machine during the load phase; it is empty if the machine was not sampled.
func hostTable(r *Result) DataTable {
	h := r.Host
	if h == nil {
		return DataTable{}
	}
	t := NewTable("The machine of the clients", fmt.Sprintf("Means over %s of the load phase, from one sample a second;"+
		" the load average is the largest.", seconds(h.Seconds)), []int{0}, "", "value")
	of := func(x float64) string { return fmt.Sprintf("%.2f of %d", x, h.Processors) }
	two := func(x float64) string { return fmt.Sprintf("%.2f", x) }
	others := "processors busy with processes outside the run"
	if h.ServersUnknown {
		others = "processors busy with others than the client, the servers among them"
	}
	t.Add("processors busy", Perhaps(h.BusyProcessors, of))
	t.Add(others, Perhaps(h.OtherProcessors, of))
	t.Add("load average of a minute", Perhaps(h.LoadAverage, two))
	t.Add("tasks that ran or could have run", Perhaps(h.RunQueue, two))
	t.Add("time in which a task waited for a processor", Perhaps(h.CPUPressure, percent))
	if h.GroupPressure != nil {
		t.Add("the same in the client's control group", percent(*h.GroupPressure))
	}
	t.Add("processor time stolen by the hypervisor", Perhaps(h.Steal, percent))
	if h.Throttled != nil {
		t.Add("periods in which a CPU limit stopped the client", percent(*h.Throttled))
	}
	if r.Client != nil {
		t.Add("the client's threads waited for a processor", Perhaps(r.Client.RunDelaySeconds, seconds))
	}
	t.Add("time in which the host was starved", seconds(h.StarvedSeconds))
	return t
}
