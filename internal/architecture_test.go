// Package internal_test holds the rules of docs/architecture.md over the whole
// module.
package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const maxFunctionLines = 70

// listed is a package as go list reports it.
type listed struct {
	ImportPath string
	Dir        string
	Standard   bool
	Imports    []string
}

// importRule is a row of the table in docs/architecture.md: which of the module's
// packages a package may import. A folder below it has the same rule unless it has
// a row of its own.
type importRule struct {
	name    string
	imports []string // with a /... for all folders below too
	any     bool
	leaf    bool // nothing but the standard library, not even other modules
}

func importRules() []importRule {
	return []importRule{
		{name: "cmd/stroppy", imports: []string{"internal/cli"}},
		{name: "internal/cli", any: true},
		{name: "internal/registry", any: true},
		{name: "internal/session", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/netem", "internal/cluster/system", "internal/cluster/wait", "internal/db", "internal/exit", "internal/fault", "internal/history", "internal/isolation",
			"internal/live", "internal/load", "internal/nemesis", "internal/registry", "internal/report", "internal/resource", "internal/run", "internal/scenario",
			"internal/setting", "internal/spelling", "internal/workers", "internal/workload", "internal/workload/dataset", "scenarios"}},
		{name: "internal/exit", leaf: true},
		{name: "internal/campaign", imports: []string{"internal/cluster/system", "internal/db", "internal/exit", "internal/isolation", "internal/live", "internal/matrix", "internal/pace",
			"internal/registry", "internal/report", "internal/run", "internal/scenario", "internal/schedule", "internal/session", "internal/stats",
			"internal/sweep", "internal/sweep/study", "internal/workload", "scenarios"}},
		{name: "internal/scenario", imports: []string{"internal/history", "internal/isolation", "internal/nemesis", "internal/pace", "internal/setting", "internal/spelling", "internal/workload"}},
		{name: "internal/script", leaf: true},
		{name: "internal/setting", leaf: true},
		{name: "internal/tier", leaf: true},
		{name: "internal/spelling"},
		{name: "internal/run", imports: []string{"internal/fault", "internal/scenario", "internal/workload", "internal/load", "internal/db", "internal/history", "internal/check", "internal/check/cause", "internal/check/fact", "internal/check/text", "internal/stats", "internal/isolation", "internal/report", "internal/resource"}},
		{name: "internal/workload", imports: []string{"internal/workload", "internal/workload/dataset", "internal/workload/recording", "internal/workload/sampling", "internal/script", "internal/setting", "internal/db", "internal/load", "internal/history", "internal/check", "internal/check/fact", "internal/check/graph", "internal/check/invariants", "internal/check/lists", "internal/check/logs", "internal/check/registers", "internal/check/totals", "internal/isolation", "internal/money", "internal/stats"}},
		{name: "internal/workload/script", imports: []string{"internal/workload", "internal/workload/dataset", "internal/workload/recording", "internal/workload/sampling", "internal/workload/script/track", "internal/script", "internal/setting", "internal/db", "internal/load", "internal/history", "internal/check", "internal/check/fact", "internal/check/invariants", "internal/check/rows", "internal/check/totals", "internal/isolation", "internal/stats"}},
		{name: "internal/workload/script/track", imports: []string{"internal/script"}},
		{name: "internal/db", imports: []string{"internal/db", "internal/db/address", "internal/db/wire", "internal/db/optimistic", "internal/db/pgwire", "internal/isolation", "internal/money", "internal/spelling"}},
		{name: "internal/db/kvtest", imports: []string{"internal/db", "internal/db/drivertest"}},
		{name: "internal/db/sqltest", imports: []string{"internal/db", "internal/db/drivertest"}},
		{name: "internal/dbtest", any: true},
		{name: "internal/load", imports: []string{"internal/db", "internal/history", "internal/pace", "internal/stats"}},
		{name: "internal/history", leaf: true},
		{name: "internal/fault", leaf: true},
		{name: "internal/stats", imports: []string{"internal/fault", "internal/history"}},
		{name: "internal/check", imports: []string{"internal/check", "internal/check/cause", "internal/check/chains", "internal/check/fact", "internal/check/graph", "internal/history", "internal/isolation", "internal/money"}},
		{name: "internal/check/cause", imports: []string{"internal/check", "internal/check/fact", "internal/isolation"}},
		{name: "internal/check/text", imports: []string{"internal/check", "internal/check/cause", "internal/check/fact", "internal/history", "internal/isolation"}},
		{name: "internal/check/checktest", imports: []string{"internal/check", "internal/check/text", "internal/history"}},
		{name: "internal/check/fact", imports: []string{"internal/history", "internal/isolation"}},
		{name: "internal/foreign", imports: []string{"internal/foreign", "internal/check", "internal/check/fact", "internal/check/lists", "internal/check/sessions", "internal/check/text", "internal/history", "internal/isolation"}},
		{name: "internal/report", imports: []string{"internal/fault", "internal/check", "internal/check/fact", "internal/check/text", "internal/stats", "internal/history", "internal/isolation", "internal/money"}},
		{name: "internal/workers", imports: []string{"internal/load", "internal/history", "internal/stats", "internal/report", "internal/cluster/system", "internal/cluster/wait"}},
		{name: "internal/nemesis", imports: []string{"internal/nemesis", "internal/fault", "internal/cluster", "internal/cluster/host", "internal/cluster/wait", "internal/spelling"}},
		{name: "internal/cluster", imports: []string{"internal/cluster/wrap", "internal/cluster", "internal/cluster/host", "internal/cluster/netem", "internal/cluster/wait", "internal/cluster/system", "internal/fault", "internal/spelling"}},
		{name: "internal/cluster/host", imports: []string{"internal/cluster/wrap", "internal/cluster/cgroup", "internal/cluster/system", "internal/cluster/wait", "internal/fault"}},
		{name: "internal/cluster/netem", imports: []string{"internal/cluster/wrap", "internal/cluster/host", "internal/cluster/wait", "internal/fault"}},
		{name: "internal/cluster/wait", leaf: true},
		{name: "internal/cluster/wrap", leaf: true},
		{name: "internal/cluster/cgroup", imports: []string{"internal/cluster/wrap", "internal/cluster/system"}},
		{name: "internal/cluster/system", leaf: true},
		{name: "internal/cluster/postgres", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/netem", "internal/cluster/wait", "internal/cluster/postgres/patroni", "internal/cluster/postgres/pgbouncer", "internal/cluster/postgres/server"}},
		{name: "internal/cluster/postgres/server", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/netem", "internal/cluster/wait"}},
		{name: "internal/cluster/postgres/patroni", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/netem", "internal/cluster/wait", "internal/cluster/system", "internal/cluster/etcd", "internal/cluster/postgres/server"}},
		{name: "internal/cluster/postgres/pgbouncer", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/netem", "internal/cluster/wait", "internal/cluster/postgres/server"}},
		{name: "internal/cluster/own", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/wait", "internal/cluster/system", "internal/fault", "internal/spelling"}},
		{name: "internal/cluster/kubernetes", imports: []string{"internal/resource", "internal/cluster", "internal/cluster/host", "internal/cluster/wait", "internal/fault", "internal/cluster/system"}},
		{name: "internal/cluster/kubernetes/cockroach", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/wait", "internal/fault", "internal/cluster/kubernetes", "internal/cluster/cockroach"}},
		{name: "internal/cluster/kubernetes/etcd", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/wait", "internal/fault", "internal/cluster/kubernetes", "internal/cluster/etcd"}},
		{name: "internal/cluster/kubernetes/foundationdb", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/wait", "internal/fault", "internal/cluster/kubernetes", "internal/cluster/foundationdb"}},
		{name: "internal/cluster/kubernetes/mongodb", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/wait", "internal/fault", "internal/cluster/kubernetes", "internal/cluster/mongodb"}},
		{name: "internal/cluster/kubernetes/mysql", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/wait", "internal/fault", "internal/cluster/kubernetes", "internal/cluster/mysql"}},
		{name: "internal/cluster/kubernetes/postgres", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/wait", "internal/fault", "internal/cluster/kubernetes"}},
		{name: "internal/cluster/kubernetes/kubetest", imports: []string{"internal/cluster", "internal/cluster/host", "internal/cluster/wait", "internal/fault", "internal/cluster/system"}},
		{name: "internal/live", imports: []string{"internal/fault", "internal/run", "internal/report", "internal/stats"}},
		{name: "internal/resource"},
		{name: "internal/survey", imports: []string{"internal/db"}},
		{name: "internal/starter", imports: []string{"internal/db"}},
		{name: "internal/schedule", imports: []string{"internal/db"}},
		{name: "internal/matrix", imports: []string{"internal/schedule", "internal/isolation", "internal/report"}},
		{name: "internal/sweep", imports: []string{"internal/stats", "internal/report", "internal/sweep"}},
		{name: "internal/output", imports: []string{"internal/report", "internal/sweep", "internal/sweep/study"}},
		{name: "internal/isolation", leaf: true},
		{name: "internal/pace", leaf: true},
		{name: "internal/money", leaf: true},
	}
}

// ruleOf returns the rule for a package, which stands in the deepest row at or above it.
func ruleOf(path string) (importRule, bool) {
	var found importRule
	for _, r := range importRules() {
		if (path == r.name || strings.HasPrefix(path, r.name+"/")) && len(r.name) > len(found.name) {
			found = r
		}
	}
	return found, found.name != ""
}

func packages(t *testing.T) []listed {
	t.Helper()
	command := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Standard,Imports", "stroppy/...")
	command.Dir = ".."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []listed
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return list
		case err != nil:
			t.Fatal(err)
		}
		// The programs below tools/ are no part of stroppy, and internal itself has
		// no package but this test.
		if strings.HasPrefix(p.ImportPath, "stroppy/cmd/") || strings.HasPrefix(p.ImportPath, "stroppy/internal/") {
			list = append(list, p)
		}
	}
}

// TestImportsFollowTheArchitecture checks all imports against the table in docs/architecture.md. Tests may import any
// package.
func TestImportsFollowTheArchitecture(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, "stroppy/")
		r, known := ruleOf(path)
		if !known {
			t.Errorf("%s has no row in docs/architecture.md: give it one there and here, or put it below a package that has one", path)
			continue
		}
		for _, imported := range p.Imports {
			if problem := r.forbids(imported); problem != "" {
				t.Errorf("%s imports %s: %s", path, imported, problem)
			}
		}
	}
}

// TestEmbeddedBuild checks that the first build of a new user leaves out packages that compile slowly and are not
// needed for SQLite.
func TestEmbeddedBuild(t *testing.T) {
	out, err := exec.Command("go", "list", "-tags", "embedded", "-deps", "stroppy/cmd/stroppy").Output()
	if err != nil {
		t.Fatal(err)
	}
	slow := []string{"google.golang.org/", "github.com/prometheus/", "github.com/vishvananda/", "github.com/google/nftables",
		"github.com/hanwen/", "github.com/jackc/", "github.com/redis/", "go.etcd.io/", "go.mongodb.org/", "k8s.io/", "gonum.org/v1/gonum/lapack",
		"github.com/klauspost/", "net/http", "net/rpc", "crypto/tls", "crypto/x509", "encoding/gob", "debug/"}
	const most = 246
	packages := strings.Fields(string(out))
	if len(packages) > most {
		t.Errorf("%d packages, not %d at most", len(packages), most)
	}
	for _, name := range packages {
		if slices.ContainsFunc(slow, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			t.Errorf("%s is compiled", name)
		}
	}
}

// TestNemesisDoesNotUseTheOperatingSystem checks that the nemesis schedules, injects and reports, and
// leaves to the nodes what is of an operating system.
func TestNemesisDoesNotUseTheOperatingSystem(t *testing.T) {
	each(t, "nemesis", func(path string, text []byte, file *ast.File, _ *token.FileSet) {
		for _, i := range file.Imports {
			name := strings.Trim(i.Path.Value, `"`)
			if name == "os" || strings.HasPrefix(name, "os/") || name == "syscall" || name == "net" || name == "path/filepath" || strings.HasPrefix(name, "golang.org/x/sys") {
				t.Errorf("%s imports %s", path, name)
			}
		}
		if strings.Contains(string(text), "//go:build") || strings.Contains(string(text), "/proc/") {
			t.Errorf("%s has a build tag or names /proc", path)
		}
	})
}

func (r importRule) forbids(imported string) string {
	inside, own := strings.CutPrefix(imported, "stroppy/")
	switch {
	case r.any:
		return ""
	case own && slices.Contains(r.imports, inside):
		return ""
	case own:
		return fmt.Sprintf("%s may import only %v of this module", r.name, r.imports)
	case r.leaf && strings.Contains(strings.Split(imported, "/")[0], "."):
		return r.name + " may import only the standard library"
	}
	return ""
}

// TestOnlyRegistryNamesDatabasesAndWorkloads checks that only registry and the conformance suite see concrete databases
// and workloads. Packages that several databases share are not concrete.
func TestOnlyRegistryNamesDatabasesAndWorkloads(t *testing.T) {
	concrete := regexp.MustCompile(`^stroppy/internal/(db|workload)/`)
	shared := []string{"stroppy/internal/db/address", "stroppy/internal/db/drivertest", "stroppy/internal/db/wire", "stroppy/internal/db/optimistic", "stroppy/internal/db/pgwire", "stroppy/internal/workload/dataset", "stroppy/internal/workload/recording", "stroppy/internal/workload/sampling", "stroppy/internal/workload/script/track"}
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, "stroppy/")
		if path == "internal/registry" || strings.HasPrefix(path, "internal/dbtest") {
			continue
		}
		for _, imported := range p.Imports {
			if concrete.MatchString(imported) && !slices.Contains(shared, imported) {
				t.Errorf("%s imports the concrete %s", path, imported)
			}
		}
	}
}

// TestTheTableIsTheDocument checks that docs/architecture.md has a row for each
// rule, and no other rows.
func TestTheTableIsTheDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range regexp.MustCompile("`((?:internal|cmd)/[a-z/]+)`").FindAllStringSubmatch(cells[1], -1) {
			documented[m[1]] = true
		}
	}
	for _, r := range importRules() {
		if !documented[r.name] {
			t.Errorf("docs/architecture.md has no row for %s", r.name)
		}
		delete(documented, r.name)
	}
	for name := range documented {
		t.Errorf("docs/architecture.md has a row for %s, and this test has no rule for it", name)
	}
}

// TestPackageNamesMeanSomething checks that no package is named after nothing in particular.
func TestPackageNamesMeanSomething(t *testing.T) {
	for _, p := range packages(t) {
		for part := range strings.SplitSeq(p.ImportPath, "/") {
			if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "manager", "misc", "base"}, part) {
				t.Errorf("%s: the name %s says nothing", p.ImportPath, part)
			}
		}
	}
}

// namesDatabase are the files that name a database besides its folders: the registry.
var namesDatabase = []string{"registry/list.go", "cli/help.go"}

// TestDatabasesAreNamedOnce checks that generic code knows no database: the folders of
// its driver and of its clusters name it, and the registry.
func TestDatabasesAreNamedOnce(t *testing.T) {
	name := regexp.MustCompile(`(?i)postgres|sqlite|etcd|mysql|mariadb|galera|dqlite|redis|noop|pgbouncer|cockroach|voltdb|infinisql|foundationdb|\bfdb\b|mongo`)
	own := regexp.MustCompile(`^(db|cluster)/[a-z]+/|^dbtest/`)
	named := map[string]bool{}
	each(t, ".", func(path string, _ []byte, file *ast.File, set *token.FileSet) {
		if own.MatchString(path) {
			return
		}
		imported := map[token.Pos]bool{}
		for _, i := range file.Imports {
			imported[i.Path.Pos()] = true
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && !imported[text.Pos()] && name.MatchString(text.Value) {
				named[path] = true
				if !slices.Contains(namesDatabase, path) {
					t.Errorf("%s names the database of %s: databases are named in their folders, and by one entry in registry/list.go", set.Position(text.Pos()), text.Value)
				}
			}
			return true
		})
	})
	for _, path := range namesDatabase {
		if !named[path] {
			t.Errorf("%s names no database any more: take it from the list of exceptions", path)
		}
	}
}

// TestWorkloadsNameNoDatabase checks that the source of a workload is for all
// databases of its model.
func TestWorkloadsNameNoDatabase(t *testing.T) {
	name := regexp.MustCompile(`(?i)postgres|sqlite|etcd|mysql|mariadb|cockroach|foundationdb|mongo|voltdb|infinisql|dqlite|oracle database`)
	each(t, "workload", func(path string, data []byte, _ *ast.File, _ *token.FileSet) {
		for i, line := range bytes.Split(data, []byte("\n")) {
			if found := name.Find(line); found != nil {
				t.Errorf("%s:%d names the database %s", path, i+1, found)
			}
		}
	})
}

// TestWorkloadsAreNamedOnce checks that generic code knows no workload: its name is a
// string in the folders of workloads alone, where one that is a plain word may be a noun.
func TestWorkloadsAreNamedOnce(t *testing.T) {
	names, folders := map[string]bool{}, map[string]bool{}
	each(t, "workload", func(path string, data []byte, _ *ast.File, _ *token.FileSet) {
		if m := regexp.MustCompile(`(?m)^const Name = ("[a-z]+")$`).FindSubmatch(data); m != nil {
			names[string(m[1])], folders[filepath.Dir(path)] = true, true
		}
	})
	if specs, err := filepath.Glob("workload/*/spec.go"); err != nil || len(specs) == 0 || len(specs) != len(names) {
		t.Fatalf("%d folders below workload have a spec.go, and %d a constant Name: %v", len(specs), len(names), err)
	}
	each(t, ".", func(path string, _ []byte, file *ast.File, set *token.FileSet) {
		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if ok && names[text.Value] && !folders[filepath.Dir(path)] && !nouns(path, text.Value) {
				t.Errorf("%s names the workload %s: it is named in its folder alone, as a Spec", set.Position(text.Pos()), text.Value)
			}
			return true
		})
	})
}

// nouns reports whether a string is a plain noun of a sentence rather than the name of a workload.
func nouns(path, text string) bool {
	return filepath.Dir(path) == "check/text" && text == `"append"` || filepath.Dir(path) == "db/redis" && text == `"script"`
}

// TestWorkloadsAreNoExamples checks that generic code does not speak of a workload, not
// in a comment or a sentence either. A name that is also a data model's or a plain word
// says nothing there.
func TestWorkloadsAreNoExamples(t *testing.T) {
	name := regexp.MustCompile(`(?i)\b(bank|banks|tpcb)\b`)
	own := regexp.MustCompile(`^(workload/(bank|tpcb)|cli|registry|dbtest|db/sqltest)/`)
	each(t, ".", func(path string, data []byte, _ *ast.File, _ *token.FileSet) {
		if own.MatchString(path) {
			return
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			line = bytes.ReplaceAll(line, []byte("tpcb-like"), nil) // pgbench's script
			if found := name.Find(line); found != nil {
				t.Errorf("%s:%d speaks of the workload %s", path, i+1, found)
			}
		}
	})
}

// TestSizesOfFunctions checks that every function fits on a screen or two.
func TestSizesOfFunctions(t *testing.T) {
	each(t, ".", func(path string, _ []byte, file *ast.File, set *token.FileSet) {
		ast.Inspect(file, func(n ast.Node) bool {
			f, ok := n.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				return true
			}
			if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > maxFunctionLines {
				t.Errorf("%s: %s has %d lines: at most %d", path, f.Name.Name, lines, maxFunctionLines)
			}
			return true
		})
	})
}

// TestNoPackageHasInit checks that nothing happens by importing a package.
func TestNoPackageHasInit(t *testing.T) {
	each(t, ".", func(path string, _ []byte, file *ast.File, _ *token.FileSet) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has a func init", path)
			}
		}
	})
}

// TestOnlyCLIReadsTheEnvironment checks that only cli gets the environment, and reads none
// itself: Main is given it.
func TestOnlyCLIReadsTheEnvironment(t *testing.T) {
	each(t, ".", func(path string, _ []byte, file *ast.File, set *token.FileSet) {
		if strings.HasPrefix(path, "cluster/") || strings.HasPrefix(path, "dbtest/") || strings.HasPrefix(path, "check/checktest/") { // of the tests
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "os" && slices.Contains([]string{"Getenv", "LookupEnv", "Environ"}, s.Sel.Name) {
				t.Errorf("%s reads the environment: only Main is given it", set.Position(s.Pos()))
			}
			return true
		})
	})
}

// each calls f with every Go file below dir that is no test.
func each(t *testing.T, dir string, f func(path string, data []byte, file *ast.File, set *token.FileSet)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, data, 0)
		if err != nil {
			return err
		}
		f(path, data, file, set)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
