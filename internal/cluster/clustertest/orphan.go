package clustertest

import (
	"os"
	"os/exec"
	"testing"
)

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
