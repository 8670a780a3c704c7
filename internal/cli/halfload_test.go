//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/memory"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/dataset"
)

// TestInterruptedLoadLeavesOnlyItsData checks that an interrupted load reports what it leaves, and leaves nothing
// else.
func TestInterruptedLoadLeavesOnlyItsData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		args  []string
		file  string // of the database
		says  string
		again string // the command that goes on, after its seed; empty: none is reported
		left  string
	}{
		{"run's own", []string{"run"}, "stroppy-runs/*/bank.db", "interrupted: nothing was recorded", "", ""},
		{"run's own, named place", []string{"run", "--out", "r"}, "r/bank.db", "interrupted: nothing was recorded", "", ""},
		{"run", []string{"run", "--db", "sqlite:a.db", "--out", "r"}, "a.db", "interrupted: nothing was recorded", "repeat with: stroppy run bank --db sqlite:a.db --seed ", "a.db"},
		{"pop", []string{"pop"}, "bank.db", "interrupted: the load is not finished", "repeat with: stroppy load --seed ", "bank.db"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append(c.args, "--accounts", "1000000")...)
			p.goesOn(t, func() bool { // the note of a load that has begun is in the log, and the rows come
				found, err := filepath.Glob(filepath.Join(p.dir, c.file+"-wal"))
				if err != nil || len(found) == 0 {
					return false
				}
				info, err := os.Stat(found[0])
				return err == nil && info.Size() > 1<<20
			})
			p.signal(t, syscall.SIGINT)
			code, stdout, stderr := p.wait(t)
			refused(t, code, 3, stderr, c.says)
			if stdout != "" || strings.Contains(stderr, "is kept") || strings.Contains(stderr, "with: ") != (c.again != "") || !strings.Contains(stderr, c.again) {
				t.Errorf("it printed %s and said %s", stdout, stderr)
			}
			var left []string
			entries, err := os.ReadDir(p.dir)
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if got := strings.Join(left, " "); err != nil || got != c.left {
				t.Errorf("%q is left, %v", got, err)
			}
		})
	}
}

// TestReplacedLoadReportsIt checks that the load whose data another load has replaced reports that, and that the
// other data are complete.
func TestReplacedLoadReportsIt(t *testing.T) {
	t.Parallel()
	file := func(t *testing.T) db.Database {
		d, err := sqlite.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "a.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	store := func(t *testing.T) db.Database {
		d, err := memory.Open("memory:")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	for name, open := range map[string]func(t *testing.T) db.Database{"sql": file, "key-value": store} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testTwoLoads(t, open(t), true, 2) // of the same seed, the second could go on with the first
			testTwoLoads(t, open(t), false, 2)
			testTwoLoads(t, open(t), false, 1)
		})
	}
}

// testTwoLoads starts a load with seed 1 and runs a second load with the given seed. The second load runs when the
// first has created its last account, before or after its end.
func testTwoLoads(t *testing.T, database db.Database, during bool, seed uint64) {
	t.Helper()
	load := func(seed uint64) *bank.Bank {
		c := bank.DefaultConfig()
		c.Seed, c.Accounts, c.Clients = seed, 500, 1
		b, err := bank.New(database, c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first, second := load(1), load(seed)
	another := func() {
		if _, err := second.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	met := false
	_, err := first.Load(t.Context(), func(done, total uint64) {
		if during && done == total && !met {
			met = true
			another()
		}
	})
	if !during && err == nil {
		another()
		_, err = first.Attach(t.Context())
	}
	reported, ok := err.(*dataset.StateError)
	if !ok || !strings.Contains(reported.Error(), "another load of this database began before this one was done") || strings.Contains(reported.Error(), "seed") {
		t.Errorf("the first load: %v", err)
	}
	if loaded, err := second.Attach(t.Context()); err != nil || loaded.Size != 500 {
		t.Errorf("the second load: %+v, %v", loaded, err)
	}
}

// TestLoadOfALockedFileCannotContinue checks that a load that never began offers no command to continue.
func TestLoadOfALockedFileCannotContinue(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "a.db")
	if code, _, stderr := call(t, "pop", "--db", url, "--accounts", "10", "--seed", "5"); code != 0 {
		t.Fatal(stderr)
	}
	d, err := sqlite.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.Session(t.Context(), db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), &db.Statement{SQL: "DELETE FROM stroppy_ledger"}, nil); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(t, "pop", "--db", url+"?busy_timeout=50ms", "--accounts", "10")
	refused(t, code, 3, stderr, "begin the load: ", "database is locked")
	if strings.Contains(stderr, "with: ") {
		t.Errorf("it says to go on: %s", stderr)
	}
}
