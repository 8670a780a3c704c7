package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/memory"
)

var (
	accounts = &db.Collection{Name: "accounts", ID: db.Text, Fields: []db.Field{
		{Name: "balance", Type: db.Decimal, Additive: true, NonNegative: true}, {Name: "version", Type: db.Integer},
	}}
	entries = &db.Collection{Name: "entries", ID: db.Integer, Fields: []db.Field{{Name: "note", Type: db.Text}}, List: "legs", Items: []db.Field{
		{Name: "account", Type: db.Text}, {Name: "amount", Type: db.Integer},
	}}
	counters = &db.Collection{Name: "counters", ID: db.Text, Counter: true, Fields: []db.Field{{Name: "count", Type: db.Integer, Additive: true}}}
	pay      = &db.Update{Collection: accounts, AtLeast: 1, Add: []int{1, 2}}
	replace  = &db.Update{Collection: accounts, Set: []int{1, 2}}
)

// counted is a key-value store that counts the round trips of its sessions. It hides the other capabilities of the
// store.
type counted struct {
	db.KV
	reads int
}

type countedSession struct {
	db.KVSession
	of *counted
}

func (d *counted) KVSession(ctx context.Context, o db.SessionOptions) (db.KVSession, error) {
	s, err := d.KV.KVSession(ctx, o)
	return countedSession{s, d}, err
}

func (s countedSession) Read(ctx context.Context, keys [][]byte, out []db.Entry) error {
	s.of.reads++
	return s.KVSession.Read(ctx, keys, out)
}

func openStore(t *testing.T) *memory.Database {
	t.Helper()
	d, err := memory.Open("memory:")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func recordSession(t *testing.T, d db.Database) db.RecordSession {
	t.Helper()
	records, ok := db.RecordsOf(d)
	if !ok {
		t.Fatal("a key-value store is no database of records")
	}
	s, err := records.RecordSession(t.Context(), db.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func text(s string) db.Value { return db.Value{Text: []byte(s)} }
func num(n int64) db.Value   { return db.Value{Int: n} }

func ids(names ...string) (list []db.Value) {
	for _, name := range names {
		list = append(list, text(name))
	}
	return list
}

// within carries out one transaction.
func within(t *testing.T, s db.RecordSession, change func() error) error {
	t.Helper()
	err := s.Begin(t.Context(), false)
	if err == nil {
		err = change()
	}
	if err == nil {
		err = s.Commit(t.Context())
	}
	return err
}

func fill(t *testing.T, s db.RecordSession) {
	t.Helper()
	err := within(t, s, func() error {
		return s.Insert(t.Context(), accounts, []db.Value{text("a"), num(100), num(0)}, []db.Value{text("b"), num(5), num(0)})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// contents returns the records of a collection, in the order of a scan.
func contents(t *testing.T, s db.RecordSession, c *db.Collection) string {
	t.Helper()
	var list []string
	err := s.Scan(t.Context(), c, db.Value{Null: true}, 0, func(values []db.Value) error {
		list = append(list, show(values))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, "; ")
}

func show(values []db.Value) string {
	var words []string
	for _, v := range values {
		switch {
		case v.Null && v.Text == nil:
			words = append(words, "null")
		case v.Text != nil:
			words = append(words, string(v.Text))
		default:
			words = append(words, fmt.Sprint(v.Int))
		}
	}
	return strings.Join(words, " ")
}

func TestReservedInsertNeedsNoSecondRead(t *testing.T) {
	store := &counted{KV: openStore(t)}
	s := recordSession(t, store)
	fill(t, s)
	store.reads = 0
	err := within(t, s, func() error {
		var found [2]db.Record
		s.Reserve(entries, num(7))
		if err := s.Find(t.Context(), accounts, ids("a", "b"), found[:]); err != nil {
			return err
		}
		if n, err := s.Update(t.Context(), replace, ids("a", "b"), []db.Value{num(90), num(1), num(15), num(1)}); n != 2 || err != nil {
			t.Errorf("Update = %d, %v", n, err)
		}
		return s.Insert(t.Context(), entries, []db.Value{num(7), {Null: true}, text("a"), num(-10), text("b"), num(10)})
	})
	if err != nil || store.reads != 1 {
		t.Errorf("%v after %d round trips", err, store.reads)
	}
	if got := contents(t, s, accounts); got != "a 90 1; b 15 1" {
		t.Errorf("the accounts are %s", got)
	}
	if got := contents(t, s, entries); got != "7 null a -10 b 10" {
		t.Errorf("the entries are %s", got)
	}
}

func TestTransactionSeesItsOwnWrites(t *testing.T) {
	s := recordSession(t, openStore(t))
	fill(t, s)
	err := within(t, s, func() error {
		before, err := s.FindAndUpdate(t.Context(), pay, text("a"), []db.Value{num(30), num(-30), num(1)})
		if err != nil || show(before.Values) != "a 100 0" {
			t.Errorf("before = %s, %v", show(before.Values), err)
		}
		before, err = s.FindAndUpdate(t.Context(), pay, text("a"), []db.Value{num(71), num(-71), num(1)})
		if err != nil || before.Found {
			t.Errorf("a condition that is not met found %s, %v", show(before.Values), err)
		}
		var found [2]db.Record
		err = s.Find(t.Context(), accounts, ids("a", "c"), found[:])
		if show(found[0].Values) != "a 70 1" || found[1].Found {
			t.Errorf("found %+v", found)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestViolatedConstraintAbortsTransaction(t *testing.T) {
	for name, store := range map[string]db.Database{"store enforces": openStore(t), "adapter enforces": &counted{KV: openStore(t)}} {
		t.Run(name, func(t *testing.T) {
			records, _ := db.RecordsOf(store)
			if err := records.(db.Declarer).Declare(accounts); err != nil {
				t.Fatal(err)
			}
			s := recordSession(t, store)
			fill(t, s)
			err := within(t, s, func() error {
				_, err := s.Update(t.Context(), replace, ids("b"), []db.Value{num(-1), num(1)})
				return err
			})
			if db.ConstraintOf(err) != db.CheckFailed {
				t.Errorf("a negative balance: %v", err)
			}
			err = within(t, s, func() error { return s.Insert(t.Context(), accounts, []db.Value{text("a"), num(1), num(0)}) })
			if db.ConstraintOf(err) != db.UniqueKey {
				t.Errorf("an id that is there: %v", err)
			}
			if got := contents(t, s, accounts); got != "a 100 0; b 5 0" {
				t.Errorf("the accounts are %s", got)
			}
		})
	}
}

func TestConcurrentInsertsOfSameIDConflict(t *testing.T) {
	store := openStore(t)
	one, other := recordSession(t, store), recordSession(t, store)
	err := within(t, one, func() error {
		err := one.Insert(t.Context(), entries, []db.Value{num(1), text("one")})
		return errors.Join(err, within(t, other, func() error { return other.Insert(t.Context(), entries, []db.Value{num(1), text("other")}) }))
	})
	if db.ClassOf(err) != db.Aborted {
		t.Errorf("the second commit: %v", err)
	}
	if got := contents(t, one, entries); got != "1 other" {
		t.Errorf("the entries are %s", got)
	}
}

func TestRangeFiltersRecordsAndDeleteRemovesThem(t *testing.T) {
	records, _ := db.RecordsOf(openStore(t))
	s, err := records.(db.RecordRanger).RecordRangeSession(t.Context(), db.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	var got []string
	err = within(t, s, func() error {
		r := db.RecordRange{From: text("a"), To: text("z"), Field: 1, Below: num(50)}
		err := s.Range(t.Context(), accounts, r, func(values []db.Value) error {
			got = append(got, show(values))
			return nil
		})
		if n, failed := s.Delete(t.Context(), accounts, ids("a", "c")); n != 1 || failed != nil {
			t.Errorf("Delete = %d, %v", n, failed)
		}
		return err
	})
	if err != nil || !slices.Equal(got, []string{"b 5 0"}) {
		t.Errorf("the range has %q, %v", got, err)
	}
	if left := contents(t, s, accounts); left != "b 5 0" {
		t.Errorf("the accounts are %s", left)
	}
}

func TestCounterUpdateReadsNothing(t *testing.T) {
	s := recordSession(t, openStore(t))
	add := &db.Update{Collection: counters, Add: []int{1}, Unseen: true}
	for range 2 {
		err := within(t, s, func() error {
			n, err := s.Update(t.Context(), add, ids("x", "y"), []db.Value{num(3), num(-4)})
			if n != 2 {
				t.Errorf("%d counters", n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := contents(t, s, counters); got != "x 6; y -8" {
		t.Errorf("the counters are %s", got)
	}
}

func TestScanMarksForeignRecords(t *testing.T) {
	store := openStore(t)
	s := recordSession(t, store)
	fill(t, s)
	raw, err := store.KVSession(t.Context(), db.SessionOptions{})
	if err == nil {
		err = raw.Begin(t.Context(), false)
	}
	if err != nil {
		t.Fatal(err)
	}
	raw.Set([]byte("accounts/c"), []byte("x"))
	raw.Set([]byte("entries/mine"), nil)
	if err := raw.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, s, accounts); got != "a 100 0; b 5 0; c null null" {
		t.Errorf("the accounts are %s", got)
	}
	if got := contents(t, s, entries); got != "mine null null null" {
		t.Errorf("the entries are %s", got)
	}
	count := 0
	err = s.Scan(t.Context(), accounts, text("b"), 1, func(values []db.Value) error {
		count++
		if show(values) != "b 5 0" {
			t.Errorf("the first is %s", show(values))
		}
		return nil
	})
	if err != nil || count != 1 {
		t.Errorf("%d records, %v", count, err)
	}
}

func TestDropRemovesOneCollection(t *testing.T) {
	store := openStore(t)
	records, _ := db.RecordsOf(store)
	s := recordSession(t, store)
	fill(t, s)
	if err := within(t, s, func() error { return s.Insert(t.Context(), entries, []db.Value{num(1), text("kept")}) }); err != nil {
		t.Fatal(err)
	}
	if err := records.Drop(t.Context(), accounts); err != nil {
		t.Fatal(err)
	}
	for c, there := range map[*db.Collection]bool{accounts: false, entries: true} {
		if got, err := records.Exists(t.Context(), c); got != there || err != nil {
			t.Errorf("Exists(%s) = %v, %v", c.Name, got, err)
		}
	}
}

// FuzzRecords checks that any bytes stored as a list record are read as fields or reported as foreign.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{0, 1, 'n', 1, 'a', 1})
	f.Add([]byte{1})
	f.Add([]byte{0, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, value []byte) {
		store := openStore(t)
		raw, err := store.KVSession(t.Context(), db.SessionOptions{})
		if err == nil {
			err = raw.Begin(t.Context(), false)
		}
		if err != nil {
			t.Fatal(err)
		}
		raw.Set([]byte("entries/0000000000000001"), value)
		if err := raw.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := recordSession(t, store)
		var got []db.Value
		err = s.Scan(t.Context(), entries, db.Value{Null: true}, 0, func(values []db.Value) error {
			for _, v := range values {
				got = append(got, db.Value{Int: v.Int, Text: bytes.Clone(v.Text), Null: v.Null})
			}
			return nil
		})
		if err != nil || len(got) < entries.Width() || (len(got)-entries.Width())%len(entries.Items) != 0 {
			t.Fatalf("%x reads as %d values: %v", value, len(got), err)
		}
	})
}
