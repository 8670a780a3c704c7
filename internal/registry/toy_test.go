//go:build !embedded

package registry

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNewDriverWorkloadAndCheckNeedOneEntryEach checks that a database, a workload or a check is added as one
// folder or file and one entry of a list.
func TestNewDriverWorkloadAndCheckNeedOneEntryEach(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, internal := t.TempDir(), filepath.Dir(here)
	replaced := map[string]string{}
	// add adds a file to the program, and an entry to the list that begins with the text before.
	add := func(at, name, list, before, entry string) {
		t.Helper()
		replaced[filepath.Join(internal, at, name+".go")] = filepath.Join(here, "testdata", "toy", name+".go.txt")
		path := filepath.Join(internal, list)
		source, err := os.ReadFile(cmp.Or(replaced[path], path))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(source), before, before+"\n"+entry, 1)
		if filepath.Base(at) == name { // a package of its own
			text = strings.Replace(text, "import (", "import (\n\"stroppy/internal/"+at+"\"\n", 1)
		}
		if strings.Count(text, entry) != 1 {
			t.Fatalf("%s has no %q", list, before)
		}
		replaced[path] = filepath.Join(dir, strings.ReplaceAll(list, "/", "-"))
		if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	add("db/toysql", "toysql", "registry/servers.go", "return []Database{", "{Driver: toysql.Driver},")
	add("db/toystore", "toystore", "registry/servers.go", "return []Database{", "{Driver: toystore.Driver},")
	add("workload/toywork", "toywork", "registry/workloads.go", "return scenario.Workloads{", "toywork.Spec(),")
	add("workload/kv", "toycheck", "workload/kv/spec.go", "return []check.Declared{", "toycheck(),")
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "stroppy")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "stroppy/cmd/stroppy")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct{ args, out string }{
		{"run bank --db toysql:" + filepath.Join(dir, "bank.db"), "VALID"},
		{"run append --db toysql:" + filepath.Join(dir, "append.db"), "VALID"},
		{"run bank --accounts 100 --db toystore:", "VALID"},
		{"run kv --records 100 --db toystore:", "VALID"},
		{"run events --db toystore:", "VALID"},
		{"run kv --records 100 --value-size 900..1100 --db toystore:", "INVALID"},
		{"run toywork --db toystore:", "VALID"},
		{"run toywork --db memory:?unknown=0.02", "VALID"},
		{"run toywork --db memory:?mutant=lost-update&rate=0.2", "INVALID"},
	} {
		args := append(strings.Fields(c.args), "--count=300", "--clients=4", "--seed=1", "--out="+filepath.Join(dir, "run"))
		out, _ := exec.CommandContext(t.Context(), program, args...).Output()
		if !strings.HasPrefix(string(out), c.out+" ") {
			t.Errorf("stroppy %s does not say %s:\n%s", strings.Join(args, " "), c.out, out)
		}
		if err := os.RemoveAll(filepath.Join(dir, "run")); err != nil {
			t.Fatal(err)
		}
	}
}
