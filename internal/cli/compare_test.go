//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnwritableComparisonPageIsReported checks that the comparison is printed and its runs are kept, and that the
// last line reports the missing page. A violation takes precedence.
func TestUnwritableComparisonPageIsReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		db, says, also string
		code           int
	}{
		{"memory:", "comparison.html: ", "", 3},
		{"memory:?mutant=swap&rate=0.1", "invalid: a check found a violation in 01-a", "comparison.html: ", 1},
	} {
		scenario := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(scenario, []byte("db: '"+c.db+"'\naccounts: 200\nclients: 2\nrate: 400\nduration: 500ms\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := start(t, "compare", scenario, scenario, "--repeat", "1", "--out", "c")
		p.goesOn(t, func() bool { return os.Mkdir(filepath.Join(p.dir, "c", "comparison.html"), 0o755) == nil })
		code, stdout, stderr := p.wait(t)
		refused(t, code, c.code, stderr, c.says)
		if !strings.Contains(stderr, c.also) || !strings.Contains(stdout, "B against A") || strings.Contains(stdout, "comparison.html") {
			t.Errorf("%s: it printed %s and reported %s", c.db, stdout, stderr)
		}
		for _, run := range []string{"01-a", "01-b"} {
			if _, err := os.Stat(filepath.Join(p.dir, "c", run, "report.html")); err != nil {
				t.Error(err)
			}
		}
		if c.code != 3 {
			continue
		}
		// A directory can have this name, and no file in it: 4096 bytes are the most.
		long := strings.Repeat(strings.Repeat("x", 254)+"/", 16)[:4075]
		p = start(t, "report", filepath.Join(p.dir, "c/01-a"), filepath.Join(p.dir, "c/01-b"), "--out", long)
		code, _, stderr = p.wait(t)
		refused(t, code, 2, stderr, "name another with --out")
	}
}
