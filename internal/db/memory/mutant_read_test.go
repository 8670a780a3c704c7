package memory

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"stroppy/internal/db"
)

// dirty opens a database whose mutant shows one aborted transaction, with a number of sessions.
func dirty(t *testing.T, sessions int) (*mutation, []db.KVSession) {
	t.Helper()
	d, err := Open("memory:?mutant=dirty-read&rate=1e-9")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	ends := db.Keyspace{Prefix: []byte("end/"), Columns: []db.Column{{Name: "place", Additive: true}}}
	if err := d.Constrain([]db.Keyspace{ends}); err != nil {
		t.Fatal(err)
	}
	var list []db.KVSession
	for range sessions {
		s, err := d.KVSession(t.Context(), db.SessionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if err := set(t.Context(), list[0], "end/1", 0); err != nil {
		t.Fatal(err)
	}
	m := d.engine.(*mutation)
	m.armed = 1
	return m, list
}

func place8(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func set(ctx context.Context, s db.KVSession, key string, n uint64) error {
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	s.Set([]byte(key), place8(n))
	return s.Commit(ctx)
}

// push appends to a list at place 1: it reads the end and that place, and writes both.
func push(ctx context.Context, s db.KVSession) error {
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	var found [2]db.Entry
	keys := [][]byte{[]byte("end/1"), []byte("entry/1")}
	if err := s.Read(ctx, keys, found[:]); err != nil {
		return err
	}
	for _, key := range keys {
		s.Set(key, place8(1))
	}
	return s.Commit(ctx)
}

// TestDirtyReadMutantAbortsOnlyTheWriter checks that another client that writes the same new key commits, and that
// afterwards the transaction itself commits.
func TestDirtyReadMutantAbortsOnlyTheWriter(t *testing.T) {
	_, s := dirty(t, 2)
	if err := push(t.Context(), s[0]); err == nil || db.ClassOf(err) != db.Aborted {
		t.Fatalf("the first transaction: %v", err)
	}
	if err := push(t.Context(), s[0]); err == nil || db.ClassOf(err) != db.Aborted {
		t.Fatalf("the first transaction again, which would commit what a reader may see: %v", err)
	}
	if err := push(t.Context(), s[1]); err != nil {
		t.Fatalf("another client that writes the same new key: %v", err)
	}
	if err := push(t.Context(), s[0]); err != nil {
		t.Fatalf("the first transaction, after its record has moved on: %v", err)
	}
}

// TestDirtyReadMutantLetsEverySessionCommit checks that each session commits even if the mutant may strike in
// every transaction.
func TestDirtyReadMutantLetsEverySessionCommit(t *testing.T) {
	m, s := dirty(t, 2)
	m.rate = 1
	committed := [2]int{}
	for n := range 400 {
		for i := range s {
			key := fmt.Sprintf("ledger/%d/%d", i, n/10) // a transaction is tried ten times
			if err := book(t.Context(), s[i], key); err == nil {
				committed[i]++
			}
		}
	}
	if committed[0] < 15 || committed[1] < 15 {
		t.Errorf("of 40 transactions each, %v were committed", committed)
	}
}

// book adds to the record and writes its own key.
func book(ctx context.Context, s db.KVSession, own string) error {
	if err := s.Begin(ctx, false); err != nil {
		return err
	}
	var found [2]db.Entry
	keys := [][]byte{[]byte("end/1"), []byte(own)}
	if err := s.Read(ctx, keys, found[:]); err != nil {
		return err
	}
	if found[1].Found {
		s.Rollback()
		return fmt.Errorf("%s is there already", own)
	}
	s.Set(keys[0], place8(binary.BigEndian.Uint64(found[0].Value)+1))
	s.Set(keys[1], []byte{1})
	return s.Commit(ctx)
}
