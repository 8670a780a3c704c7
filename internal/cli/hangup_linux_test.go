package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestClosedTerminalStillGivesAReport checks that a run whose terminal is closed during the load phase is checked and
// leaves its report.
func TestClosedTerminalStillGivesAReport(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs a process of its own")
	}
	master, terminal := openTerminal(t)
	p := &process{dir: t.TempDir(), ended: make(chan struct{})}
	p.stdout, p.stderr = os.DevNull, os.DevNull
	p.cmd = exec.Command("stroppy", "run", "--accounts", "100", "--clients", "2", "--duration", "10m", "--out", "r")
	p.cmd.Dir = p.dir
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "TERM=xterm"}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = terminal, terminal, terminal
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	go func() {
		_ = p.cmd.Wait() // ProcessState reports how it ended
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // one that has ended is no error
		<-p.ended
	})
	go func() { // what is shown has to be taken, or the process waits for it
		buffer := make([]byte, 4096)
		for {
			if _, err := master.Read(buffer); err != nil {
				return
			}
		}
	}()
	p.drives(t, "r")
	p.signal(t, syscall.SIGHUP) // as from its shell, and then from the kernel
	if err := master.Close(); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := p.wait(t); code != 3 { // the run could be carried out, and not shown
		t.Errorf("it ended with %d: %v", code, p.cmd.ProcessState)
	}
	dir := filepath.Join(p.dir, "r")
	if result := read(t, filepath.Join(dir, "result.json")); !strings.Contains(result, `"verdict": "valid"`) {
		t.Errorf("result.json: %.300s", result)
	}
	if page := read(t, filepath.Join(dir, "report.html")); !strings.Contains(page, "VALID") {
		t.Error("report.html has no verdict")
	}
	if code, stdout, stderr := call(t, "report", dir); code != 0 || !strings.HasPrefix(stdout, "VALID") || !strings.Contains(stdout, "ended the run early") {
		t.Errorf("its report ends with %d: %s%s", code, stderr, stdout)
	}
}

// openTerminal opens a pseudo-terminal and returns the side of the user and the side of the process.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("skipped engine: pseudo-terminals: there are none here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number uint32
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			number, failed = unix.IoctlGetUint32(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}
