package check

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/history"
)

// plain hides the blocks of a source.
type plain struct{ r *history.Reader }

func (p plain) Header() history.Header                         { return p.r.Header() }
func (p plain) Complete() bool                                 { return p.r.Complete() }
func (p plain) Transactions() iter.Seq2[history.Record, error] { return p.r.Transactions() }

// recordIDs returns a history in which each client has transactions with the given sequence numbers, a few in
// each block.
func recordIDs(t *testing.T, clients ...[]uint64) *history.Reader {
	t.Helper()
	dir := t.TempDir()
	w, err := history.Create(dir, history.Header{Run: 1}, len(clients))
	if err != nil {
		t.Fatal(err)
	}
	for c, list := range clients {
		for i, sequence := range list {
			tx := history.Transaction{ID: history.NewID(1, uint64(c), sequence), Outcome: history.Committed, Attempts: 1, End: int64(i), Ops: []history.Op{{Object: sequence, Write: true}}}
			if err := w.Client(c).Append(&tx); err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				err = errors.Join(err, w.Client(c).Flush())
			}
		}
		err = errors.Join(err, w.Client(c).Flush())
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestAllWorkersFillOneTable(t *testing.T) {
	var long []uint64
	for i := range uint64(5000) {
		long = append(long, i+1)
	}
	r := recordIDs(t, long, []uint64{1, 2, 3, 9, 10, 11}, []uint64{7}, nil)
	add := func(source Source, workers int) (table Transactions, objects []uint64, err error) {
		w := Watch{Ctx: t.Context()}
		err = table.AddAll(&w, source, 0, workers, func(n int) { objects = append(objects, make([]uint64, n-len(objects))...) },
			func(worker int, i uint32, tx *history.Transaction) error {
				if worker >= workers {
					t.Errorf("worker %d of %d", worker, workers)
				}
				objects[i] = tx.Ops[0].Object
				return nil
			})
		return table, objects, err
	}
	want, objects, err := add(plain{r}, 1)
	if err != nil || len(want.List) != 5007 {
		t.Fatalf("%d transactions: %v", len(want.List), err)
	}
	for _, workers := range []int{1, 3} {
		got, others, err := add(r, workers)
		if err != nil || len(got.List) != len(want.List) {
			t.Fatalf("%d workers: %d transactions: %v", workers, len(got.List), err)
		}
		for i := range want.List {
			at, ok := got.Find(want.List[i].ID)
			if got.List[i] != want.List[i] || others[i] != objects[i] || !ok || at != uint32(i) {
				t.Fatalf("%d workers: number %d is %+v, found at %d: %v; want %+v", workers, i, got.List[i], at, ok, want.List[i])
			}
		}
		if _, ok := got.Find(history.NewID(1, 1, 4)); ok {
			t.Error("a transaction was found that nobody recorded")
		}
	}
	w, refused := Watch{Ctx: t.Context()}, errors.New("refused")
	if err := new(Transactions).AddAll(&w, r, 0, 2, func(int) {}, func(int, uint32, *history.Transaction) error { return refused }); err != refused {
		t.Errorf("error of a refused transaction: %v", err)
	}
	for _, source := range []Source{recordIDs(t, []uint64{1, 2, 2}), plain{recordIDs(t, []uint64{1, 2, 2})}} {
		if _, _, err := add(source, 2); err == nil || !strings.HasPrefix(err.Error(), "the history has transaction 1-0-2 twice") {
			t.Errorf("error of a repeated transaction: %v", err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(refused)
	w = Watch{Ctx: ctx}
	if err := new(Transactions).AddAll(&w, r, 0, 2, func(int) {}, func(int, uint32, *history.Transaction) error { return nil }); err != refused {
		t.Errorf("error after the context ended: %v", err)
	}
}

func TestLengthenKeepsContent(t *testing.T) {
	list := Lengthen([]int(nil), 3)
	copy(list, []int{1, 2, 3})
	list = Lengthen(list, 5)
	if want := []int{1, 2, 3, 0, 0}; !slices.Equal(list, want) {
		t.Errorf("got %v, want %v", list, want)
	}
	if list = Lengthen(list, 5); len(list) != 5 {
		t.Errorf("got %d, want 5", len(list))
	}
}
