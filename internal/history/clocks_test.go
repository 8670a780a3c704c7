package history

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clocked records one transaction a second for each of six clients and copies them together. The first two
// have one clock; the others have another one, which is wrong by one in a thousand.
func clocked(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	h := Header{Workload: "bank", Run: 3, Clients: 6, Clocks: []ClockError{{First: 0, Clients: 2}, {Clock: 1, First: 2, Clients: 4, Error: Unbounded, Cut: true}}}
	all, err := Create(filepath.Join(dir, "all"), h, 7)
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string][]int{"0": {0, 1, 6}, "1": {2, 3, 4, 5}} {
		w, err := Create(filepath.Join(dir, name), Header{Workload: "bank", Run: 3, Clients: 6}, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, client := range of {
			for i := range 5 {
				at := int64(i) * 1e9
				tx := Transaction{ID: NewID(3, uint64(client), uint64(i+1)), Outcome: Committed, Attempts: 1, Due: at, Sent: at, Try: at, End: at + 1000}
				if err := w.Client(client).Append(&tx); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Client(client).Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "0" {
			err = all.Copy(r)
		} else {
			err = all.CopyTimes(r, func(at int64) int64 { return at + at/1000 + 7 })
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "all")
}

// TestPartOfHistoryHasConvertedTimes checks that a part has the transactions of its clients, with converted times.
func TestPartOfHistoryHasConvertedTimes(t *testing.T) {
	r, err := Open(clocked(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := r.Header()
	for number, want := range map[int]int{0: 15, 1: 20} {
		of := func(client uint64) int { return h.ClockOf(client).Clock }
		p := r.Part(Header{Run: 4}, number == 1, func(client uint32) bool { return of(uint64(client)) == number })
		seen := map[ID]bool{}
		take := func(tx *Transaction) {
			seen[tx.ID] = true
			at := int64(tx.ID.Sequence()-1) * 1e9
			end := at + 1000
			if number == 1 {
				at, end = at+at/1000+7, end+end/1000+7
			}
			if of(tx.ID.Client()) != number || !p.Has(tx.ID.Client()) || tx.Due != at || tx.Sent != at || tx.Try != at || tx.End != end {
				t.Fatalf("clock %d has %v from %d to %d, and not from %d to %d", number, tx.ID, tx.Try, tx.End, at, end)
			}
		}
		for rec, err := range p.Transactions() {
			if err != nil {
				t.Fatal(err)
			}
			take(rec.Transaction)
		}
		if len(seen) != want || p.Header().Run != 4 || p.Complete() != (number == 0) {
			t.Errorf("clock %d has %d transactions and not %d", number, len(seen), want)
		}
		clear(seen)
		if err := p.EachBlock(1, func(_ int, c *Cursor) error {
			for c.Next() {
				take(&c.Transaction)
			}
			return nil
		}); err != nil || len(seen) != want {
			t.Errorf("clock %d has %d transactions in its blocks and not %d: %v", number, len(seen), want, err)
		}
	}
}

// TestClockErrorsOfAnotherHistoryAreRejected checks that the clock errors are accepted only for the history to
// which they belong.
func TestClockErrorsOfAnotherHistoryAreRejected(t *testing.T) {
	dir := clocked(t)
	cut := false
	errorOf := func(dir string) (int64, error) {
		r, err := Open(dir)
		if err != nil {
			return 0, err
		}
		defer r.Close()
		cut = r.Header().Clocks[1].Cut
		return r.Header().Clocks[1].Error, nil
	}
	if got, err := errorOf(dir); err != nil || got != Unbounded || !cut {
		t.Errorf("without the file the error is %d, %v", got, err)
	}
	if err := KeepClocks(dir, []ClockError{{First: 0, Clients: 2}, {Clock: 1, First: 2, Clients: 4, Error: 1234}}); err != nil {
		t.Fatal(err)
	}
	if got, err := errorOf(dir); err != nil || got != 1234 || cut {
		t.Errorf("the error is %d, %v", got, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, ClocksFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]string{"of the workload": strings.Replace(string(text), `"run": 3`, `"run": 4`, 1), "restore it": string(text[:40])} {
		if err := os.WriteFile(filepath.Join(dir, ClocksFile), []byte(other), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := errorOf(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	for name, clocks := range map[string][]ClockError{"a gap": {{Clients: 2}, {Clock: 1, First: 3, Clients: 3}}, "some left out": {{Clients: 2}}, "too many": {{Clients: 9}}} {
		bad := t.TempDir()
		w, err := Create(bad, Header{Clients: 6, Clocks: clocks}, 6)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		if _, err := Open(bad); err == nil || !strings.Contains(err.Error(), "clocks") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUncertaintyOfTwoClocksIsSumOfErrors checks that the uncertainty of two clocks is the sum of their errors, and 0
// for one clock.
func TestUncertaintyOfTwoClocksIsSumOfErrors(t *testing.T) {
	for want, clocks := range map[int64][]ClockError{
		0: {{Clients: 2}, {First: 2, Clients: 1, Cut: true}}, 12: {{Clock: 1, Clients: 1, Error: 5}, {Clock: 2, First: 1, Clients: 1, Error: 7}, {Clock: 1, First: 2, Clients: 1, Error: 3}},
		9: {{Clients: 1}, {Clock: 1, First: 1, Clients: 1, Error: 9}}, Unbounded: {{Clients: 1}, {Clock: 1, First: 1, Clients: 1, Error: Unbounded}},
	} {
		if got := (&Header{Clocks: clocks}).Uncertainty(); got != want {
			t.Errorf("%+v: %d and not %d", clocks, got, want)
		}
	}
}

// TestVerifyNamesDamagedClocks checks that a listed ClocksFile that is missing or altered is damage of the
// history, and not an error.
func TestVerifyNamesDamagedClocks(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		want   []Problem
	}{
		"whole":   {func(string) error { return nil }, nil},
		"missing": {os.Remove, []Problem{Missing}},
		"cut off": {func(path string) error { return os.Truncate(path, 40) }, []Problem{Replaced}},
		"another": {func(path string) error { return os.WriteFile(path, []byte(`{"clocks":[]}`), 0o600) }, []Problem{Replaced}},
	} {
		dir := clocked(t)
		must(t, KeepClocks(dir, []ClockError{{First: 0, Clients: 2}, {Clock: 1, First: 2, Clients: 4, Error: 1234}}))
		must(t, c.change(filepath.Join(dir, ClocksFile)))
		if got, _, err := verified(t, dir); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}
