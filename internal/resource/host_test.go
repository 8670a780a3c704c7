package resource

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// hostFiles describes the files of a machine with two processors: idle, steal and other ticks, milliseconds
// of pressure, and the effect of a container's limit.
type hostFiles struct {
	user, idle, steal      int
	pressure, group        string
	periods, throttled, us string
	ran, waited            string
}

func (f hostFiles) in(t *testing.T, root string) {
	t.Helper()
	number := func(n int) string { return " " + strconv.Itoa(n) }
	files := map[string]string{
		"proc/stat": "cpu " + number(f.user) + " 0 0" + number(f.idle) + " 0 0 0" + number(f.steal) + " 0 0\n" +
			"cpu0 1 0 0 1 0 0 0 0 0 0\ncpu1 1 0 0 1 0 0 0 0 0 0\nctxt 945674\nprocs_running 7\nprocs_blocked 0",
		"proc/loadavg":                            "6.25 3.10 1.02 7/93 16830",
		"proc/self/cgroup":                        "0::/kubepods/pod1/container",
		"proc/pressure/cpu":                       f.pressure,
		"fs/kubepods/pod1/container/cpu.pressure": f.group,
		"fs/kubepods/pod1/container/cpu.stat":     "usage_usec 17\nnr_periods " + f.periods + "\nnr_throttled " + f.throttled + "\nthrottled_usec " + f.us,
		"fs/kubepods/pod1/cpu.stat":               "usage_usec 17\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0",
		"fs/cpu.stat":                             "usage_usec 17",
		"proc/42/task/42/schedstat":               f.ran + " " + f.waited + " 3",
		"proc/42/task/43/schedstat":               "500000000 0 9",
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func client() []int { return []int{42} }

// TestHostCountersBecomeRates checks that every value of a sample is the difference of two readings of
// Linux's files, divided by the time.
func TestHostCountersBecomeRates(t *testing.T) {
	root := t.TempDir()
	at := func(total string) string {
		return "some avg10=37.58 avg60=20.30 avg300=12.37 total=" + total + "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0"
	}
	hostFiles{user: 1000, idle: 2000, steal: 100, pressure: at("5000000"), group: at("100"), periods: "50", throttled: "5", us: "1000", ran: "1000000000", waited: "7"}.in(t, root)
	m := newHost(filepath.Join(root, "proc"), filepath.Join(root, "fs"), 0, client)
	hostFiles{user: 1150, idle: 2020, steal: 130, pressure: at("5600000"), group: at("250100"), periods: "60", throttled: "9", us: "401000", ran: "1300000000", waited: "600000007"}.in(t, root)
	s := m.Sample(time.Second)
	for name, c := range map[string]struct {
		got  *float64
		want float64
	}{
		"busy processors": {s.Busy, 1.5}, "steal": {s.Steal, 0.15}, "run queue": {s.RunQueue, 7}, "load": {s.Load, 6.25},
		"pressure": {s.Pressure, 0.6}, "group's pressure": {s.GroupPressure, 0.25}, "throttled": {s.Throttled, 0.4},
		"outside": {s.Outside([]Usage{{Known: true, CPU: 0.5}, {Known: true, CPU: 0.25}, {}}), 0.75},
	} {
		if c.got == nil || math.Abs(*c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, deref(c.got), c.want)
		}
	}
	if s.Stopped == nil || *s.Stopped != 400*time.Millisecond {
		t.Errorf("stopped for %v", s.Stopped)
	}
	if s.Waited == nil || *s.Waited != 600*time.Millisecond || *s.Ran != 300*time.Millisecond {
		t.Errorf("the client waited %v and ran %v", s.Waited, s.Ran)
	}
	if s.Processors != 2 || s.From != 0 || s.To != time.Second {
		t.Errorf("%+v", s)
	}
}

func deref(x *float64) any {
	if x == nil {
		return "not known"
	}
	return *x
}

// TestThrottlingIsReadFromCgroupVersion1 checks that throttling is read from a control group of version 1.
func TestThrottlingIsReadFromCgroupVersion1(t *testing.T) {
	files := func(throttled, ns string) map[string]string {
		return map[string]string{
			"proc/self/cgroup":          "4:memory:/m\n1:cpu,cpuacct:/c\n0::/",
			"fs/cpu,cpuacct/c/cpu.stat": "nr_periods 10" + throttled + "\nnr_throttled " + throttled + "\nthrottled_time " + ns,
		}
	}
	root := write(t, files("10", "1000000000"))
	m := newHost(filepath.Join(root, "proc"), filepath.Join(root, "fs"), 0, client)
	for name, text := range files("20", "1500000000") {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s := m.Sample(time.Second)
	if s.Throttled == nil || *s.Throttled != 1 || *s.Stopped != 500*time.Millisecond {
		t.Errorf("throttled %v for %v", deref(s.Throttled), s.Stopped)
	}
}

// TestMissingHostFilesGiveUnknownValues checks that values of missing or invalid files are unknown rather than zero.
func TestMissingHostFilesGiveUnknownValues(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no files": {"fs/x": ""},
		"damaged": {
			"proc/stat": "cpu x", "proc/loadavg": "", "proc/pressure/cpu": "some total=x", "proc/self/cgroup": "0::/a",
			"fs/a/cpu.stat": "nr_throttled 3", "fs/a/cpu.pressure": "full total=3", "proc/42/task/42/schedstat": "a b c",
		},
	} {
		root := write(t, files)
		m := newHost(filepath.Join(root, "proc"), filepath.Join(root, "fs"), 0, client)
		s := m.Sample(time.Second)
		if want := (HostSample{To: time.Second}); s != want {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Outside(nil) != nil {
			t.Errorf("%s: processes outside are known", name)
		}
	}
}

// TestRestartedHostCountersAreUnknown checks that a counter that restarted, for example after a move to another
// control group, is unknown for that interval.
func TestRestartedHostCountersAreUnknown(t *testing.T) {
	root := t.TempDir()
	hostFiles{user: 1000, idle: 2000, pressure: "some total=900", group: "some total=900", periods: "50", throttled: "5", us: "1", ran: "9", waited: "9"}.in(t, root)
	m := newHost(filepath.Join(root, "proc"), filepath.Join(root, "fs"), 0, client)
	hostFiles{user: 10, idle: 20, pressure: "some total=9", group: "some total=9", periods: "5", throttled: "1", us: "1", ran: "5", waited: "5"}.in(t, root)
	if s := m.Sample(time.Second); s.Busy != nil || s.Pressure != nil || s.GroupPressure != nil || s.Throttled != nil || *s.Waited != 0 {
		t.Errorf("%+v", s)
	}
}

// TestBusyProcessRaisesHostSamples checks that samples of this machine show the work of a busy process.
func TestBusyProcessRaisesHostSamples(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has these files")
	}
	m := NewHost(0, Self().PIDs)
	begin := time.Now()
	for sum := 0; time.Since(begin) < 300*time.Millisecond; sum++ {
	}
	s := m.Sample(time.Since(begin))
	if s.Processors < runtime.NumCPU() || s.Busy == nil || *s.Busy <= 0.2 || s.Steal == nil || s.Load == nil || s.RunQueue == nil {
		t.Errorf("%+v", s)
	}
	if s.Ran != nil && *s.Ran+*s.Waited < 200*time.Millisecond {
		t.Errorf("a process that was busy for 300 ms ran %v and waited %v", *s.Ran, *s.Waited)
	}
	if _, err := os.Stat("/proc/pressure/cpu"); (err == nil) != (s.Pressure != nil) && os.Getenv("CI") == "" {
		t.Errorf("the pressure is known: %v, its file: %v", s.Pressure != nil, err)
	}
}
