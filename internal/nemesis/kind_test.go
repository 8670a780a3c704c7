package nemesis

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNewFaultNeedsOneFileAndOneLine checks that a toy fault is added to the package by one file and one line in
// the list of kinds. It runs the toy's own test with them.
func TestNewFaultNeedsOneFileAndOneLine(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("kind.go")
	if err != nil {
		t.Fatal(err)
	}
	const before = "		processKinds(),\n"
	if strings.Count(string(source), before) != 1 {
		t.Fatalf("the list of kinds has no line %q", before)
	}
	list, overlay := filepath.Join(t.TempDir(), "kind.go"), filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(list, []byte(strings.Replace(string(source), before, "		[]kind{toyKind()},\n"+before, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(here, "kind.go"):     list,
		filepath.Join(here, "toy.go"):      filepath.Join(here, "testdata", "toy", "toy.go.txt"),
		filepath.Join(here, "toy_test.go"): filepath.Join(here, "testdata", "toy", "toy_test.go.txt"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replaced, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-overlay", overlay, "-run", "^TestToy$", ".").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestToy") {
		t.Errorf("%v\n%s", err, out)
	}
}
