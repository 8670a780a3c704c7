package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestPackagesCompileOnEveryPlatform checks that the project's packages are valid Go for systems on which no test runs.
// It checks only types, from the sources, and only the signatures of other modules. Compiling all of them takes minutes
// for each system.
func TestPackagesCompileOnEveryPlatform(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []target{{"darwin", "arm64"}, {"windows", "amd64"}} {
		t.Run(one.String(), func(t *testing.T) {
			t.Parallel()
			problems, checked := typeErrors(t, root, one, "./cmd/...", "./internal/...")
			for _, p := range problems {
				t.Error(p)
			}
			if checked < 50 {
				t.Errorf("only %d packages of the project were checked", checked)
			}
		})
	}
}

// TestPlatformCheckFindsErrors checks that the check above can fail.
func TestPlatformCheckFindsErrors(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example\n\ngo 1.26.0\n",
		"main.go": "package main\n\nimport \"syscall\"\n\nfunc main() { _ = syscall.Kill(1, syscall.SIGTERM) }\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if problems, _ := typeErrors(t, root, target{"darwin", "arm64"}, "."); len(problems) != 0 {
		t.Errorf("darwin has syscall.Kill: %v", problems)
	}
	if problems, _ := typeErrors(t, root, target{"windows", "amd64"}, "."); len(problems) != 1 || !strings.Contains(problems[0], "undefined: syscall.Kill") {
		t.Errorf("windows has no syscall.Kill: %v", problems)
	}
}

// typeErrors returns what is wrong in packages of the module at root, and how many of them
// there are.
func typeErrors(t *testing.T, root string, one target, patterns ...string) (problems []string, checked int) {
	t.Helper()
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedModule,
		Dir: root, Env: environment(os.Environ(), one),
		ParseFile: func(set *token.FileSet, path string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(path, root+string(filepath.Separator)) {
				for _, d := range file.Decls {
					if f, ok := d.(*ast.FuncDecl); ok {
						f.Body = nil
					}
				}
			}
			return file, err
		},
	}
	list, err := packages.Load(config, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		checked++
		for _, e := range p.Errors {
			problems = append(problems, e.Error())
		}
	}
	return problems, checked
}
