package internal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mutated are the folders whose tests TestMutationsAreNoticed measures.
var mutated = []string{"check", "load", "run", "stats"}

// known are mutations that no test noticed once: a file, a text that it has once, and its replacement.
var known = [][3]string{
	{"check/text/text.go", `", first: "`, `", and first: "`},
	{"check/text/text.go", `"Not decided: "`, `"Undecided: "`},
	{"db/isolations.go", `"_", " "`, `"_", "_"`},
	{"stats/effect.go", "leastPhase = 100 *", "leastPhase = 10 *"},
	{"run/faults.go", "time.Duration(to) >= end", "time.Duration(to) > end"},
	{"scenario/plan.go", "enough = 3", "enough = 2"},
}

// swaps are the operators that a mutation exchanges.
var swaps = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.INC: "--", token.SUB: "+", token.QUO: "*",
}

// mutation is a change of one file, which its package's tests should notice.
type mutation struct {
	path, what string
	source     []byte
}

// TestMutationsAreNoticed makes the known mutations and STROPPY_TEST_MUTATIONS drawn ones, one at a time, and runs the
// short tests of their package. It logs the score and each mutation that no test noticed. A known mutation must be
// noticed.
func TestMutationsAreNoticed(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("STROPPY_TEST_MUTATIONS"))
	if err != nil {
		t.Skip("set STROPPY_TEST_MUTATIONS to a number, such as 40")
	}
	var drawn []mutation
	for _, folder := range mutated {
		each(t, folder, func(path string, data []byte, file *ast.File, set *token.FileSet) {
			drawn = append(drawn, mutationsOf(path, data, file, set)...)
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	rng.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	for _, k := range known {
		data, err := os.ReadFile(k[0])
		if err != nil || bytes.Count(data, []byte(k[1])) != 1 {
			t.Errorf("%s does not have %q once: change the list of known mutations (%v)", k[0], k[1], err)
			continue
		}
		m := mutation{k[0], k[1] + " -> " + k[2], bytes.Replace(data, []byte(k[1]), []byte(k[2]), 1)}
		if !noticed(t, m) {
			t.Errorf("no test noticed the known mutation %s: %s", m.path, m.what)
		}
	}
	kept := 0
	for _, m := range drawn[:min(count, len(drawn))] {
		if noticed(t, m) {
			kept++
		} else {
			t.Logf("no test noticed %s: %s", m.path, m.what)
		}
	}
	t.Logf("the tests noticed %d of %d drawn mutations, of %d", kept, min(count, len(drawn)), len(drawn))
}

// mutationsOf returns one mutation for each operator in a file.
func mutationsOf(path string, data []byte, file *ast.File, set *token.FileSet) (list []mutation) {
	swap := func(at token.Pos, operator token.Token) {
		other, found := swaps[operator]
		if !found {
			return
		}
		position := set.Position(at)
		source := slices.Concat(data[:position.Offset], []byte(other), data[position.Offset+len(operator.String()):])
		list = append(list, mutation{path, fmt.Sprintf("line %d: %s -> %s", position.Line, operator, other), source})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			swap(n.OpPos, n.Op)
		case *ast.IncDecStmt:
			swap(n.TokPos, n.Tok)
		}
		return true
	})
	return list
}

// noticed reports whether the tests of the package fail with a mutation. A mutation that runs for minutes counts.
func noticed(t *testing.T, m mutation) bool {
	t.Helper()
	dir := t.TempDir()
	absolute, err := filepath.Abs(m.path)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(dir, "changed.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {absolute: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{changed: m.source, filepath.Join(dir, "overlay.json"): overlay} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-short", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "./"+filepath.Dir(m.path))
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "[build failed]") {
		t.Errorf("%s: %s does not compile:\n%s", m.path, m.what, out)
	}
	return err != nil
}
