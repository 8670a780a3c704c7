package dbtest

import (
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/dataset"
)

// TestEachLoadHasOwnID checks that two loads with the same seed and size have different ids. If a bank is replaced
// during a run, the run must refuse to download the new bank.
func TestEachLoadHasOwnID(t *testing.T) {
	t.Parallel()
	forBanks(t, func(t *testing.T, database db.Database) {
		first := newBank(t, database, nil)
		mustLoad(t, first)
		attach := func(b *bank.Bank) history.Header {
			if _, err := b.Attach(t.Context()); err != nil {
				t.Fatal(err)
			}
			return b.Header()
		}
		one, same := attach(first), attach(newBank(t, database, nil))
		if one.LoadID == "" || one.LoadID != same.LoadID {
			t.Errorf("one load has the ids %q and %q", one.LoadID, same.LoadID)
		}
		if err := first.CheckUnchanged(t.Context()); err != nil {
			t.Error(err)
		}
		again := newBank(t, database, nil)
		var reported []string
		again.OnOverwrite(func(what string) { reported = append(reported, what) })
		mustLoad(t, again)
		if len(reported) != 1 || !strings.Contains(reported[0], "200 accounts") || !strings.Contains(reported[0], "2 runs have begun") {
			t.Errorf("the report on the replaced bank is %q", reported)
		}
		if two := attach(again); two.LoadID == one.LoadID || two.Seed != one.Seed || two.Total != one.Total {
			t.Errorf("the second load is %+v, the first %+v", two, one)
		}
		if err := again.CheckUnchanged(t.Context()); err != nil {
			t.Error(err)
		}
		wantError[*dataset.StateError](t, first.CheckUnchanged(t.Context()))
		end, err := history.CreateEnd(filepath.Join(t.TempDir(), "history"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = end.Abandon() }()
		e := wantError[*dataset.StateError](t, first.EndState(t.Context(), end, nil))
		if !strings.Contains(e.Error(), "loaded again while it was driven") {
			t.Error(e)
		}
	})
}

// rewriteMeta sets the schema version of a bank and deletes its load id, as if another version of the program had
// loaded it.
func rewriteMeta(t *testing.T, database db.Database, schema string) {
	t.Helper()
	switch d := database.(type) {
	case db.SQL:
		for _, statement := range []string{
			"UPDATE stroppy_meta SET value = '" + schema + "' WHERE name = 'schema'", "DELETE FROM stroppy_meta WHERE name = 'load_id'",
		} {
			if err := d.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	case db.KV:
		s, err := d.KVSession(t.Context(), db.SessionOptions{Mode: db.Pipelined})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		s.Set([]byte("stroppy_meta/schema"), []byte(schema))
		s.Delete([]byte("stroppy_meta/load_id"))
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoadIDIsRequiredFromSchema2 checks that a bank of schema 1 is accepted without a load id. A bank of schema 2
// without an id is refused.
func TestLoadIDIsRequiredFromSchema2(t *testing.T) {
	t.Parallel()
	forBanks(t, func(t *testing.T, database db.Database) {
		mustLoad(t, newBank(t, database, nil))
		rewriteMeta(t, database, "1")
		old := newBank(t, database, nil)
		if _, err := old.Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
		if h := old.Header(); h.LoadID != "" {
			t.Errorf("the header of a bank without a load id has the id %q", h.LoadID)
		}
		if err := old.CheckUnchanged(t.Context()); err != nil {
			t.Error(err)
		}
		mustLoad(t, newBank(t, database, nil))
		wantError[*dataset.StateError](t, old.CheckUnchanged(t.Context()))
		rewriteMeta(t, database, "2")
		_, err := newBank(t, database, nil).Attach(t.Context())
		wantError[*dataset.StateError](t, err)
		rewriteMeta(t, database, "3")
		_, err = newBank(t, database, nil).Attach(t.Context())
		if e := wantError[*dataset.StateError](t, err); !strings.Contains(e.Error(), "schema version 3") {
			t.Error(e)
		}
		_, err = newBank(t, database, nil).Load(t.Context(), nil)
		wantError[*dataset.StateError](t, err)
		rewriteMeta(t, database, "2") // the next test of this server finds one of ours
	})
}
