package workers

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"stroppy/internal/cluster/system"
)

// endLimit limits the time for a worker to end after its run.
const endLimit = 5 * time.Second

// process is a worker that this program has started.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed
	err     error         // of its end
	output  tail
}

// startProcess starts a worker that receives no signals of the terminal, because an interrupt ends the load
// phase through the coordinator.
func startProcess(command *exec.Cmd) (*process, error) {
	p := &process{command: command, ended: make(chan struct{})}
	p.command.Stderr, p.command.SysProcAttr = &p.output, new(syscall.SysProcAttr)
	system.OwnGroup(p.command.SysProcAttr)
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		p.err = p.command.Wait()
	}()
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

// said returns how the process ended and its last output. The process must have ended.
func (p *process) said() string {
	how := "it ended by itself"
	if p.err != nil {
		how = p.err.Error()
	}
	if said := p.output.String(); said != "" {
		return fmt.Sprintf("%s (%s)", said, how)
	}
	return how
}

// end returns when the process has ended. It kills the process if that does not happen soon.
func (p *process) end() {
	select {
	case <-p.ended:
	case <-time.After(endLimit):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// tail keeps the last output of a process and, if Go's runtime crashed, the line with the reason, which
// precedes the stacks.
type tail struct {
	mu    sync.Mutex
	line  []byte // that is not at its end
	last  string // line that has text
	crash string // first line of a crash
}

// mostLine limits the part of a line that is kept, in bytes.
const mostLine = 1 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		t.line = append(t.line, part[:min(len(part), mostLine-len(t.line))]...)
		rest = after
		if whole {
			t.endLine()
		}
	}
	return len(p), nil
}

// endLine processes a completed line.
func (t *tail) endLine() {
	line := string(bytes.TrimSpace(t.line))
	t.line = t.line[:0]
	if line == "" {
		return
	}
	t.last = line
	if t.crash == "" && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")) {
		t.crash = line
	}
}

// String returns the first line of a crash, or otherwise the last line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLine()
	if t.crash != "" {
		return t.crash
	}
	return t.last
}
