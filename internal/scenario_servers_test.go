package internal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// scenarioServer is the folder of a server's programs that a scenario names by its version.
var scenarioServer = regexp.MustCompile(`bin=etcd-([0-9.]+)`)

// provide builds the server whose version a scenario names, from its module, into the
// folder in which the scenario looks for it.
func provide(t *testing.T, sh *shell, scenario string) {
	t.Helper()
	named := scenarioServer.FindStringSubmatch(scenario)
	if named == nil {
		return
	}
	const module = "go.etcd.io/etcd/server/v3"
	source, folder := t.TempDir(), filepath.Join(sh.dir, "etcd-"+named[1])
	for name, text := range map[string]string{
		"go.mod":   "module server\n\ngo 1.16\n\nrequire " + module + " v" + named[1] + "\n",
		"tools.go": "//go:build tools\n\npackage server\n\nimport _ \"" + module + "\"\n",
	} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := build("mod", "download", module); err != nil {
		t.Skipf("skipped engine: etcd %s: its module cannot be had: %s", named[1], strings.TrimSpace(out))
	}
	if out, err := build("build", "-trimpath", "-o", filepath.Join(folder, "etcd"), module); err != nil {
		t.Fatalf("build etcd %s: %v\n%s", named[1], err, out)
	}
}
