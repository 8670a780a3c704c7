//go:build !embedded

package registry

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEachDatabaseHasOneEntry looks for the Driver of each folder of a database in list.go. One entry names it, and
// only three kinds of clusters ask the folder for more.
func TestEachDatabaseHasOneEntry(t *testing.T) {
	drivers, err := filepath.Glob("../db/*/driver.go")
	if err != nil || len(drivers) < 13 {
		t.Fatalf("%d folders have a driver, %v", len(drivers), err)
	}
	more := map[string]int{"foundationdb": 2, "infinisql": 1, "voltdb": 1}
	source, err := os.ReadFile("list.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range drivers {
		name := filepath.Base(filepath.Dir(path))
		uses := regexp.MustCompile(`\b`+name+`\.[A-Z]`).FindAllIndex(source, -1)
		if entries := strings.Count(string(source), "{Driver: "+name+".Driver"); entries != 1 || len(uses) != 1+more[name] {
			t.Errorf("list.go has %d entries of %s, and uses its folder %d times", entries, name, len(uses))
		}
	}
}

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
	add("db/toysql", "toysql", "registry/list.go", "return []Database{", "{Driver: toysql.Driver},")
	add("db/toystore", "toystore", "registry/list.go", "return []Database{", "{Driver: toystore.Driver},")
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
	listed, _ := exec.CommandContext(t.Context(), program, "list", "databases").Output()
	if !strings.Contains(string(listed), "toysql:PATH") || !strings.Contains(string(listed), "toystore:") {
		t.Errorf("the databases are\n%s", listed)
	}
	for address, says := range map[string]string{"toylite:x": "the nearest scheme is toysql:", "toy of mine": "here it is written toysql:PATH"} {
		out, _ := exec.CommandContext(t.Context(), program, "run", "bank", "--db", address).CombinedOutput()
		if !strings.Contains(string(out), says) {
			t.Errorf("the address %q gives %s", address, out)
		}
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
