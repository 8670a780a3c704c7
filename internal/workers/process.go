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

// Command starts a worker on this machine.
type Command struct {
	Path string
	Args []string
	Env  []string
}

// endLimit bounds how long a worker whose run has ended may take to end.
const endLimit = 5 * time.Second

// process is a worker that this program has started.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed
	err     error         // of its end
	output  tail
}

// startProcess starts a worker that no signal of the terminal reaches: an interrupt ends the
// load phase through the coordinator.
func startProcess(c Command) (*process, error) {
	p := &process{command: exec.Command(c.Path, c.Args...), ended: make(chan struct{})}
	p.command.Env, p.command.Stderr = c.Env, &p.output
	p.command.SysProcAttr = new(syscall.SysProcAttr)
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

// said is how the process ended and what it printed last. It has ended.
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

// end returns when the process has ended, by itself where it does soon.
func (p *process) end() {
	select {
	case <-p.ended:
	case <-time.After(endLimit):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// tail keeps the end of what a process prints, and the line by which Go's runtime says why it
// crashed, which the goroutines' stacks follow.
type tail struct {
	mu    sync.Mutex
	line  []byte // that is not at its end
	last  string // line that has text
	crash string // first line of a crash
}

// mostLine bounds what is kept of a line, in bytes.
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

// endLine takes the line that is at its end.
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

// String is the first line of a crash, or else the last line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLine()
	if t.crash != "" {
		return t.crash
	}
	return t.last
}
