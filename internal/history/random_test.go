package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// extremes holds values at which encodings often fail.
var extremes = []int64{0, 1, -1, 63, 64, -64, -65, 127, 128, 1<<32 - 1, 1 << 32, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}

// randomInt returns a number of any magnitude, often an extreme one.
func randomInt(r *rand.Rand) int64 {
	if r.IntN(4) == 0 {
		return extremes[r.IntN(len(extremes))]
	}
	return int64(r.Uint64()) >> r.IntN(64)
}

// randomTransaction returns a transaction with random fields, which need not be consistent.
func randomTransaction(r *rand.Rand, ops int) Transaction {
	tx := Transaction{
		ID: ID(randomInt(r)), Kind: Kind(r.IntN(16)), Outcome: Outcome(r.IntN(4)),
		LookedUp: r.IntN(4) == 0, Warmup: r.IntN(4) == 0, Attempts: 1,
		Due: randomInt(r), Sent: randomInt(r), Try: randomInt(r), End: randomInt(r),
	}
	if r.IntN(8) == 0 {
		tx.Kind, tx.Outcome = Kind(r.IntN(256)), Outcome(r.IntN(256))
	}
	if r.IntN(3) == 0 {
		tx.Reason, tx.Attempts, tx.Limit = Reason(r.IntN(256)), uint32(randomInt(r)), uint32(randomInt(r))
	}
	for range ops {
		op := Op{Object: uint64(randomInt(r)), Write: r.IntN(2) == 0, Observed: r.IntN(2) == 0, Amount: randomInt(r)}
		if r.IntN(3) > 0 {
			op.Version, op.Value, op.Writer = uint64(randomInt(r)), randomInt(r), ID(randomInt(r))
		}
		if n := len(tx.Ops); n > 0 && r.IntN(3) == 0 {
			op.Amount = -tx.Ops[n-1].Amount
		}
		tx.Ops = append(tx.Ops, op)
	}
	if r.IntN(4) == 0 {
		randomElements(r, &tx)
	}
	if r.IntN(8) == 0 {
		for range 1 << r.IntN(10) {
			tx.Broken = append(tx.Broken, byte(r.IntN(256)))
		}
	}
	return tx
}

// randomElements turns some operations into reads of a few growing lists, and adds elements that no operation
// read.
func randomElements(r *rand.Rand, tx *Transaction) {
	for k := range tx.Ops {
		op := &tx.Ops[k]
		if r.IntN(4) == 0 {
			continue // of any length, and a write perhaps
		}
		*op = Op{Object: r.Uint64N(4) * listSlots * 3 / 2, Observed: true, Value: r.Int64N(2 * mostShared)}
		for i := range op.Value {
			e := op.Object + uint64(i)*1e9
			if r.IntN(100) == 0 {
				e = uint64(randomInt(r))
			}
			tx.Elements = append(tx.Elements, e)
		}
	}
	for range r.IntN(3) {
		tx.Elements = append(tx.Elements, uint64(randomInt(r)))
	}
}

// ofClient returns the same ID for another client.
func ofClient(id ID, client uint64) ID { return NewID(id.Run(), client, id.Sequence()) }

// bankTransfers returns n transfers of two legs by one of 64 clients over a million accounts.
func bankTransfers(r *rand.Rand, client uint64, n int) []Transaction {
	txs := make([]Transaction, n)
	now := int64(r.IntN(1e9))
	for i := range txs {
		sent := now + int64(r.IntN(2000))
		now = sent + 200_000 + int64(r.ExpFloat64()*800_000)
		amount := int64(1 + r.IntN(50_000))
		txs[i] = Transaction{
			ID: NewID(1, client, uint64(i+1)), Kind: Numbered, Outcome: Committed, Attempts: 1,
			Due: sent, Sent: sent, Try: sent, End: now,
		}
		for leg := range 2 {
			op := Op{
				Object: r.Uint64N(1_000_000), Write: true, Amount: amount * int64(2*leg-1), Observed: true,
				Version: r.Uint64N(300), Value: int64(r.IntN(2_000_000)),
				Writer: NewID(1, r.Uint64N(64), uint64(1+r.IntN(i+1))),
			}
			txs[i].Ops = append(txs[i].Ops, op)
		}
	}
	return txs
}

// clone copies a transaction that an iterator reuses.
func clone(tx *Transaction) Transaction {
	c := *tx
	c.Ops, c.Elements, c.Broken = slices.Clone(tx.Ops), slices.Clone(tx.Elements), slices.Clone(tx.Broken)
	return c
}

func equal(a, b Transaction) bool {
	if !slices.Equal(a.Ops, b.Ops) || !slices.Equal(a.Elements, b.Elements) || !slices.Equal(a.Broken, b.Broken) {
		return false
	}
	return a.ID == b.ID && a.Kind == b.Kind && a.Outcome == b.Outcome && a.Reason == b.Reason &&
		a.LookedUp == b.LookedUp && a.Warmup == b.Warmup && a.Attempts == b.Attempts && a.Limit == b.Limit &&
		a.Due == b.Due && a.Sent == b.Sent && a.Try == b.Try && a.End == b.End
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func TestTransactionCodecKeepsEveryField(t *testing.T) {
	r := newRandom(1)
	for round := range 300 {
		var want []Transaction
		var b []byte
		var c context
		for range r.IntN(20) {
			tx := randomTransaction(r, r.IntN(6))
			before := len(b)
			b = appendTransaction(b, &tx, &c)
			if n, most := len(b)-before, maxRecord+maxOp*len(tx.Ops)+maxElement*len(tx.Elements)+len(tx.Broken); n > most || n < minRecord+minOp*len(tx.Ops) {
				t.Fatalf("round %d: %d bytes for %d operations, outside the bounds", round, n, len(tx.Ops))
			}
			want = append(want, tx)
		}
		d, c := decoder{b: b}, context{}
		got := Transaction{Ops: make([]Op, 3)}
		for i := range want {
			if d.transaction(&got, &c); d.bad || !equal(got, want[i]) {
				t.Fatalf("round %d, record %d: got %+v, understood: %v, want %+v", round, i, got, !d.bad, want[i])
			}
		}
		if d.left() > 0 {
			t.Fatalf("round %d: %d bytes left over", round, d.left())
		}
	}
}

func TestEndStateCodecKeepsEveryField(t *testing.T) {
	r := newRandom(2)
	var a, lastA Object
	var l, lastL Row
	for range 5000 {
		a = Object{N: uint64(randomInt(r)), Value: randomInt(r), Version: uint64(randomInt(r)), Writer: ID(randomInt(r))}
		l = Row{Transaction: ID(randomInt(r)), Number: uint32(randomInt(r)), Mark: Mark(r.IntN(4)), State: State(r.IntN(5)),
			Object: uint64(randomInt(r)), Amount: randomInt(r), Version: uint64(randomInt(r))}
		b, legs := make([]byte, endRow), make([]byte, endRow)
		b, legs = b[:putObject(b, 0, a, lastA)], legs[:putLeg(legs, 0, l, lastL)]
		d := decoder{b: b}
		var gotA Object
		if d.object(&lastA, &gotA); gotA != a || d.bad || d.left() > 0 {
			t.Fatalf("got %+v, want %+v", gotA, a)
		}
		d = decoder{b: legs}
		var gotL Row
		if d.leg(&lastL, &gotL); gotL != l || d.bad || d.left() > 0 {
			t.Fatalf("got %+v, want %+v", gotL, l)
		}
		lastA, lastL = a, l
	}
}

func TestGrowingListsTakeFewBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		list func(i int) []uint64
		most float64 // bytes an element
	}{
		{"the same again", func(int) []uint64 { return run(16) }, 1.5},
		{"one longer each time", func(i int) []uint64 { return run(i % 16) }, 3.3},
		{"never the same", func(i int) []uint64 { return []uint64{uint64(i) << 23, uint64(i)<<23 + 1} }, 17},
	} {
		var b []byte
		var ctx context
		elements := 0
		for i := range 10_000 {
			list := c.list(i)
			elements += len(list)
			b = appendTransaction(b, &Transaction{
				ID: NewID(1, 7, uint64(i+1)), Kind: Numbered, Outcome: Committed, Attempts: 1, Due: int64(i) * 1e6, Sent: int64(i) * 1e6, Try: int64(i) * 1e6, End: int64(i)*1e6 + 9e5,
				Ops: []Op{{Object: 5, Observed: true, Value: int64(len(list))}}, Elements: list,
			}, &ctx)
		}
		each := float64(len(b)) / float64(elements)
		t.Logf("%s: %.1f bytes an element", c.name, each)
		if each > c.most {
			t.Errorf("%s: an element takes %.1f bytes, more than %.1f", c.name, each, c.most)
		}
	}
}

// run returns a list to which several clients appended.
func run(n int) (list []uint64) {
	for i := range uint64(n) {
		list = append(list, (100+i*3)<<23|i*37%64<<6)
	}
	return list
}

func TestTransferTakesFewBytes(t *testing.T) {
	txs := bankTransfers(newRandom(3), 17, 10_000)
	var b []byte
	var c context
	for i := range txs {
		b = appendTransaction(b, &txs[i], &c)
	}
	each := float64(len(b)) / float64(len(txs))
	t.Logf("%.1f bytes a transfer", each)
	if each > 70 {
		t.Errorf("a transfer takes %.1f bytes, more than 70", each)
	}
}
