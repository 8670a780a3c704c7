package dbtest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/dataset"
)

// noBulk hides the bulk load of a SQL database, so that rows are loaded by statements.
type noBulk struct{ db.SQL }

// errCut is the error of every commit after the limit.
var errCut = &db.Error{Class: db.Fatal, Op: "commit", Err: errors.New("the test has interrupted the load")}

// cut allows a number of commits and fails all commits after them.
type cut struct{ left atomic.Int64 }

func (c *cut) commit(next func() error) error {
	if c.left.Add(-1) < 0 {
		return errCut
	}
	return next()
}

type cutSQL struct {
	noBulk
	cut *cut
}

type cutSQLSession struct {
	db.SQLSession
	cut *cut
}

func (d cutSQL) Session(ctx context.Context, o db.SessionOptions) (db.SQLSession, error) {
	s, err := d.noBulk.Session(ctx, o)
	return cutSQLSession{s, d.cut}, err
}

func (s cutSQLSession) Commit(ctx context.Context) error {
	err := s.cut.commit(func() error { return s.SQLSession.Commit(ctx) })
	if errors.Is(err, errCut) {
		_ = s.Rollback(ctx)
	}
	return err
}

type cutKV struct {
	db.KV
	cut *cut
}

type cutKVSession struct {
	db.KVSession
	cut *cut
}

func (d cutKV) KVSession(ctx context.Context, o db.SessionOptions) (db.KVSession, error) {
	s, err := d.KV.KVSession(ctx, o)
	return cutKVSession{s, d.cut}, err
}

func (s cutKVSession) Commit(ctx context.Context) error {
	err := s.cut.commit(func() error { return s.KVSession.Commit(ctx) })
	if errors.Is(err, errCut) {
		s.Rollback()
	}
	return err
}

// cutOff returns the database with a limit on the number of commits.
func cutOff(database db.Database, commits int64) db.Database {
	c := new(cut)
	c.left.Store(commits)
	if d, ok := database.(db.SQL); ok {
		return cutSQL{noBulk{d}, c}
	}
	return cutKV{database.(db.KV), c}
}

// banks returns functions that open the databases on which the states of a bank are tested.
func banks(t *testing.T) map[string]func(*testing.T) db.Database {
	return map[string]func(*testing.T) db.Database{
		"sqlite":          func(t *testing.T) db.Database { return openSQLite(t) },
		"sqlite unbulked": func(t *testing.T) db.Database { return noBulk{openSQLite(t)} },
		"memory":          func(t *testing.T) db.Database { return openMemory(t, "memory:") },
		"postgres":        func(t *testing.T) db.Database { d, _ := openPostgres(t); return d },
		"postgres unbulked": func(t *testing.T) db.Database {
			d, _ := openPostgres(t)
			return noBulk{d}
		},
	}
}

// forBanks runs a test on each database of banks.
func forBanks(t *testing.T, test func(t *testing.T, database db.Database)) {
	for name, open := range banks(t) {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// newBank returns a small bank with a change to its configuration.
func newBank(t *testing.T, database db.Database, change func(*bank.Config)) *bank.Bank {
	t.Helper()
	c := small()
	if change != nil {
		change(&c)
	}
	b, err := bank.New(database, c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mustLoad loads the bank and ends the test if the load fails.
func mustLoad(t *testing.T, b *bank.Bank) {
	t.Helper()
	if _, err := b.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// TestAttachNumbersRunsConsecutively checks the run number, seed and size that each attachment finds.
func TestAttachNumbersRunsConsecutively(t *testing.T) {
	t.Parallel()
	forBanks(t, func(t *testing.T, database db.Database) {
		mustLoad(t, newBank(t, database, nil))
		for want := uint64(1); want <= 3; want++ {
			// A worker on another machine knows neither the seed nor the size.
			b := newBank(t, database, func(c *bank.Config) { c.Accounts, c.Seed = 0, 0 })
			loaded, err := b.Attach(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h := b.Header()
			if h.Run != want || h.Seed != 7 || h.Objects != 200 || loaded.Size != 200 || h.Total == 0 {
				t.Fatalf("attachment %d found %+v, %+v", want, h, loaded)
			}
		}
	})
}

// TestAttachRefusesOtherSeedOrSize checks that a run refuses a missing bank and a bank with another seed or size.
func TestAttachRefusesOtherSeedOrSize(t *testing.T) {
	t.Parallel()
	forBanks(t, func(t *testing.T, database db.Database) {
		attach := func(change func(*bank.Config)) error {
			_, err := newBank(t, database, change).Attach(t.Context())
			return err
		}
		none := wantError[*dataset.StateError](t, attach(nil))
		if !strings.Contains(none.Error(), "run `stroppy load` first") {
			t.Errorf("without a bank: %v", none)
		}
		mustLoad(t, newBank(t, database, nil))
		wantError[*dataset.MismatchError](t, attach(func(c *bank.Config) { c.Seed = 8 }))
		wantError[*dataset.MismatchError](t, attach(func(c *bank.Config) { c.Accounts = 202 }))
		wantError[*dataset.MismatchError](t, attach(func(c *bank.Config) { c.Accounts, c.AuditSample = 0, 201 }))
		if err := attach(nil); err != nil {
			t.Error(err)
		}
	})
}

// TestLoadReplacesEarlierBank checks that a run on a replaced bank is valid.
func TestLoadReplacesEarlierBank(t *testing.T) {
	t.Parallel()
	forBanks(t, func(t *testing.T, database db.Database) {
		c := small()
		c.Audits = 20
		runBank(t, database, c, 500)
		c.Seed, c.Accounts = 99, 150
		o := runBank(t, database, c, 500)
		o.wantValid(t)
	})
}

// TestInterruptedLoadIsRefusedUntilRepeated checks that an incomplete load is refused. The next load starts again in a
// SQL database and continues in a key-value store.
func TestInterruptedLoadIsRefusedUntilRepeated(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		commits int64
		open    func(t *testing.T) db.Database
		resumes bool
	}{
		{"sqlite", 3, func(t *testing.T) db.Database { return openSQLite(t) }, false},
		{"postgres", 3, func(t *testing.T) db.Database { d, _ := openPostgres(t); return d }, false},
		{"memory", 12, func(t *testing.T) db.Database { return openMemory(t, "memory:") }, true},
		{"sqlite before its first batch", 1, func(t *testing.T) db.Database { return openSQLite(t) }, false},
		{"memory before its first batch", 1, func(t *testing.T) db.Database { return openMemory(t, "memory:") }, false},
	} {
		for _, same := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				database := test.open(t)
				many := func(c *bank.Config) { c.Accounts = 25_000 }
				_, err := newBank(t, cutOff(database, test.commits), many).Load(t.Context(), nil)
				if !errors.Is(err, errCut) {
					t.Fatalf("the interrupted load ended with %v", err)
				}
				_, err = newBank(t, database, many).Attach(t.Context())
				if e := wantError[*dataset.StateError](t, err); !strings.Contains(e.Error(), "not finished") {
					t.Errorf("the incomplete bank: %v", e)
				}
				if d, ok := database.(db.SQL); ok {
					database = noBulk{d}
				}
				b := newBank(t, database, func(c *bank.Config) {
					many(c)
					if !same {
						c.Seed++
					}
				})
				loaded, err := b.Load(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if resumed := loaded.Resumed > 0; resumed != (test.resumes && same) {
					t.Errorf("%d accounts were kept", loaded.Resumed)
				}
				wantOpeningBalances(t, b, 25_000)
			})
		}
	}
}

// TestInterruptedBulkLoadStartsAgain checks that a cancelled bulk load leaves a bank that is refused and can be loaded
// again.
func TestInterruptedBulkLoadStartsAgain(t *testing.T) {
	t.Parallel()
	database, _ := openPostgres(t)
	ctx, cancel := context.WithCancel(t.Context())
	many := func(c *bank.Config) { c.Accounts = 200_000 }
	_, err := newBank(t, database, many).Load(ctx, func(done, total uint64) { cancel() })
	if err == nil {
		t.Fatal("a cancelled load succeeded")
	}
	_, err = newBank(t, database, many).Attach(t.Context())
	wantError[*dataset.StateError](t, err)
	b := newBank(t, database, many)
	loaded, err := b.Load(t.Context(), nil)
	if err != nil || loaded.Resumed != 0 {
		t.Fatalf("loaded %+v, %v", loaded, err)
	}
	wantOpeningBalances(t, b, 200_000)
}

// wantOpeningBalances attaches and fails the test unless the end state equals the state after the load.
func wantOpeningBalances(t *testing.T, b *bank.Bank, accounts uint64) {
	t.Helper()
	if _, err := b.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "history")
	w, err := history.CreateEnd(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.EndState(t.Context(), w, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	end, err := history.OpenEnd(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	var sum int64
	seen := map[uint64]bool{}
	for a, err := range end.Objects() {
		if err != nil {
			t.Fatal(err)
		}
		if seen[a.N] || a.N >= accounts || a.Version != 0 || a.Writer != 0 {
			t.Fatalf("the end state has the unexpected account %+v", a)
		}
		seen[a.N] = true
		sum += a.Value
	}
	if uint64(len(seen)) != accounts || sum != b.Header().Total || len(end.Unexpected()) > 0 {
		t.Errorf("%d accounts with %d cents in all, want %d with %d; unexpected %v",
			len(seen), sum, accounts, b.Header().Total, end.Unexpected())
	}
	for leg := range end.Rows() {
		t.Fatalf("the ledger of a new bank has the row %+v", leg)
	}
}

// TestLoadRefusesForeignData checks that a load does not replace tables, keys or metadata that another program made.
func TestLoadRefusesForeignData(t *testing.T) {
	t.Parallel()
	t.Run("table", func(t *testing.T) {
		database, url := openPostgres(t)
		psql(t, url, "CREATE TABLE stroppy_account (mine int); INSERT INTO stroppy_account VALUES (1)")
		_, err := newBank(t, database, nil).Load(t.Context(), nil)
		wantError[*dataset.StateError](t, err)
		if left := psql(t, url, "SELECT mine FROM stroppy_account"); left != "1\n" {
			t.Errorf("the foreign table holds %q", left)
		}
	})
	t.Run("keys", func(t *testing.T) {
		database := openMemory(t, "memory:")
		s, err := database.KVSession(t.Context(), db.SessionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		s.Set([]byte("stroppy_ledger/mine"), []byte("x"))
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = newBank(t, database, nil).Load(t.Context(), nil)
		wantError[*dataset.StateError](t, err)
	})
	t.Run("schema", func(t *testing.T) {
		database, url := openPostgres(t)
		b := newBank(t, database, nil)
		mustLoad(t, b)
		psql(t, url, "UPDATE stroppy_meta SET value = '3' WHERE name = 'schema'")
		_, err := b.Load(t.Context(), nil)
		wantError[*dataset.StateError](t, err)
		_, err = b.Attach(t.Context())
		wantError[*dataset.StateError](t, err)
	})
	t.Run("altered", func(t *testing.T) {
		database, url := openPostgres(t)
		b := newBank(t, database, nil)
		mustLoad(t, b)
		psql(t, url, "UPDATE stroppy_meta SET value = 'much' WHERE name = 'total'")
		_, err := b.Attach(t.Context())
		wantError[*dataset.StateError](t, err)
		mustLoad(t, b)
	})
}

// TestAttachReportsMissingPermission checks the error of a user without the right to read the tables.
func TestAttachReportsMissingPermission(t *testing.T) {
	t.Parallel()
	database, url := openPostgres(t)
	mustLoad(t, newBank(t, database, nil))
	psql(t, url, "DROP ROLE IF EXISTS unprivileged; CREATE ROLE unprivileged LOGIN")
	unprivileged := openPostgresURL(t, strings.Replace(url, "postgres@", "unprivileged@", 1))
	_, err := newBank(t, unprivileged, nil).Attach(t.Context())
	if e := wantError[*dataset.StateError](t, err); !strings.Contains(e.Error(), "permission denied") {
		t.Errorf("without the right to read: %v", e)
	}
	_, err = newBank(t, unprivileged, nil).Load(t.Context(), nil)
	if err == nil {
		t.Error("a user without rights can load")
	}
	t.Log(err)
}
