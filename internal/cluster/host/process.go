package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"stroppy/internal/cluster/system"
	"stroppy/internal/cluster/wait"
)

// Process is a running server: a process and all its descendants.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
	err  error         // result of Wait; valid after done
}

// StartProcess starts cmd. When this program ends for any reason, the kernel sends death to the process.
//
// The kernel sends the signal when the thread that started the process ends. So this thread is kept as long as the
// process lives: see prctl(2), PR_SET_PDEATHSIG.
func StartProcess(cmd *exec.Cmd, death syscall.Signal) (*Process, error) {
	return startProcess(cmd, death, func() (func() error, error) { return func() error { return nil }, nil })
}

// startProcess is like StartProcess on a thread that enter moves to another namespace, which the process inherits.
// leave moves the thread back.
func startProcess(cmd *exec.Cmd, death syscall.Signal, enter Enter) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	dieWith(cmd.SysProcAttr, death)
	system.OwnGroup(cmd.SysProcAttr)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		leave, err := enter()
		if err != nil {
			started <- err
			return // the thread may be in the wrong place, so it ends with its goroutine
		}
		err = cmd.Start()
		left := leave()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
		if left == nil {
			runtime.UnlockOSThread()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns the result of the process, nil for exit code 0. It waits until the process has ended.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Await waits for the end of the process and returns how it ended. When ctx ends, it kills the process.
func (p *Process) Await(ctx context.Context) error {
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("it did not end in time and was killed: %w", context.Cause(ctx)), p.Kill())
	}
}

// Signal sends a signal to this process alone. If it has ended, Signal does nothing.
func (p *Process) Signal(signal syscall.Signal) error {
	err := p.cmd.Process.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Pause stops the process and its descendants, and returns when all are seen to be stopped. Connections stay open.
func (p *Process) Pause() error {
	_, err := p.pause(context.Background())
	return err
}

// pause is like Pause, but waits no longer than ctx, and returns the stopped processes.
func (p *Process) pause(ctx context.Context) ([]processID, error) {
	tree, err := freeze(p.id())
	if err != nil {
		return nil, err
	}
	return tree, wait.Until(ctx, stopsWithin, func() error { return allStopped(tree) })
}

func (p *Process) Resume() error {
	tree, err := freeze(p.id())
	for _, id := range tree {
		err = errors.Join(err, id.signal(system.Continue))
	}
	return errors.Join(err, p.Signal(system.Continue))
}

// Kill ends the process and all its descendants at once with SIGKILL, and returns when all are gone.
func (p *Process) Kill() error {
	_, err := killTree(p.id())
	err = errors.Join(err, p.Signal(syscall.SIGKILL)) // also if /proc could not be read
	<-p.done
	return err
}

// killTree ends a process and its descendants and reports whether it existed.
func killTree(id processID) (bool, error) {
	tree, err := freeze(id)
	for _, p := range tree {
		err = errors.Join(err, p.signal(syscall.SIGKILL))
	}
	return len(tree) > 0, errors.Join(err, gone(tree))
}

// id identifies the process; the zero value identifies none.
func (p *Process) id() processID {
	s, _ := readStat(p.PID())
	return s.processID
}

// stopsWithin bounds the wait for the stop or end of a process. A call to a slow disk cannot be interrupted by
// signals.
const stopsWithin = 30 * time.Second

// gone waits until none of the processes exists.
func gone(processes []processID) error {
	return wait.Until(context.Background(), stopsWithin, func() error {
		return wrongState(processes, "is still alive", func(byte) bool { return true })
	})
}

// allStopped returns an error if a process is alive and not stopped.
func allStopped(processes []processID) error {
	return wrongState(processes, "still runs", func(state byte) bool { return !isStopped(state) })
}

// noneStopped waits until none of the processes is stopped.
func noneStopped(ctx context.Context, processes []processID) error {
	return wait.Until(ctx, wait.SeenWithin, func() error { return wrongState(processes, "is still stopped", isStopped) })
}

func isStopped(state byte) bool { return state == 'T' || state == 't' }

// wrongState returns an error that names a living process in a wrong state.
func wrongState(processes []processID, what string, wrong func(state byte) bool) error {
	for _, id := range processes {
		if state := id.state(); state != 0 && wrong(state) {
			return fmt.Errorf("process %d %s, in state %c", id.pid, what, state)
		}
	}
	return nil
}

// tree lists the process and then its descendants.
func (p *Process) tree() []processID {
	tree, _ := walk(p.id(), func(processID) error { return nil })
	return tree
}

// freeze stops a process and all its descendants and lists them, the root first. Each process is stopped before its
// children are listed, so it starts no more.
func freeze(root processID) ([]processID, error) {
	return walk(root, func(id processID) error { return id.signal(system.Stop) })
}

// walk visits a living process and then its living descendants, and lists them.
func walk(root processID, visit func(processID) error) (tree []processID, err error) {
	for level := []processID{root}; len(level) > 0; {
		var parents []int
		for _, id := range level {
			if !id.alive() {
				continue
			}
			tree = append(tree, id)
			if err := visit(id); err != nil {
				return tree, err
			}
			parents = append(parents, id.pid)
		}
		if level, err = childrenOf(parents); err != nil {
			return tree, err
		}
	}
	return tree, nil
}

// processID identifies one process for ever: numbers are reused, but not with the same start time.
type processID struct {
	pid   int
	start string // field 22 of /proc/PID/stat, in clock ticks since boot
}

func (id processID) alive() bool { return id.state() != 0 }

// state returns the state of proc(5), such as T for stopped, or 0 if the process has ended.
func (id processID) state() byte {
	s, err := readStat(id.pid)
	if err != nil || s.start != id.start || s.state == 'Z' || s.state == 'X' {
		return 0
	}
	return s.state
}

func (id processID) signal(signal syscall.Signal) error {
	if !id.alive() {
		return nil
	}
	if err := system.Kill(id.pid, signal); err != nil {
		return fmt.Errorf("send %v to process %d: %w", signal, id.pid, err)
	}
	return nil
}

// childrenOf lists the living children of the given processes.
func childrenOf(parents []int) ([]processID, error) {
	if len(parents) == 0 {
		return nil, nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var children []processID
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		s, err := readStat(pid)
		if err == nil && s.state != 'Z' && slices.Contains(parents, s.parent) { // otherwise it has ended since
			children = append(children, s.processID)
		}
	}
	return children, nil
}

type stat struct {
	processID
	state  byte
	parent int
}

// readStat reads /proc/PID/stat, see proc(5). The program's name, the second field, is in brackets and may contain
// any character.
func readStat(pid int) (stat, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("read the state of process %d: %q has too few fields", pid, text)
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return stat{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	return stat{processID{pid, string(fields[19])}, fields[0][0], parent}, nil
}

// outputGrace is how long output is read after a command has ended if a process of it still holds the output open.
const outputGrace = 200 * time.Millisecond

// versionLimit bounds the time for a program to print its version, on a busy machine too.
const versionLimit = 8 * time.Second

// VersionOf runs a program with arguments that print its version and returns the output. The error names the program
// and contains the end of the output.
func VersionOf(ctx context.Context, program string, args ...string) (string, error) {
	limited, cancel := context.WithTimeoutCause(ctx, versionLimit, fmt.Errorf("it had %v to answer", versionLimit))
	defer cancel()
	cmd := exec.CommandContext(limited, program, args...)
	cmd.WaitDelay = outputGrace // a child process may hold the output open for longer
	out, err := cmd.CombinedOutput()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return strings.TrimSpace(string(out)), nil
	}
	if limited.Err() != nil {
		err = context.Cause(limited)
	}
	if said := LastLines(out); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return "", fmt.Errorf("ask %s for its version: %w", program, err)
}

// mostLines and mostSaid bound the lines and the characters that LastLines returns.
const mostLines, mostSaid = 5, 400

// LastLines returns the end of a program's output, enough to see why it failed. It returns as many whole lines as
// fit, or the beginning of the last one. A JSON log line is shortened by said.
func LastLines(text []byte) (end string) {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-mostLines):]
	last := []rune(said(lines[len(lines)-1]))
	if len(last) > mostSaid {
		return string(last[:mostSaid-1]) + "…"
	}
	end = string(last)
	for _, line := range slices.Backward(lines[:len(lines)-1]) {
		longer := said(line) + " | " + end
		if utf8.RuneCountInString(longer) > mostSaid {
			break
		}
		end = longer
	}
	return end
}

// said returns the level, the message and the error of a JSON line with the field names of etcd or MongoDB. Any other
// line is returned unchanged.
func said(line string) string {
	var of struct {
		Level, S, Msg string
		Error         any
		Attr          struct{ Error any }
	}
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &of) != nil || of.Msg == "" {
		return line
	}
	parts := []string{cmp.Or(of.Level, of.S), of.Msg}
	if failed := cmp.Or(of.Error, of.Attr.Error); failed != nil {
		parts = append(parts, fmt.Sprint(failed))
	}
	return strings.TrimPrefix(strings.Join(parts, ": "), ": ")
}
