//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// waitLimit bounds all waits of a test, so that a process that hangs is reported.
const waitLimit = 3 * time.Minute

// process is a stroppy process.
type process struct {
	cmd            *exec.Cmd
	dir            string // its working directory
	stdout, stderr string // files
	ended          chan struct{}
}

// start starts stroppy in a new working directory.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startWith(t, nil, args...)
}

// startIn starts stroppy with a folder for its temporary files.
func startIn(t *testing.T, state string, args ...string) *process {
	t.Helper()
	return startWith(t, []string{"env", "TMPDIR=" + state}, args...)
}

// startWith starts stroppy through another command, if one is given.
func startWith(t *testing.T, by []string, args ...string) *process {
	t.Helper()
	p := &process{dir: t.TempDir(), ended: make(chan struct{})}
	streams := t.TempDir()
	p.stdout, p.stderr = filepath.Join(streams, "out"), filepath.Join(streams, "err")
	command := append(append(slices.Clone(by), "stroppy"), args...)
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Dir = p.dir
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	var files [2]*os.File
	for i, name := range []string{p.stdout, p.stderr} {
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = file
	}
	p.cmd.Stdout, p.cmd.Stderr = files[0], files[1]
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState reports how it ended
		files[0].Close()
		files[1].Close()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // one that has ended is no error
		<-p.ended
	})
	return p
}

// wait returns the exit code, or -1 of a killed process, and the output.
func (p *process) wait(t *testing.T) (code int, stdout, stderr string) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(waitLimit):
		t.Fatalf("%v does not end: %s", p.cmd.Args, read(t, p.stderr))
	}
	return p.cmd.ProcessState.ExitCode(), read(t, p.stdout), read(t, p.stderr)
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// goesOn waits for a condition while the process runs.
func (p *process) goesOn(t *testing.T, until func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		select {
		case <-p.ended:
			t.Fatalf("%v has ended already: %s", p.cmd.Args, read(t, p.stderr))
		default:
		}
		if until() {
			return
		}
	}
	t.Fatalf("%v has not come far enough: %s", p.cmd.Args, read(t, p.stderr))
}

// drives waits until the run in dir has recorded transactions.
func (p *process) drives(t *testing.T, dir string) {
	t.Helper()
	p.goesOn(t, func() bool {
		info, err := os.Stat(filepath.Join(p.dir, dir, "history", "transactions.bin"))
		return err == nil && info.Size() > 4000
	})
}

// begins waits for the start of the load phase of the run in dir.
func (p *process) begins(t *testing.T, dir string) {
	t.Helper()
	p.goesOn(t, func() bool {
		_, err := os.Stat(filepath.Join(p.dir, dir, "history", "transactions.bin"))
		return err == nil
	})
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// refused checks the exit code of a refused call, and that the last line contains all these texts.
func refused(t *testing.T, code, want int, stderr string, says ...string) {
	t.Helper()
	text := strings.TrimSuffix(stderr, "\n")
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if code != want || !strings.HasPrefix(last, "stroppy: ") || strings.Contains(stderr, "goroutine ") || strings.Contains(stderr, "panic") {
		t.Errorf("it ended with %d, not %d: %s", code, want, stderr)
	}
	for _, say := range says {
		if !strings.Contains(last, say) {
			t.Errorf("the reason %q does not say %q", last, say)
		}
	}
}
