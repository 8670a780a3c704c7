package history

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stroppy/internal/tier"
)

// readBlocks returns the transactions of EachBlock in the order of the file.
func readBlocks(r *Reader, workers int) (txs []Transaction, refs []Ref, err error) {
	type found struct {
		tx  Transaction
		ref Ref
	}
	own := make([][]found, workers)
	err = r.EachBlock(workers, func(worker int, c *Cursor) error {
		for c.Next() {
			own[worker] = append(own[worker], found{clone(&c.Transaction), c.Ref()})
		}
		return nil
	})
	all := slices.Concat(own...)
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.ref.Offset, b.ref.Offset), a.ref.Record-b.ref.Record)
	})
	for _, f := range all {
		txs, refs = append(txs, f.tx), append(refs, f.ref)
	}
	return txs, refs, err
}

func TestBlocksAndTransactionsReadTheSame(t *testing.T) {
	dir := t.TempDir()
	clients := make([][]Transaction, 7)
	for i := range clients {
		clients[i] = bankTransfers(newRandom(uint64(i)), uint64(i), 3000*i)
	}
	record(t, dir, clients)
	r, err := Open(dir)
	must(t, err)
	defer r.Close()
	want, places, err := read(r)
	must(t, err)
	for _, workers := range []int{1, 2, 5} {
		got, refs, err := readBlocks(r, workers)
		must(t, err)
		if !slices.EqualFunc(got, want, equal) || !slices.Equal(refs, places) {
			t.Errorf("%d workers: %d transactions differ from the %d that Transactions yields", workers, len(got), len(want))
		}
	}
	for b, err := range r.Blocks() {
		must(t, err)
		c := r.Cursor()
		n := uint32(0)
		for c.Open(b); c.Next(); n++ {
			if c.Transaction.ID.Client() != uint64(b.Client) {
				t.Fatalf("block %+v holds %v", b, c.Transaction.ID)
			}
		}
		if c.Next() || c.Err() != nil || n != b.Records {
			t.Fatalf("block %+v gave %d records: %v", b, n, c.Err())
		}
	}
}

// TestBlocksAndTransactionsFindTheSameDamage checks that both ways of reading find every kind of damage.
func TestBlocksAndTransactionsFindTheSameDamage(t *testing.T) {
	file, _, starts := smallHistory(t)
	same := func(what string, at int, file []byte) {
		r, err := openBytes(file)
		if err != nil {
			return
		}
		want, _, damage := read(r)
		for _, workers := range []int{1, 3} {
			got, _, err := readBlocks(r, workers)
			if (err == nil) != (damage == nil) || err != nil && err.Error() != damage.Error() || !errors.Is(err, errDamaged) && damage != nil {
				t.Fatalf("%s %d, %d workers: %v, and one after the other: %v", what, at, workers, err, damage)
			}
			if len(got) < len(want) || !isPrefix(want, got) {
				t.Fatalf("%s %d, %d workers: %d transactions before the damage, and one after the other %d", what, at, workers, len(got), len(want))
			}
		}
	}
	step := 1
	if testing.Short() {
		step = 7 // covers each bit of a byte
	}
	for i := 0; i < 8*len(file); i += step {
		bad := bytes.Clone(file)
		bad[i/8] ^= 1 << (i % 8)
		same("bit", i, bad)
	}
	for size := range len(file) {
		same("size", size, file[:size])
	}
	for k := 1; k < len(starts); k++ {
		same("without block", k, slices.Concat(file[:starts[k-1]], file[starts[k]:]))
		same("twice block", k, slices.Concat(file[:starts[k]], file[starts[k-1]:]))
	}
	same("record more", 2, forge([]byte{1, 0, 0, 0, 0, 0, 0}, 2))
	same("record less", 0, forge(make([]byte, 14), 1))
}

func TestWorkerErrorEndsReading(t *testing.T) {
	file, _, starts := smallHistory(t)
	r, err := openBytes(file)
	must(t, err)
	refused := errors.New("refused")
	for _, workers := range []int{1, 4} {
		err := r.EachBlock(workers, func(_ int, c *Cursor) error {
			if c.Block.Offset >= starts[2] {
				return refused
			}
			return nil
		})
		if err != refused {
			t.Errorf("%d workers: %v", workers, err)
		}
	}
	bad := bytes.Clone(file)
	bad[starts[1]+blockHeadSize] ^= 1
	r.source.r = bytes.NewReader(bad)
	err = r.EachBlock(4, func(_ int, c *Cursor) error {
		if c.Block.Offset >= starts[2] {
			return refused
		}
		return nil
	})
	if !errors.Is(err, errDamaged) {
		t.Errorf("damage before it: %v", err)
	}
}

// TestTailReadsGrowingFile checks that a reader follows a file that grows by a few bytes at a time.
func TestTailReadsGrowingFile(t *testing.T) {
	file, want, starts := smallHistory(t)
	for step := 1; step < 200; step += 7 {
		path := filepath.Join(t.TempDir(), transactionsFile)
		must(t, os.WriteFile(path, file[:starts[0]], 0o644))
		r, err := Open(filepath.Dir(path))
		must(t, err)
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		tail := r.Tail()
		var got []Transaction
		complete := false
		for at := int(starts[0]); !complete; {
			more := min(step, len(file)-at)
			_, err := f.Write(file[at : at+more])
			must(t, err)
			at += more
			var blocks []Block
			blocks, complete, err = tail.Blocks()
			must(t, err)
			for c := r.Cursor(); len(blocks) > 0; blocks = blocks[1:] {
				for c.Open(blocks[0]); c.Next(); {
					got = append(got, clone(&c.Transaction))
				}
				must(t, c.Err())
			}
			if complete != (at == len(file)) {
				t.Fatalf("step %d: complete at byte %d of %d: %v", step, at, len(file), complete)
			}
		}
		if !slices.EqualFunc(got, want, equal) {
			t.Errorf("step %d: %d transactions, want %d", step, len(got), len(want))
		}
		must(t, errors.Join(f.Close(), r.Close()))
	}
}

func TestTailReaderFindsDamage(t *testing.T) {
	tier.SkipUnderRace(t)
	file, _, starts := smallHistory(t)
	dir := t.TempDir()
	for i := 8 * int(starts[0]); i < 8*len(file); i += 5 {
		bad := bytes.Clone(file)
		bad[i/8] ^= 1 << (i % 8)
		must(t, os.WriteFile(filepath.Join(dir, transactionsFile), bad, 0o644))
		r, err := Open(dir)
		must(t, err)
		blocks, complete, err := r.Tail().Blocks()
		for c := r.Cursor(); len(blocks) > 0; blocks = blocks[1:] {
			for c.Open(blocks[0]); c.Next(); {
			}
			err = errors.Join(err, c.Err())
		}
		if complete && err == nil {
			t.Errorf("bit %d was not found", i)
		}
		must(t, r.Close())
	}
}

func TestWorkersReadAllRows(t *testing.T) {
	dir := t.TempDir()
	w, err := CreateEnd(dir)
	must(t, err)
	r := newRandom(8)
	var objects []Object
	var legs []Row
	for i := range 20_000 {
		objects = append(objects, Object{N: uint64(i), Value: int64(r.Uint32()), Version: r.Uint64N(300), Writer: NewID(1, r.Uint64N(64), r.Uint64N(1e6))})
		legs = append(legs, Row{Transaction: NewID(1, 2, uint64(i)), Number: uint32(i % 2), Object: r.Uint64N(1e6), Amount: int64(r.Uint32()), Version: r.Uint64N(300)})
		must(t, errors.Join(w.Object(objects[i]), w.Row(legs[i])))
	}
	must(t, w.Unexpected("a row"))
	must(t, w.Close())
	e, err := OpenEnd(dir)
	must(t, err)
	defer e.Close()
	for _, workers := range []int{1, 3} {
		gotObjects, gotLegs := make([][]Object, workers), make([][]Row, workers)
		must(t, e.EachObject(workers, func(i int, rows []Object) error {
			gotObjects[i] = append(gotObjects[i], rows...)
			return nil
		}))
		must(t, e.EachRow(workers, func(i int, rows []Row) error {
			gotLegs[i] = append(gotLegs[i], rows...)
			return nil
		}))
		all, rows := slices.Concat(gotObjects...), slices.Concat(gotLegs...)
		slices.SortFunc(all, func(a, b Object) int { return int(a.N) - int(b.N) })
		slices.SortFunc(rows, func(a, b Row) int { return int(a.Transaction) - int(b.Transaction) })
		if !slices.Equal(all, objects) || !slices.Equal(rows, legs) {
			t.Errorf("%d workers: %d objects and %d rows, not those that were kept", workers, len(all), len(rows))
		}
	}
	full := errors.New("full")
	if err := e.EachRow(2, func(int, []Row) error { return full }); err != full {
		t.Errorf("a worker that refuses: %v", err)
	}
}

func TestCursorAllocatesNothing(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, [][]Transaction{bankTransfers(newRandom(5), 0, 2000)})
	r, err := Open(dir)
	must(t, err)
	defer r.Close()
	c := r.Cursor()
	for b, err := range r.Blocks() {
		must(t, err)
		if got := testing.AllocsPerRun(10, func() {
			for c.Open(b); c.Next(); {
			}
		}); got > 0 {
			t.Errorf("%v allocations a block", got)
		}
	}
}

// TestFastVarintDecoderMatchesBytewise checks that the fast decoder gives the same numbers as a bytewise decoder.
func TestFastVarintDecoderMatchesBytewise(t *testing.T) {
	r := newRandom(6)
	b := make([]byte, 12)
	for range 200_000 {
		b = b[:r.IntN(12)]
		for i := range b {
			b[i] = byte(r.Uint64() >> (8 * r.IntN(8)))
			if r.IntN(3) > 0 {
				b[i] |= 0x80
			}
		}
		i := r.IntN(len(b) + 2)
		want, next := slowVarint(b, i)
		for name, take := range map[string]func([]byte, int) (uint64, int){"varint": varint, "short": short} {
			if got, at := take(b, i); got != want || at != next {
				t.Fatalf("%s of %x at %d: %d and %d, want %d and %d", name, b, i, got, at, want, next)
			}
		}
	}
}

func BenchmarkCursor(b *testing.B) {
	dir := b.TempDir()
	const n = 1_000_000
	record(b, dir, [][]Transaction{bankTransfers(newRandom(10), 0, n)})
	r, err := Open(dir)
	must(b, err)
	defer r.Close()
	for b.Loop() {
		must(b, r.EachBlock(1, func(_ int, c *Cursor) error {
			for c.Next() {
			}
			return nil
		}))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n/float64(b.N), "ns/record")
}
