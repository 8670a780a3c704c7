package dbtest

import (
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
	"stroppy/internal/workload/tpcb"
)

// TestRemoveDeletesOnlyOwnData checks that a bank is removed completely, and that a second removal finds nothing. Data
// of another program must remain.
func TestRemoveDeletesOnlyOwnData(t *testing.T) {
	t.Parallel()
	forBanks(t, func(t *testing.T, database db.Database) {
		mustLoad(t, newBank(t, database, nil))
		b := newBank(t, database, nil)
		removed, err := b.Remove(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(removed.What, "bank of 200 accounts") || len(removed.Names) < 2 {
			t.Errorf("the removed data is %+v", removed)
		}
		_, err = newBank(t, database, nil).Attach(t.Context())
		wantError[*dataset.StateError](t, err)
		if again, err := b.Remove(t.Context()); err != nil || again.What != "" {
			t.Errorf("the second removal returned %+v, %v", again, err)
		}
		mustLoad(t, newBank(t, database, nil))
		rewriteMeta(t, database, "3")
		_, err = b.Remove(t.Context())
		if e := wantError[*dataset.StateError](t, err); !strings.Contains(e.Error(), "schema version 3") {
			t.Error(e)
		}
		rewriteMeta(t, database, "2")
		if s, ok := database.(db.SQL); ok {
			if err := s.Exec(t.Context(), "DELETE FROM stroppy_meta"); err != nil {
				t.Fatal(err)
			}
			_, err = b.Remove(t.Context())
			if e := wantError[*dataset.StateError](t, err); !strings.Contains(e.Error(), "stroppy_account, which was not made by this program") {
				t.Error(e)
			}
			if err := s.Exec(t.Context(), "DROP TABLE stroppy_ledger"); err != nil { // the refused removal left the table
				t.Error(err)
			}
			if err := s.Exec(t.Context(), "DROP TABLE stroppy_account"); err != nil {
				t.Error(err)
			}
			return
		}
		if _, err := b.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestRemoveKeepsTablesOfPgbench checks that only the metadata of this program is removed from tables that pgbench
// created.
func TestRemoveKeepsTablesOfPgbench(t *testing.T) {
	t.Parallel()
	database := openSQLite(t)
	for _, statement := range []string{
		"CREATE TABLE pgbench_branches (bid INTEGER PRIMARY KEY, bbalance INTEGER, filler TEXT)", "INSERT INTO pgbench_branches VALUES (1, 0, NULL)",
		"CREATE TABLE pgbench_tellers (tid INTEGER PRIMARY KEY, bid INTEGER, tbalance INTEGER, filler TEXT)", "INSERT INTO pgbench_tellers VALUES (1, 1, 0, NULL)",
		"CREATE TABLE pgbench_accounts (aid INTEGER PRIMARY KEY, bid INTEGER, abalance INTEGER, filler TEXT)", "INSERT INTO pgbench_accounts VALUES (1, 1, 0, '')",
		"CREATE TABLE pgbench_history (tid INTEGER, bid INTEGER, aid INTEGER, delta INTEGER, mtime TEXT, filler TEXT)",
	} {
		if err := database.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	c := smallTPCB()
	c.Scale, c.Ratio, c.Seed, c.AnyRows = 0, [3]uint64{}, 0, true
	w, err := tpcb.New(database, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	removed, err := w.Remove(t.Context())
	if names := strings.Join(removed.Names, " "); err != nil || strings.Contains(names, "pgbench") || !strings.Contains(names, "stroppy_tpcb_meta") {
		t.Errorf("it removed %s, %v", names, err)
	}
	if err := database.Exec(t.Context(), "INSERT INTO pgbench_accounts VALUES (2, 1, 0, '')"); err != nil {
		t.Errorf("the tables are gone: %v", err)
	}
}
