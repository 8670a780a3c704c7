package mongodb

import (
	"errors"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// TestRangeReadsSnapshotAndOwnWrites reads ranges of documents in a transaction, with its own writes and from its
// snapshot, and removes documents.
func TestRangeReadsSnapshotAndOwnWrites(t *testing.T) {
	d := open(t, freshURL(t))
	s, err := d.RecordRangeSession(t.Context(), db.SessionOptions{})
	drivertest.Must(t, err)
	drivertest.Close(t, s)
	other := session1(t, d, "")
	found := func(r db.RecordRange) string {
		t.Helper()
		var list []string
		drivertest.Must(t, s.Range(t.Context(), accounts, r, func(values []db.Value) error {
			list = append(list, string(values[db.ID].Text))
			return nil
		}))
		return strings.Join(list, " ")
	}
	all := db.RecordRange{From: text("a"), To: text("c")}
	poor := db.RecordRange{From: text("a"), To: text("c"), Field: 1, Below: num(1000)}
	drivertest.Must(t, s.Begin(t.Context(), false))
	for r, want := range map[*db.RecordRange]string{&all: "a b", &poor: "", {From: text("b"), To: text("b")}: ""} {
		if got := found(*r); got != want {
			t.Errorf("%+v has %q, want %q", *r, got, want)
		}
	}
	drivertest.Must(t, transact(t.Context(), other, func() error {
		return other.Insert(t.Context(), accounts, []db.Value{text("aa"), num(5), num(0), {Null: true}})
	}))
	if n, err := s.Delete(t.Context(), accounts, []db.Value{text("b"), text("nobody")}); n != 1 || err != nil {
		t.Errorf("%d removed: %v", n, err)
	}
	if got := found(all); got != "a" {
		t.Errorf("after a removal, and an insertion by another transaction: %q", got)
	}
	drivertest.Must(t, s.Commit(t.Context()))
	drivertest.Must(t, s.Begin(t.Context(), true))
	if got := found(poor) + "/" + found(all); got != "aa/a aa" {
		t.Errorf("the next transaction finds %q", got)
	}
	stop := errors.New("enough")
	if err := s.Range(t.Context(), accounts, all, func([]db.Value) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the caller's became %v", err)
	}
	if err := s.Range(t.Context(), accounts, all, nil); db.ClassOf(err) != db.Fatal {
		t.Errorf("after it, without a transaction: %v", err)
	}
}
