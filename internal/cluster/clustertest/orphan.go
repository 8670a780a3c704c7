package clustertest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"stroppy/internal/cluster"
)

// Crash runs the test that calls it as another process, which starts a server and
// is killed, and holds that the server goes with it.
func (e Singles) Crash(t *testing.T) {
	const marker = "STROPPY_TEST_CRASH_DIR"
	if dir := os.Getenv(marker); dir != "" {
		_, err := e.Start(t.Context(), cluster.StandaloneOptions{Dir: dir})
		Must(t, err)
		Must(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	e.start(t, "", nil) // skips without the engine
	dir := filepath.Join(OpenDir(t), "server")
	Orphan(t, marker+"="+dir)
	ctx := Within(t, Patience)
	Must(t, cluster.Retry(ctx, func() error {
		if left := processesIn(t, dir); len(left) > 0 {
			return errors.New("the server outlived the process that started it")
		}
		return nil
	}))
}

// Orphan runs the test that calls it as another process with a variable more, and
// returns when that has killed itself. What is to be cleared after it is recorded
// in a folder of the test's own.
func Orphan(t *testing.T, variable string) {
	t.Helper()
	cmd := exec.CommandContext(Within(t, Patience), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable, "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the other process was not killed: %v: %s", err, out)
	}
}
