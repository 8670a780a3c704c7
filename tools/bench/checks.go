package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster"
	"stroppy/tools/try"
)

// checks measures how fast recorded transfers are checked, and in how much memory.
func (s *suite) checks() {
	sample := filepath.Join(s.dir, "sample")
	defer os.RemoveAll(sample)
	s.command("run", "bank", "--db=memory:", "--seed=1", "--accounts=1000000", "--count=1", "--audits=0", "--warmup=0s", "--out="+sample)
	for _, c := range []struct {
		name string
		recording
		wanted string
	}{
		{"uniform, 16 clients", recording{clients: 16, count: s.transactions}, "≥ 3000000"},
		{"half on 100 accounts, 4,096 clients", recording{clients: 4096, count: s.transactions, hot: 100}, "≥ 1000000"},
	} {
		s.checkRecorded(sample, "check bank: 1,000,000 accounts, "+c.name, c.recording, c.wanted)
	}
}

func (s *suite) checkRecorded(sample, name string, r recording, wanted string) {
	dir := filepath.Join(s.dir, "recorded")
	defer os.RemoveAll(dir)
	r.record(sample, dir)
	// The first check measures the run, which a run does by itself.
	s.command("check", dir)
	s.timeCheck(name, "transactions", dir, r.count, wanted, "< 1 GB")
}

// timeCheck checks a recorded directory several times, each in a process of its own. The shortest time counts,
// because other programs only add to it.
func (s *suite) timeCheck(name, unit, dir string, count int, wanted, memory string) {
	var least usage
	for range min(s.repeats, 3) {
		least.least(s.measure("VALID", nil, s.stroppy, "check", dir))
	}
	s.row(name+": "+unit+" per CPU-second", "%.0f", float64(count)/least.cpu, 0, wanted)
	s.row(name+": "+unit+" a second", "%.0f", float64(count)/least.seconds, 0, "")
	s.row(name+": memory", "%.0f MB", least.memory/1e6, 0, memory)
}

// checkRun records a run of a workload on memory:, and measures how fast it is checked.
func (s *suite) checkRun(name, unit, workload, wanted string, args ...string) {
	dir := filepath.Join(s.dir, "recorded")
	defer os.RemoveAll(dir)
	args = append([]string{"run", workload, "--db=memory:", "--seed=1", "--out=" + dir, "--count=" + strconv.Itoa(s.transactions)}, args...)
	s.command(args...)
	s.timeCheck(name, unit, dir, s.transactions, wanted, "")
}

// checkKV measures how fast recorded reads and writes of records are checked.
func (s *suite) checkKV() {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"1,000,000 records, 90 % reads", nil},
		{"1,000,000 records, half reads, Zipfian", []string{"--preset=ycsb-a"}},
	} {
		s.checkRun("check kv: "+c.name, "records", "kv", "≥ 3000000", append(c.args, "--records=1000000", "--value-size=64")...)
	}
}

// checkEvents measures how fast recorded appends are checked, each with its entry.
func (s *suite) checkEvents() {
	s.checkRun("check events: 16 streams", "appends", "events", "≥ 3000000", "--value-size=64")
}

// tenMinutes is the length of the run of which the download and the check shall take less
// than a twentieth.
const tenMinutes = 10 * time.Minute

// download measures the time that the download of the end state and the check take, as a share of the load phase. The
// run is the bank on PostgreSQL. A measurement of less than ten minutes is extrapolated to ten: the accounts stay the
// same, and all else grows with the run.
func (s *suite) download() {
	s.serve(cluster.Alone(nil), func(s *server) {
		const accounts = "--accounts=1000000"
		alone, _ := s.after("--count=1", accounts)
		took, r := s.after("--duration="+s.seconds.String(), accounts)
		name := fmt.Sprintf("download: postgres: 1,000,000 accounts, a run of %v", s.seconds)
		s.row(name+": transactions", "%.0f", float64(r.Drive.Committed), 0, "")
		s.row(name+": download", "%.2f s", took["download"], 0, "")
		s.row(name+": rows downloaded a second", "%.0f", (1e6+2*float64(r.Drive.Committed))/took["download"], 0, "")
		s.row(name+": check", "%.2f s", took["check"], 0, "")
		both, wanted := took["download"]+took["check"], "< 5 %"
		if s.seconds < tenMinutes {
			wanted = ""
		}
		s.row(name+": share of the run", "%.1f %%", 100*both/s.seconds.Seconds(), 0, wanted)
		if s.seconds < tenMinutes {
			fixed := alone["download"] + alone["check"]
			all := fixed + (both-fixed)*tenMinutes.Seconds()/s.seconds.Seconds()
			s.row("download: extrapolated to a run of ten minutes: share of the run", "%.1f %%", 100*all/tenMinutes.Seconds(), 0, "< 5 %")
		}
	})
}

// after runs the bank, and returns how many seconds each phase of the run took.
func (s *server) after(args ...string) (map[string]float64, *result) {
	r := s.runChecked("bank", append(append(args, "--db="+s.URL()), transfersOnly...)...)
	took := map[string]float64{}
	for _, p := range r.Phases {
		took[p.Name] += p.Seconds
	}
	return took, r
}

// memoryOfChecks measures how much anonymous memory the check takes of each kind of run, as the
// table in docs/explanation/method.md has it.
func (s *suite) memoryOfChecks() {
	sample := filepath.Join(s.dir, "sample")
	defer os.RemoveAll(sample)
	s.command("run", "bank", "--db=memory:", "--seed=1", "--accounts=100000", "--count=1", "--audits=0", "--warmup=0s", "--out="+sample)
	hour := recording{clients: 8, count: s.transactions, pace: time.Hour / time.Duration(s.transactions)}
	audited, torn, open, lost, openLost := hour, hour, hour, hour, hour
	audited.audits, torn.audits, torn.skews, open.audits, open.open = 3600, 3600, 60, 3600, true
	lost.audits, lost.lost, openLost.audits, openLost.lost, openLost.open = 3600, 60, 3600, 60, true
	for _, c := range []struct {
		name string
		recording
		verdict, wanted string
		args            []string
	}{
		{"transfers alone", hour, "VALID", "≤ 500 MB", nil},
		{"with 3,600 whole audits", audited, "VALID", "≤ 500 MB", nil},
		{"with 3,600 whole audits and 60 read skews", torn, "VALID", "≤ 1000 MB", []string{"--expect=read-committed"}},
		{"with 3,600 whole audits, without the end state", open, "UNKNOWN", "≤ 500 MB", nil},
		{"with 3,600 whole audits and 60 lost transfers", lost, "INVALID", "", nil},
		{"with 3,600 whole audits and 60 lost transfers, without the end state", openLost, "UNKNOWN", "", nil},
	} {
		dir := filepath.Join(s.dir, "recorded")
		c.record(sample, dir)
		s.memoryOfCheck(fmt.Sprintf("check memory: bank, 100,000 accounts, %d transactions, %s", c.count, c.name), dir, c.verdict, c.wanted, c.args...)
		try.Check(os.RemoveAll(dir))
	}
	s.memoryOfWorkloads()
}

// memoryOfWorkloads does the same of runs of the other workloads on memory:.
func (s *suite) memoryOfWorkloads() {
	for _, args := range [][]string{
		{"bank", "--accounts=10000", "--opening-share=0.2", "--predicate-share=0.1"},
		{"tpcb", "--versions"}, {"kv", "--value-size=64"}, {"events", "--value-size=64"}, {"append"},
	} {
		dir, count := filepath.Join(s.dir, "recorded"), max(1, s.transactions/5)
		all := append([]string{"run"}, args...)
		all = append(all, "--db=memory:", "--seed=1", "--out="+dir, "--count="+strconv.Itoa(count))
		s.command(all...)
		s.memoryOfCheck(fmt.Sprintf("check memory: %s, %d transactions", strings.Join(args, " "), count), dir, "VALID", "")
		try.Check(os.RemoveAll(dir))
	}
}

// memoryOfCheck prints the highest anonymous memory of a process that checks a directory.
func (s *suite) memoryOfCheck(name, dir, verdict, wanted string, args ...string) {
	peak := int64(0)
	watch := func(pid int) { peak = max(peak, anonymous(pid)) }
	s.measure(verdict, watch, s.stroppy, append([]string{"check", dir}, args...)...)
	s.row(name, "%.0f MB", float64(peak)/1e6, 0, wanted)
}

// anonymous is the anonymous memory of a process in bytes, by RssAnon of proc_pid_status(5); 0 is
// not known.
func anonymous(pid int) int64 {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "RssAnon:" {
			kilobytes, _ := strconv.ParseInt(words[1], 10, 64) // the kernel writes a number
			return kilobytes << 10
		}
	}
	return 0
}
