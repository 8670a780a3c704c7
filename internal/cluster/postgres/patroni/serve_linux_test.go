package patroni

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"stroppy/internal/cluster/clustertest"
)

// in reports whether a signal is in a set of a process: SigCgt, which have handlers, or SigBlk.
func in(t *testing.T, set string, pid int, signal syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	clustertest.Must(t, err)
	_, rest, _ := strings.Cut(string(status), "\n"+set+":\t")
	mask, err := strconv.ParseUint(rest[:16], 16, 64)
	clustertest.Must(t, err)
	return mask>>(signal-1)&1 == 1
}

// TestServeScriptMissesNoSignal checks that serve.py has no signal handlers, which would miss a signal just before
// waitpid(2). SIGTERM right after SIGCONT, as Terminate sends it, was lost 5 times in 300. Its child must accept the
// signals that it blocks.
func TestServeScriptMissesNoSignal(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped engine: patroni: install the Debian package patroni")
	}
	cmd := exec.Command(python, "-c", serve, "/bin/sh", "-c", "echo $$; exec sleep 60")
	out, err := cmd.StdoutPipe()
	clustertest.Must(t, err)
	clustertest.Must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	clustertest.Must(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(line))
	clustertest.Must(t, err)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGCHLD} {
		if in(t, "SigCgt", cmd.Process.Pid, signal) {
			t.Errorf("%v has a handler", signal)
		}
		if in(t, "SigBlk", child, signal) {
			t.Errorf("%v is blocked in what was started", signal)
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGTERM} {
		clustertest.Must(t, cmd.Process.Signal(signal))
	}
	_ = cmd.Wait() // the exit code of the child
	if syscall.Kill(child, 0) == nil {
		t.Error("what it started is there yet")
	}
}
