package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"stroppy/tools/try"
)

// registerShape is a history of registers, in the text form of Plume and AWDIT.
type registerShape struct {
	operations, sessions, keys int
	each                       int     // the most operations of a transaction
	stale                      float64 // the share of reads of a value that was overwritten
}

func (r registerShape) String() string {
	kind := "serial"
	if r.stale > 0 {
		kind = "with stale reads"
	}
	return fmt.Sprintf("registers: %d operations, %d sessions, %d keys, up to %d a transaction, %s", r.operations, r.sessions, r.keys, r.each, kind)
}

// registers measures the check of causal consistency, from the file to the verdict, and how it grows. AWDIT checks
// the same files if it is on PATH. It needs ten times the memory, and does not check the longest file.
func (s *suite) registers() {
	awdit, err := exec.LookPath("awdit")
	if err != nil {
		fmt.Fprintln(s.out, "registers: awdit is not on PATH, so nothing stands beside\t\t\t\t")
	}
	for _, shape := range []registerShape{
		{1_000_000, 10, 100_000, 20, 0}, {1_000_000, 50, 1000, 20, 0}, {1_000_000, 50, 1000, 2, 0}, {1_000_000, 100, 100, 5, 0}, {1_000_000, 100, 500_000, 10, 0},
		{1_000_000, 50, 1000, 20, 0.0001}, {1_000_000, 100, 100, 5, 0.01},
	} {
		s.register(shape, awdit, "≤ 1 of the peer's")
	}
	for _, operations := range []int{10_000, 100_000, 1_000_000, 10_000_000} {
		s.register(registerShape{operations, 50, 10_000, 10, 0}, "", "")
	}
}

// register measures one history.
func (s *suite) register(shape registerShape, awdit, wanted string) {
	path := filepath.Join(s.dir, "registers.txt")
	defer os.Remove(path)
	shape.write(path)
	verdict := map[bool]string{false: "VALID", true: "INVALID"}[shape.stale > 0]
	var ours, peer usage
	for range min(s.repeats, 3) { // alternately, so that both have the same machine
		ours.least(s.measure(verdict, nil, s.stroppy, "check", "--format=plume", "--expect=causal", path))
		if awdit == "" {
			continue
		}
		theirs := map[string]string{"VALID": "Consistent.", "INVALID": "Inconsistent."}[verdict]
		peer.least(s.measure(theirs, nil, awdit, "check", "--isolation=causal", path))
	}
	s.row(shape.String()+": seconds", "%.2f", ours.seconds, peer.seconds, wanted)
	s.row(shape.String()+": CPU seconds", "%.2f", ours.cpu, peer.cpu, "")
	s.row(shape.String()+": memory", "%.0f MB", ours.memory/1e6, peer.memory/1e6, "")
}

// usage holds the seconds, the processor seconds and the memory in bytes of a process.
type usage struct{ seconds, cpu, memory float64 }

func (u *usage) least(one usage) {
	if u.seconds == 0 {
		*u = one
	}
	u.seconds, u.cpu, u.memory = min(u.seconds, one.seconds), min(u.cpu, one.cpu), min(u.memory, one.memory)
}

// measure runs a check, whose output must say the verdict. Meanwhile it calls watch with the number of the process,
// unless that is nil.
func (s *suite) measure(verdict string, watch func(pid int), program string, args ...string) usage {
	cmd := exec.CommandContext(s.ctx, program, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	began := time.Now()
	try.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var tick <-chan time.Time
	if watch != nil {
		tick = time.Tick(10 * time.Millisecond)
	}
	for {
		select {
		case <-tick:
			watch(cmd.Process.Pid)
		case err := <-ended:
			took := time.Since(began)
			if !errors.As(err, new(*exec.ExitError)) {
				try.Check(err)
			}
			if text := "\n" + out.String(); !strings.Contains(text, "\n"+verdict) {
				try.Fail("%s does not say %s of a history that is so: %s", cmd, verdict, text[max(0, len(text)-500):])
			}
			used := cmd.ProcessState
			return usage{took.Seconds(), (used.UserTime() + used.SystemTime()).Seconds(), memoryOf(used)}
		}
	}
}

// memoryOf returns the highest memory of a process that has ended, in bytes.
func memoryOf(process *os.ProcessState) float64 {
	used, ok := process.SysUsage().(*syscall.Rusage)
	if !ok {
		try.Fail("the memory of a process is not known on this system")
	}
	return float64(used.Maxrss) * 1024
}

// write writes the history of a store that runs one transaction after another, each of a
// session drawn at random: a pure function of the shape. The sessions follow each other in
// the file, as the testers write them.
func (r registerShape) write(path string) {
	file := try.Must(os.Create(path))
	out := bufio.NewWriterSize(file, 1<<20)
	rng := rand.New(rand.NewPCG(1, uint64(r.operations)))
	sessions := make([][]byte, r.sessions)
	now, before := make([]int, r.keys), make([]int, r.keys) // the values, and those that they replaced
	value := 0
	for left, tx := r.operations, 0; left > 0; tx++ {
		s := rng.IntN(r.sessions)
		count := min(left, 1+rng.IntN(r.each))
		left -= count
		for range count {
			key := rng.IntN(r.keys)
			kind, seen := byte('r'), now[key]
			switch {
			case rng.IntN(2) == 0:
				value++
				kind, seen = 'w', value
				before[key], now[key] = now[key], value
			case r.stale > 0 && rng.Float64() < r.stale:
				seen = before[key]
			}
			sessions[s] = fmt.Appendf(sessions[s], "%c(%d,%d,%d,%d)\n", kind, key, seen, s, tx)
		}
	}
	for _, lines := range sessions {
		try.Must(out.Write(lines))
	}
	try.Check(errors.Join(out.Flush(), file.Close()))
}
