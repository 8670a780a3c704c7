package noop_test

import (
	"encoding/binary"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/noop"
	"stroppy/internal/isolation"
)

var (
	_ db.KV          = (*noop.Database)(nil)
	_ db.Volatile    = (*noop.Database)(nil)
	_ db.Constrainer = (*noop.Database)(nil)
)

var accounts = db.Keyspace{Prefix: []byte("a/"), Columns: []db.Column{
	{Name: "balance", Offset: 8, Additive: true, NonNegative: true},
	{Name: "version", Offset: 0, Additive: true},
	{Name: "last", Offset: 16},
}}

func open(t testing.TB, spaces ...db.Keyspace) (*noop.Database, db.KVSession) {
	t.Helper()
	d := noop.Open()
	if err := d.Constrain(spaces); err != nil {
		t.Fatal(err)
	}
	s, err := d.KVSession(t.Context(), db.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d, s
}

func TestReadFindsDeclaredKeyspaces(t *testing.T) {
	ledger := db.Keyspace{Prefix: []byte("l/")}
	nested := db.Keyspace{Prefix: []byte("a/x/"), Columns: []db.Column{{Name: "n"}}}
	_, s := open(t, accounts, ledger, nested)
	for _, c := range []struct {
		key  string
		size int // of the value; 0: not found
	}{
		{"a/1", 24}, {"a/", 24}, {"a/x/1", 8}, {"a", 0}, {"", 0}, {"l/1", 0}, {"b/1", 0},
	} {
		out := []db.Entry{{Value: []byte("stale"), Found: true}}
		if err := s.Begin(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if err := s.Read(t.Context(), [][]byte{[]byte(c.key)}, out); err != nil {
			t.Fatal(err)
		}
		if out[0].Found != (c.size > 0) || len(out[0].Value) != c.size {
			t.Errorf("key %q: found %v with %d bytes, want %d", c.key, out[0].Found, len(out[0].Value), c.size)
		}
	}
}

func TestReadReturnsLargeBalanceAndZeros(t *testing.T) {
	_, s := open(t, accounts)
	out := make([]db.Entry, 1)
	if err := s.Read(t.Context(), [][]byte{[]byte("a/7")}, out); err != nil {
		t.Fatal(err)
	}
	column := func(offset int) int64 { return int64(binary.BigEndian.Uint64(out[0].Value[offset:])) }
	if column(8) != 1<<40 || column(0) != 0 || column(16) != 0 {
		t.Errorf("balance %d, version %d, last %d: want %d, 0, 0", column(8), column(0), column(16), int64(1)<<40)
	}
}

func TestOpenSessionsGetNewConstraints(t *testing.T) {
	d, s := open(t)
	if err := d.Constrain([]db.Keyspace{accounts}); err != nil {
		t.Fatal(err)
	}
	out := make([]db.Entry, 1)
	if err := s.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := s.Read(t.Context(), [][]byte{[]byte("a/7")}, out); err != nil || !out[0].Found {
		t.Errorf("after Constrain: found %v, %v", out[0].Found, err)
	}
}

func TestWritesAreDiscarded(t *testing.T) {
	d, s := open(t, accounts)
	ctx := t.Context()
	if err := s.Begin(ctx, false); err != nil {
		t.Fatal(err)
	}
	s.Set([]byte("k"), []byte("v"))
	s.Delete([]byte("a/1"))
	if err := s.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	out := make([]db.Entry, 2)
	if err := s.Read(ctx, [][]byte{[]byte("k"), []byte("a/1")}, out); err != nil {
		t.Fatal(err)
	}
	if out[0].Found || !out[1].Found {
		t.Errorf("found %v and %v: writes must leave no trace", out[0].Found, out[1].Found)
	}
	err := s.Scan(ctx, nil, []byte{0xff}, func(key, _ []byte) error {
		t.Errorf("the scan found %q", key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Volatile() || d.Limits().Writes < 1000 {
		t.Errorf("volatile %v, %d writes", d.Volatile(), d.Limits().Writes)
	}
	s.Rollback()
	for _, call := range []func() error{func() error { return s.Reset(ctx) }, s.Close, d.Close} {
		if err := call(); err != nil {
			t.Error(err)
		}
	}
}

func TestClaimedIsolationIsUnknown(t *testing.T) {
	d, _ := open(t)
	for _, name := range []string{"", "none"} {
		claim, err := d.Claim(name)
		if err != nil || claim.Level != isolation.Unknown || claim.Isolation != "none" || claim.Source == "" {
			t.Errorf("claim at %q: %+v, %v", name, claim, err)
		}
	}
	info, err := d.Info(t.Context())
	if err != nil || info.Name != "noop" || len(info.Settings) == 0 {
		t.Errorf("info %+v, %v", info, err)
	}
}

func TestBadInputIsAnError(t *testing.T) {
	d, s := open(t)
	_, claim := d.Claim("serializable")
	_, session := d.KVSession(t.Context(), db.SessionOptions{Isolation: "serializable"})
	column := d.Constrain([]db.Keyspace{{Columns: []db.Column{{Name: "n", Offset: -1}}}})
	read := s.Read(t.Context(), [][]byte{[]byte("k")}, nil)
	for what, err := range map[string]error{"claim": claim, "session": session, "column": column, "read": read} {
		if err == nil || db.ClassOf(err) != db.Fatal {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestTransactionAllocatesNothing(t *testing.T) {
	_, s := open(t, accounts)
	run := transfer(t, s)
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations a transaction", n)
	}
}

// transfer returns a transaction of two reads and three writes.
func transfer(t testing.TB, s db.KVSession) func() {
	ctx := t.Context()
	keys, out, value := [][]byte{[]byte("a/1"), []byte("a/2")}, make([]db.Entry, 2), make([]byte, 24)
	row := []byte("l/1")
	return func() {
		if s.Begin(ctx, false) != nil || s.Read(ctx, keys, out) != nil {
			t.Fatal("the transaction failed")
		}
		s.Set(keys[0], value)
		s.Set(keys[1], value)
		s.Set(row, value)
		if s.Commit(ctx) != nil {
			t.Fatal("the commit failed")
		}
	}
}

func BenchmarkTransaction(b *testing.B) {
	_, s := open(b, accounts, db.Keyspace{Prefix: []byte("l/")})
	run := transfer(b, s)
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
}

func BenchmarkTransactionParallel(b *testing.B) {
	d, _ := open(b, accounts)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		s, err := d.KVSession(b.Context(), db.SessionOptions{})
		if err != nil {
			b.Error(err)
			return
		}
		run := transfer(b, s)
		for p.Next() {
			run()
		}
	})
}
