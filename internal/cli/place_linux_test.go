package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/db/drivertest"
)

// TestUnusableDirectoryIsWrongUsage checks this for every command and reason, and that nothing is made.
func TestUnusableDirectoryIsWrongUsage(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "places") // not t.TempDir, whose parent nobody else may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	in := func(name string) string { return filepath.Join(base, name) }
	for _, dir := range []struct {
		name string
		mode os.FileMode
	}{{"", 0o755}, {"held", 0o755}, {"empty", 0o555}, {"locked", 0o555}, {"secret", 0o700}} {
		if err := os.MkdirAll(in(dir.name), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(in(dir.name), 0o755) }) // so that it can be removed
		if err := os.Chmod(in(dir.name), dir.mode); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() != 0 { // whoever owns it may enter it
		if err := os.Chmod(in("secret"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(in("held/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere/at/all", in("dangling")); err != nil {
		t.Fatal(err)
	}
	bank := "sqlite:" + filepath.Join(t.TempDir(), "bank.db")
	paid := filepath.Join(t.TempDir(), "paid")
	for _, args := range [][]string{{"pop", "--db", bank, "--accounts", "100"}, {"pay", "--db", bank, "--count", "10", "--out", paid}} {
		if code, _, stderr := call(t, args...); code != 0 {
			t.Fatal(stderr)
		}
	}
	commands := [][]string{
		{"run", "--accounts", "100", "--count", "10"},
		{"run", "--accounts", "100", "--count", "10", "--db", "memory:"},
		{"pay", "--count", "10", "--db", bank},
		{"check", "--db", bank},
		{"check", paid, "--db", bank},
	}
	for _, c := range []struct {
		place  string
		nobody bool
		says   string
	}{
		{"held", false, "it is not empty: name another with --out, or remove it"},
		{"held/file", false, "not a directory: name another with --out"},
		{"held/file/in/it", false, "not a directory: name another with --out"},
		{"dangling", false, "file exists: name another with --out"},
		{strings.Repeat("long", 100), false, "file name too long: name another with --out"},
		{"empty", true, "permission denied: name another with --out"},
		{"locked/new", true, "permission denied: name another with --out"},
		{"secret", true, "permission denied: name another with --out"},
		{"secret/new", true, "permission denied: name another with --out"},
	} {
		for _, args := range commands {
			if c.nobody && strings.Contains(strings.Join(args, " "), bank) && os.Getuid() == 0 {
				continue // nobody may open that
			}
			try := func() {
				code, stdout, stderr := call(t, append(args, "--out", in(c.place))...)
				refused(t, code, 2, stderr, "use "+in(c.place)+" as the run's directory: ", c.says)
				if stdout != "" {
					t.Errorf("%v in %s printed %s", args, c.place, stdout)
				}
			}
			if c.nobody {
				drivertest.AsNobody(t, try)
			} else {
				try()
			}
		}
	}
	if left, err := os.ReadDir(base); err != nil || len(left) != 5 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// TestReadOnlyRunIsReported checks that the report of a read-only run or sweep is shown, with a note about the page.
func TestReadOnlyRunIsReported(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for dir := base; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755)
	}
	kept, swept := filepath.Join(base, "run"), filepath.Join(base, "sweep")
	for _, args := range [][]string{
		{"run", "--db", "memory:", "--count", "100", "--accounts", "100", "--out", kept},
		{"sweep", "--db", "memory:", "--over", "clients=1", "--count", "100", "--accounts", "100", "--out", swept},
	} {
		if code, _, stderr := call(t, args...); code != 0 {
			t.Fatal(stderr)
		}
	}
	for _, dir := range []string{kept, swept} {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
		drivertest.AsNobody(t, func() {
			code, stdout, stderr := call(t, "report", dir)
			if code != 0 || stdout == "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "permission denied: the report was shown, and its page not made again") {
				t.Errorf("report %s: exit code %d, stdout %q, stderr %q", dir, code, stdout, stderr)
			}
			if code, _, stderr = call(t, "report", "--json", dir); code != 0 || stderr != "" {
				t.Errorf("report --json %s: exit code %d, stderr %q", dir, code, stderr)
			}
		})
	}
}
