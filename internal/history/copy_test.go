package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// part records n transactions for each of the clients. It closes the recording if whole is set.
func part(t *testing.T, dir string, clients, of, n int, whole bool) {
	t.Helper()
	w, err := Create(dir, Header{Workload: "bank", LoadID: "L", Run: 3, Clients: of}, of)
	if err != nil {
		t.Fatal(err)
	}
	for client := range of {
		if client%2 != clients {
			continue
		}
		c := w.Client(client)
		for i := range n {
			tx := Transaction{ID: NewID(3, uint64(client), uint64(i+1)), Outcome: Committed, Sent: int64(i), End: int64(i + 1), Ops: []Op{{Object: uint64(client*n + i)}}}
			if err := c.Append(&tx); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if !whole {
		w.Fail(os.ErrClosed)
	}
	if err := w.Close(); (err == nil) != whole {
		t.Fatal(err)
	}
}

// TestCopyJoinsPartsOfHistory checks that copies of two processes' recordings form the whole, and that missing records
// of a part are missing in the whole.
func TestCopyJoinsPartsOfHistory(t *testing.T) {
	const clients, each = 5, 3000
	for _, whole := range []bool{true, false} {
		dir := t.TempDir()
		part(t, filepath.Join(dir, "0"), 0, clients, each, true)
		part(t, filepath.Join(dir, "1"), 1, clients, each, whole)
		w, err := Create(filepath.Join(dir, "all"), Header{Workload: "bank", LoadID: "L", Run: 3, Clients: clients}, clients)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"0", "1"} {
			r, err := Open(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Copy(r); (err == nil) != (whole || name == "0") {
				t.Errorf("copying part %s of a recording that is whole %v ends with %v", name, whole, err)
			}
			r.Close()
		}
		if !whole {
			w.Fail(os.ErrClosed)
		}
		if err := w.Close(); (err == nil) != whole {
			t.Errorf("the whole is closed with %v", err)
		}
		r, err := Open(filepath.Join(dir, "all"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		seen := map[ID]int{}
		for rec, err := range r.Transactions() {
			if err != nil {
				t.Fatal(err)
			}
			seen[rec.Transaction.ID]++
			if want := rec.Transaction.ID.Client()*each + rec.Transaction.ID.Sequence() - 1; rec.Transaction.Ops[0].Object != want {
				t.Fatalf("%s touches %d and not %d", rec.Transaction.ID, rec.Transaction.Ops[0].Object, want)
			}
		}
		if len(seen) != clients*each || r.Complete() != whole {
			t.Errorf("%d transactions of %d arrived, complete %v", len(seen), clients*each, r.Complete())
		}
	}
}

// TestCopyRefusesUnknownClientsAndDamage checks that records of unknown clients and damaged recordings are not
// copied.
func TestCopyRefusesUnknownClientsAndDamage(t *testing.T) {
	dir := t.TempDir()
	part(t, filepath.Join(dir, "part"), 0, 5, 100, true)
	into := func(name string, clients int) error {
		w, err := Create(filepath.Join(dir, name), Header{Clients: clients}, clients)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		r, err := Open(filepath.Join(dir, "part"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return w.Copy(r)
	}
	if err := into("small", 2); err == nil || !strings.Contains(err.Error(), "client 2") {
		t.Errorf("a client too many is copied with %v", err)
	}
	path := filepath.Join(dir, "part", transactionsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := into("damaged", 5); err == nil {
		t.Error("a damaged part is copied")
	}
}
