package history

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
)

const audited = 3000 // objects

// auditor makes transactions that read all objects. A few objects change between them.
type auditor struct {
	rng     *rand.Rand
	objects []Op
	next    uint64
}

func newAuditor(seed uint64) *auditor {
	a := &auditor{rng: rand.New(rand.NewPCG(seed, 5))}
	for n := range uint64(audited) {
		a.objects = append(a.objects, Op{Object: n * 3, Observed: true, Value: a.rng.Int64()})
	}
	return a
}

func (a *auditor) audit(client uint64, change int) Transaction {
	a.next++
	for range change {
		op := &a.objects[a.rng.IntN(audited)]
		op.Version++
		op.Value += a.rng.Int64N(2000) - 1000
		op.Writer = NewID(1, a.rng.Uint64N(9), a.rng.Uint64N(1<<30)+1)
		op.Observed, op.State = a.rng.IntN(50) > 0, State(a.rng.IntN(3))
		if !op.Observed {
			*op = Op{Object: op.Object}
		}
	}
	at := int64(a.next) * 1e9
	return Transaction{
		ID: NewID(1, client, a.next), Kind: Numbered | ReadOnly | Background, Outcome: Committed, Attempts: 1,
		Due: at, Sent: at, Try: at + 5, End: at + 5e8, Ops: slices.Clone(a.objects),
	}
}

// recordAudits writes audits of client 1 and small transactions of client 0, and returns them by ID.
func recordAudits(t *testing.T, dir string, count int) map[ID]Transaction {
	t.Helper()
	out, err := Create(dir, Header{Workload: "bank", Run: 1, Clients: 2}, 2)
	if err != nil {
		t.Fatal(err)
	}
	all := map[ID]Transaction{}
	a := newAuditor(uint64(count))
	for i := range count {
		tx := a.audit(1, []int{0, 40, 300, 40, 40, 300, 40, 2 * audited}[a.rng.IntN(8)])
		switch {
		case i%37 == 20: // it failed
			tx.Outcome, tx.Ops = Aborted, nil
		case i%41 == 30: // it saw an object twice
			tx.Ops = append(tx.Ops, tx.Ops[7])
		}
		small := Transaction{ID: NewID(1, 0, uint64(i)+1), Kind: Numbered, Outcome: Committed, Attempts: 1, Ops: []Op{{Object: 1, Write: true, Amount: 5}}}
		for c, tx := range []Transaction{small, tx} {
			all[tx.ID] = tx
			if err := out.Client(c).Append(&tx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(out.Client(0).Flush(), out.Client(1).Flush(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}

// same reports whether the transaction read equals the recorded one.
func same(got *Transaction, want Transaction) bool {
	return got.ID == want.ID && got.End == want.End && got.Outcome == want.Outcome && (len(got.Ops)+len(want.Ops) == 0 || reflect.DeepEqual(got.Ops, want.Ops))
}

// TestAuditDifferencesRoundTrip checks that audits are read as recorded, sequentially, in any order and
// concurrently. They must take less than a fifth of the space.
func TestAuditDifferencesRoundTrip(t *testing.T) {
	dir := t.TempDir()
	all := recordAudits(t, dir, 200)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := 0
	for rec, err := range r.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; !same(rec.Transaction, all[rec.ID]) {
			t.Fatalf("%v was read as something else", rec.ID)
		}
	}
	if seen != len(all) {
		t.Fatalf("%d of %d were read", seen, len(all))
	}
	var blocks []Block
	differing := 0
	for b, err := range r.Blocks() {
		if err != nil {
			t.Fatal(err)
		}
		if blocks = append(blocks, b); r.source.differing(b) {
			differing++
		}
	}
	if differing < 100 {
		t.Errorf("%d records are differences", differing)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
	c := r.Cursor()
	for _, b := range blocks {
		for c.Open(b); c.Next(); {
			if !same(&c.Transaction, all[c.Transaction.ID]) {
				t.Fatalf("%v was read as something else", c.Transaction.ID)
			}
		}
		if c.Err() != nil {
			t.Fatal(c.Err())
		}
	}
	var mutex sync.Mutex
	count := 0
	if err := r.EachBlock(5, func(_ int, c *Cursor) error {
		for c.Next() {
			if !same(&c.Transaction, all[c.Transaction.ID]) {
				return errors.New("something else was read")
			}
			mutex.Lock()
			count++
			mutex.Unlock()
		}
		return nil
	}); err != nil || count != len(all) {
		t.Errorf("%d of %d were read by several: %v", count, len(all), err)
	}
}

// TestSimilarAuditsTakeLittleSpace checks that a recording of similar audits is smaller than the audits recorded
// separately.
func TestSimilarAuditsTakeLittleSpace(t *testing.T) {
	dir := t.TempDir()
	out, err := Create(dir, Header{Workload: "bank", Run: 1, Clients: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, whole := newAuditor(1), 0
	for range 100 {
		tx := a.audit(0, audited/100)
		whole += len(appendTransaction(nil, &tx, new(context)))
		if err := out.Client(0).Append(&tx); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Client(0).Flush(), out.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil || info.Size() > int64(whole/10) {
		t.Errorf("%d bytes in place of %d: %v", info.Size(), whole, err)
	}
}

// TestRecordWithDamagedReferenceIsNotRead checks that a record is not read if its reference is damaged, and that a
// copy of a recording is equal to it.
func TestRecordWithDamagedReferenceIsNotRead(t *testing.T) {
	dir := t.TempDir()
	all := recordAudits(t, dir, 60)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	out, err := Create(copied, Header{Workload: "bank", Run: 1, Clients: 2}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(out.Copy(r), out.Close()); err != nil {
		t.Fatal(err)
	}
	var first, second Block
	for b := range r.Blocks() {
		if r.source.differing(b) {
			if second.Offset == 0 {
				second = b
			}
		} else if b.Client == 1 && second.Offset == 0 {
			first = b
		}
	}
	_ = r.Close()
	again, err := Open(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for rec, err := range again.Transactions() {
		if err != nil || !same(rec.Transaction, all[rec.ID]) {
			t.Fatalf("the copy has something else: %v", err)
		}
	}
	path := filepath.Join(dir, FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[first.Offset+blockHeadSize+100] ^= 1
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err = Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := r.Cursor()
	if c.Open(second); c.Next() || c.Err() == nil {
		t.Error("a difference from a damaged record was read")
	}
}
