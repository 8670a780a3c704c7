package kv

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/memory"
	"stroppy/internal/db/noop"
	"stroppy/internal/history"
	"stroppy/internal/workload/dataset"
)

func opened(t testing.TB, database db.Database, c Config) *Workload {
	t.Helper()
	w, err := New(database, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if loaded, err := w.Attach(t.Context()); err != nil || loaded.Size != c.Records || loaded.Things != "records" {
		t.Fatalf("attached to %+v: %v", loaded, err)
	}
	return w
}

func openMemory(t testing.TB, url string) *memory.Database {
	t.Helper()
	d, err := memory.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func clientOf(t testing.TB, w *Workload) *client {
	t.Helper()
	c, err := w.Client(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*client)
}

// try tries one transaction of a kind on a record: a write of so many bytes, or a scan
// of at most so many records.
func (c *client) try(t testing.TB, kind history.Kind, n uint64, size int64) *history.Transaction {
	t.Helper()
	c.sequence++
	tx := &history.Transaction{
		ID: history.NewID(c.run, c.client, c.sequence), Kind: kind,
		Ops: []history.Op{{Object: n, Write: !kind.ReadOnly(), Amount: size}},
	}
	if kind == scan {
		tx.Ops[0].Amount, tx.Limit = 0, uint32(size)
	}
	if err := c.Attempt(t.Context(), tx); err != nil {
		t.Fatalf("%v of record %d: %v", kind, n, err)
	}
	return tx
}

// TestEachKindReadsAndWritesItsRecord checks what each kind of transaction reads and writes.
func TestEachKindReadsAndWritesItsRecord(t *testing.T) {
	c := clientOf(t, opened(t, openMemory(t, "memory:"), mixed()))
	sees := func(what string, op history.Op, state history.State, last history.ID) {
		t.Helper()
		if !op.Observed || op.State != state || op.Writer != last {
			t.Errorf("%s saw %+v, not the state %d of %v", what, op, state, last)
		}
	}
	fresh := numberOf(c.run, 0)
	sees("a read of the load", c.try(t, get, 5, 0).Ops[0], history.Whole, 0)
	written := c.try(t, put, 5, 64)
	sees("a read after an update", c.try(t, get, 5, 0).Ops[0], history.Whole, written.ID)
	modified := c.try(t, modify, 5, 100)
	sees("a modify", modified.Ops[0], history.Whole, written.ID)
	read := c.try(t, get, 5, 0)
	sees("a read after a modify", read.Ops[0], history.Whole, modified.ID)
	if read.Ops[0].Value != 100 {
		t.Errorf("a value of 100 bytes was read as %d", read.Ops[0].Value)
	}
	sees("a read before an insert", c.try(t, get, fresh, 0).Ops[0], history.Absent, 0)
	if tx := c.try(t, modify, fresh, 64); tx.Outcome != history.Rejected || tx.Reason != noSuchRecord {
		t.Errorf("a modify of nothing is %v: %v", tx.Outcome, tx.Reason)
	}
	added := c.try(t, insert, fresh, 64)
	sees("a read after an insert", c.try(t, get, fresh, 0).Ops[0], history.Whole, added.ID)
}

// TestScanReturnsFollowingRecordsInOrder checks that a scan from any record returns as many of the following
// records as requested, in key order.
func TestScanReturnsFollowingRecordsInOrder(t *testing.T) {
	for _, records := range []uint64{1, 2, 40, 3000} {
		config := mixed()
		config.Records = records
		w := opened(t, openMemory(t, "memory:"), config)
		c := clientOf(t, w)
		var order []uint64
		for n := range records {
			order = append(order, n)
		}
		for i := range uint64(10) {
			c.try(t, insert, numberOf(c.run, i), 64)
			order = append(order, numberOf(c.run, i))
		}
		slices.SortFunc(order, func(a, b uint64) int {
			if w.formula.place(a) < w.formula.place(b) {
				return -1
			}
			return 1
		})
		rng := rand.New(rand.NewPCG(records, 1))
		for range 200 {
			at, limit := rng.IntN(len(order)), 1+rng.IntN(100)
			tx := c.try(t, scan, order[at], int64(limit))
			var got []uint64
			for _, op := range tx.Ops {
				if op.State != history.Whole {
					t.Fatalf("a scan found %+v", op)
				}
				got = append(got, op.Object)
			}
			if want := order[at:min(at+limit, len(order))]; !slices.Equal(got, want) {
				t.Fatalf("a scan of %d from the %d-th of %d brought %v, not %v", limit, at, len(order), got, want)
			}
		}
		// A scan from a key that is not there says so, and goes on behind it.
		nobody := numberOf(9, 9)
		after, _ := slices.BinarySearchFunc(order, nobody, func(a, b uint64) int {
			if w.formula.place(a) < w.formula.place(b) {
				return -1
			}
			return 1
		})
		tx := c.try(t, scan, nobody, 3)
		if tx.Ops[0].State != history.Absent || len(tx.Ops)-1 != min(3, len(order)-after) {
			t.Errorf("a scan from nowhere found %+v", tx.Ops)
		}
	}
}

// TestUnknownWriteIsResolvedFromRecord checks the outcome of an unknown write for each content of the record.
func TestUnknownWriteIsResolvedFromRecord(t *testing.T) {
	c := clientOf(t, opened(t, openMemory(t, "memory:"), mixed()))
	written := c.try(t, put, 5, 64)
	for _, s := range []struct {
		name string
		tx   history.Transaction
		want history.Outcome
	}{
		{"its value is there", history.Transaction{ID: written.ID, Kind: put, Ops: written.Ops}, history.Committed},
		{"another value is there", history.Transaction{ID: written.ID + 99, Kind: put, Ops: written.Ops}, history.Unknown},
		{"nothing is there", history.Transaction{ID: written.ID + 99, Kind: insert, Ops: []history.Op{{Object: numberOf(1, 9), Write: true}}}, history.Unknown},
		{"it only read", history.Transaction{ID: written.ID + 99, Kind: get, Ops: []history.Op{{Object: 5}}}, history.Aborted},
	} {
		if err := c.ResolveUnknown(t.Context(), &s.tx); err != nil || s.tx.Outcome != s.want {
			t.Errorf("%s: %v, %v", s.name, s.tx.Outcome, err)
		}
	}
}

// bent is a store that bends what is read.
type bent struct {
	db.KVSession
	bend func(v []byte) []byte
}

func (b *bent) Read(ctx context.Context, keys [][]byte, out []db.Entry) error {
	err := b.KVSession.Read(ctx, keys, out)
	for i := range out {
		if out[i].Found {
			out[i].Value = b.bend(slices.Clone(out[i].Value))
		}
	}
	return err
}

// TestBrokenValueIsReportedWithoutEndingRun checks that a damaged value is reported and does not end the run.
func TestBrokenValueIsReportedWithoutEndingRun(t *testing.T) {
	c := clientOf(t, opened(t, openMemory(t, "memory:"), mixed()))
	store := c.session.(*kvSession)
	healthy := store.KVSession
	for name, bend := range map[string]func(v []byte) []byte{
		"a flipped bit": func(v []byte) []byte { v[len(v)-1] ^= 1; return v },
		"cut short":     func(v []byte) []byte { return v[:len(v)-1] },
		"empty":         func([]byte) []byte { return nil },
		"zeros":         func(v []byte) []byte { clear(v); return v },
	} {
		store.KVSession = &bent{healthy, bend}
		if tx := c.try(t, get, 5, 0); tx.Outcome != history.Committed || tx.Ops[0].State != history.Broken {
			t.Errorf("%s: %v saw %+v", name, tx.Outcome, tx.Ops[0])
		} else if want := bend(c.formula.value(nil, 5, 0, 0)); !bytes.Equal(tx.Broken, want) {
			t.Errorf("%s: the bytes %q were kept, not %q", name, tx.Broken, want)
		}
	}
	store.KVSession = healthy
}

// TestAttachRefusesDifferentRecords checks that another seed, size or shape is refused, and that settings that
// were not given are taken from the data.
func TestAttachRefusesDifferentRecords(t *testing.T) {
	d := openMemory(t, "memory:")
	opened(t, d, mixed())
	for want, bend := range map[string]func(c *Config){
		"seed 8 is asked for":            func(c *Config) { c.Seed = 8 },
		"and 2,000 are asked for":        func(c *Config) { c.Records = 2000 },
		"keys of 32 bytes, and 40 are":   func(c *Config) { c.KeySize = 40 },
		"values of 64..200 bytes, and 6": func(c *Config) { c.ValueLow, c.ValueHigh = 64, 64 },
	} {
		c := mixed()
		bend(&c)
		w, err := New(d, c)
		if err != nil {
			t.Fatal(err)
		}
		var mismatch *dataset.MismatchError
		if _, err := w.Attach(t.Context()); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	c := mixed()
	c.Seed, c.Records, c.KeySize, c.ValueLow, c.ValueHigh = 0, 0, 0, 0, 0
	w, err := New(d, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h := w.Header(); h.Seed != 7 || h.Objects != 1000 || h.Run != 2 || h.Keys["value_high"] != "200" {
		t.Errorf("attached to %+v", h)
	}
}

// TestAttemptAllocatesNothing checks that a transaction allocates nothing beyond the allocations of the database.
func TestAttemptAllocatesNothing(t *testing.T) {
	config := mixed()
	w := opened(t, noop.Open(), config)
	c := clientOf(t, w)
	tx := history.Transaction{Ops: make([]history.Op, 0, 64)}
	if n := testing.AllocsPerRun(2000, func() {
		c.Next(&tx)
		_ = c.Attempt(t.Context(), &tx)
	}); n > 0.01 {
		t.Errorf("a transaction allocates %v times", n)
	}
}

// TestEndStateHasEachRecord checks the download of each record, and of records that no formula makes.
func TestEndStateHasEachRecord(t *testing.T) {
	d := openMemory(t, "memory:")
	w := opened(t, d, mixed())
	c := clientOf(t, w)
	written := c.try(t, put, 5, 64)
	s, err := d.KVSession(t.Context(), db.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := w.formula.newKey()
	w.formula.putKey(key, w.formula.place(6))
	if err := s.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	s.Set([]byte("kv/who?"), make([]byte, 70))
	s.Set(key, make([]byte, 300))
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "history")
	end, err := history.CreateEnd(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.EndState(t.Context(), end, nil); err != nil {
		t.Fatal(err)
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := history.OpenEnd(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	count := 0
	for a, err := range got.Objects() {
		if err != nil {
			t.Fatal(err)
		}
		count++
		want := history.Object{N: a.N, Value: a.Value, State: history.Whole}
		switch a.N {
		case 5:
			want.Writer, want.Value = written.ID, 64
		case 6:
			want.State, want.Value = history.Broken, 300
		}
		if a != want || a.Value < 64 {
			t.Errorf("record %d is %+v, not %+v", a.N, a, want)
		}
	}
	if count != 1000 || len(got.Unexpected()) != 1 || !strings.Contains(got.Unexpected()[0], "who?") {
		t.Errorf("%d records and the unexpected %q", count, got.Unexpected())
	}
}

func BenchmarkAttempt(b *testing.B) {
	config := mixed()
	config.Reads, config.Updates, config.Inserts, config.Scans, config.Modifies = 0.9, 0.1, 0, 0, 0
	config.ValueLow, config.ValueHigh = 1024, 1024
	c := clientOf(b, opened(b, noop.Open(), config))
	tx := history.Transaction{Ops: make([]history.Op, 0, 64)}
	b.ReportAllocs()
	for b.Loop() {
		c.Next(&tx)
		if err := c.Attempt(b.Context(), &tx); err != nil {
			b.Fatal(err)
		}
	}
}
