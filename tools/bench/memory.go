package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"stroppy/tools/try"
)

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
	cmd := exec.CommandContext(s.ctx, s.stroppy, append([]string{"check", dir}, args...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	try.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak := int64(0)
	for tick := time.Tick(10 * time.Millisecond); ; {
		select {
		case err := <-ended:
			if !errors.As(err, new(*exec.ExitError)) {
				try.Check(err)
			}
			if !strings.HasPrefix(out.String(), verdict) {
				try.Fail("%s does not say %s: %.500s", cmd, verdict, out.String())
			}
			s.row(name, "%.0f MB", float64(peak)/1e6, 0, wanted)
			return
		case <-tick:
			peak = max(peak, anonymous(cmd.Process.Pid))
		}
	}
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
