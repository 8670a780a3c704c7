package history

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"stroppy/internal/tier"
)

var testHeader = Header{
	Workload: "bank", Run: 3, Seed: 1<<64 - 1, Objects: 1000, Total: -12345, Clients: 2,
	Started: 1_700_000_000_000_000_000, Database: "memory:", Keys: map[string]string{"legs": "2"},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// record writes a complete history with the given transactions of each client.
func record(t testing.TB, dir string, clients [][]Transaction) {
	t.Helper()
	w, err := Create(dir, testHeader, len(clients))
	must(t, err)
	var wait sync.WaitGroup
	for i, txs := range clients {
		wait.Go(func() {
			c := w.Client(i)
			for k := range txs {
				if err := c.Append(&txs[k]); err != nil {
					t.Error(err)
					return
				}
			}
			if err := c.Flush(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	must(t, w.Close())
}

// read returns the content of a history and its error.
func read(r *Reader) (txs []Transaction, refs []Ref, err error) {
	for rec, err := range r.Transactions() {
		if err != nil {
			return txs, append(refs, rec.Ref), err
		}
		txs, refs = append(txs, clone(rec.Transaction)), append(refs, rec.Ref)
	}
	return txs, refs, nil
}

func TestHistoryRoundTripOfManyClients(t *testing.T) {
	r := newRandom(4)
	clients := make([][]Transaction, 20)
	total := 0
	for i := range clients {
		for range 1 + r.IntN(1500) {
			tx := randomTransaction(r, r.IntN(5))
			tx.ID = NewID(1, uint64(i), uint64(total))
			clients[i] = append(clients[i], tx)
			total++
		}
	}
	big := randomTransaction(r, 100_000) // a complete audit
	big.ID = NewID(1, 0, 1<<31)
	middle := randomTransaction(r, 1300) // close to the size of a block
	for i := range middle.Ops {
		middle.Ops[i] = Op{Object: uint64(i)}
	}
	middle.ID = NewID(1, 0, 1<<31+1)
	clients[0] = append(clients[0], big, middle, big)
	dir := filepath.Join(t.TempDir(), "run", "history")
	record(t, dir, clients)

	h, err := Open(dir)
	must(t, err)
	defer h.Close()
	if !reflect.DeepEqual(h.Header(), testHeader) || !h.Complete() || (h.end == atCut) {
		t.Fatalf("header %+v, complete %v, truncated %v", h.Header(), h.Complete(), (h.end == atCut))
	}
	for range 2 { // the sequence can be used repeatedly
		next := make([]int, len(clients))
		for rec, err := range h.Transactions() {
			must(t, err)
			i := rec.ID.Client()
			if !equal(*rec.Transaction, clients[i][next[i]]) {
				t.Fatalf("client %d, transaction %d is not what was recorded (%v)", i, next[i], rec.Ref)
			}
			next[i]++
		}
		for i := range next {
			if next[i] != len(clients[i]) {
				t.Errorf("client %d: %d of %d transactions", i, next[i], len(clients[i]))
			}
		}
	}
}

func TestReadingCanStopEarly(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, [][]Transaction{bankTransfers(newRandom(5), 0, 100)})
	h, err := Open(dir)
	must(t, err)
	defer h.Close()
	for rec, err := range h.Transactions() {
		must(t, err)
		if rec.Ref.Record == 7 {
			if got := rec.Ref.String(); !strings.HasPrefix(got, "history/transactions.bin, block at ") || !strings.HasSuffix(got, ", record 7") {
				t.Errorf("the place is %q", got)
			}
			break
		}
	}
}

func TestBlockIsDeliveredAfterOneSecond(t *testing.T) {
	w, err := Create(t.TempDir(), testHeader, 1)
	must(t, err)
	c := w.Client(0)
	for i := range 4 {
		tx := Transaction{ID: ID(i + 1), End: int64(i) * 600_000_000, Attempts: 1}
		must(t, c.Append(&tx))
		if held := c.holds.Load(); held != (i != 2) {
			t.Errorf("after record %d: held %v", i, held)
		}
	}
	must(t, c.Flush())
	must(t, w.Close())
}

func TestHistoryIsNeverOverwritten(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, [][]Transaction{nil})
	before, err := os.ReadFile(filepath.Join(dir, transactionsFile))
	must(t, err)
	if _, err := Create(dir, testHeader, 1); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second history: %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, transactionsFile))
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the first history was changed")
	}
	if _, err := Create(t.TempDir(), testHeader, 0); err == nil {
		t.Error("a history of no clients")
	}
}

func TestCloseRejectsUndeliveredRecords(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, testHeader, 2)
	must(t, err)
	tx := Transaction{ID: 1}
	must(t, w.Client(1).Append(&tx))
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "client 1 has not delivered") || w.Err() == nil {
		t.Errorf("close: %v", err)
	}
	if err := w.Client(1).Flush(); err == nil {
		t.Error("flushed after the close")
	}
	if err := w.Client(0).Append(&tx); err == nil {
		t.Error("recorded after the close")
	}
	if err := w.Close(); err == nil {
		t.Error("the second close forgot the error")
	}
	h, err := Open(dir)
	must(t, err)
	defer h.Close()
	if h.Complete() {
		t.Error("the history counts as complete")
	}
}

func TestClientsCanRecordDuringClose(t *testing.T) {
	for range 50 {
		dir := t.TempDir()
		w, err := Create(dir, testHeader, 4)
		must(t, err)
		var wait sync.WaitGroup
		recorded := make([]int, 4)
		for i := range recorded {
			wait.Go(func() {
				tx := Transaction{Attempts: 1}
				for k := range 200 {
					tx.ID = NewID(1, uint64(i), uint64(k))
					if w.Client(i).Append(&tx) != nil || w.Client(i).Flush() != nil {
						return
					}
					recorded[i]++
				}
			})
		}
		closed := w.Close()
		wait.Wait()
		h, err := Open(dir)
		must(t, err)
		txs, _, err := read(h)
		must(t, err)
		sum := 0
		for _, n := range recorded {
			sum += n
		}
		if closed == nil && len(txs) < sum {
			t.Errorf("a complete history holds %d of %d", len(txs), sum)
		}
		h.Close()
	}
}

// fullDisk accepts a number of bytes and then, like a disk, a part of the next write.
type fullDisk struct {
	file
	left    int
	noRoom  error
	noTrunc bool
}

func (f *fullDisk) Write(b []byte) (int, error) {
	if len(b) <= f.left {
		f.left -= len(b)
		return f.file.Write(b)
	}
	n, _ := f.file.Write(b[:f.left])
	f.left = 0
	return n, &fs.PathError{Op: "write", Path: "x", Err: f.noRoom}
}

func (f *fullDisk) Truncate(size int64) error {
	if f.noTrunc {
		return syscall.EIO
	}
	return f.file.Truncate(size)
}

func TestFullDiskLeavesWholeBlocks(t *testing.T) {
	for _, noTrunc := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, transactionsFile)
		f, err := createFile(path, os.O_EXCL)
		must(t, err)
		w, err := create(&fullDisk{file: f, left: 300_000, noRoom: syscall.ENOSPC, noTrunc: noTrunc}, path, testHeader, 1)
		must(t, err)
		txs := bankTransfers(newRandom(6), 0, 10_000)
		c := w.Client(0)
		var first error
		for round := 0; first == nil && round < 10_000; round++ {
			for i := range txs {
				if first = c.Append(&txs[i]); first != nil {
					break
				}
			}
		}
		if first == nil {
			t.Fatal("no error from a full disk")
		}
		for what, err := range map[string]error{"append": first, "err": w.Err(), "flush": c.Flush(), "close": w.Close()} {
			if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "record the history in "+path+": no space left on device: free some space") {
				t.Errorf("%s: %v", what, err)
			}
		}
		h, err := Open(dir)
		must(t, err)
		got, _, err := read(h)
		must(t, err)
		if h.Complete() || (h.end == atCut) != noTrunc || len(got) == 0 {
			t.Errorf("complete %v, truncated %v, %d records", h.Complete(), (h.end == atCut), len(got))
		}
		for i := range got {
			if !equal(got[i], txs[i%len(txs)]) {
				t.Fatalf("record %d is not what was recorded", i)
			}
		}
		h.Close()
	}
}

func TestFullDeviceIsReported(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("skipped engine: /dev/full: this system has none")
	}
	if _, err := create(f, "/dev/full", testHeader, 1); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
}

func TestManyClientsTakeLittleMemory(t *testing.T) {
	tier.SkipUnderRace(t)
	const clients = 10_000
	w, err := Create(t.TempDir(), testHeader, clients)
	must(t, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tx := Transaction{ID: 1, Attempts: 1, Ops: make([]Op, 60)}
	for i := range tx.Ops {
		tx.Ops[i] = Op{Object: uint64(i) << 32, Observed: true}
	}
	for range 8 { // four blocks each
		for c := range clients {
			must(t, w.Client(c).Append(&tx))
		}
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / clients
	t.Logf("%d bytes a client", each)
	if each > 20_000 {
		t.Errorf("%d bytes a client", each)
	}
	for c := range clients {
		must(t, w.Client(c).Flush())
	}
	must(t, w.Close())
}

func TestAppendAllocatesNothing(t *testing.T) {
	tier.SkipUnderRace(t)
	w, err := Create(t.TempDir(), testHeader, 1)
	must(t, err)
	c := w.Client(0)
	txs := bankTransfers(newRandom(8), 0, 1000)
	for i := range txs { // some read lists
		if i%3 == 0 {
			txs[i].Ops = append(txs[i].Ops, Op{Object: uint64(i % 100), Observed: true, Value: int64(i % 16)})
			txs[i].Elements = run(i % 16)
		}
	}
	n := 0
	round := func() {
		for range 1000 {
			must(t, c.Append(&txs[n%len(txs)]))
			n++
		}
	}
	for range 200 {
		round()
	}
	if got := testing.AllocsPerRun(50, round); got > 2 { // further buffers are allocated while the disk pauses
		t.Errorf("%v allocations in 1000 transactions", got)
	}
	must(t, c.Flush())
	must(t, w.Close())
}

func BenchmarkAppend(b *testing.B) {
	w, err := Create(b.TempDir(), testHeader, 1)
	must(b, err)
	c := w.Client(0)
	txs := bankTransfers(newRandom(9), 0, 4096)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := c.Append(&txs[i%len(txs)]); err != nil {
			b.Fatal(err)
		}
	}
	must(b, c.Flush())
	must(b, w.Close())
}

// BenchmarkAppendTogether runs one client on every processor, each with its own data.
func BenchmarkAppendTogether(b *testing.B) {
	w, err := Create(b.TempDir(), testHeader, 64)
	must(b, err)
	var next atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		i := int(next.Add(1) - 1)
		c, txs := w.Client(i), bankTransfers(newRandom(uint64(i)), uint64(i), 4096)
		for k := 0; pb.Next(); k++ {
			if err := c.Append(&txs[k%len(txs)]); err != nil {
				b.Error(err)
				return
			}
		}
		if err := c.Flush(); err != nil {
			b.Error(err)
		}
	})
	must(b, w.Close())
}

func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	const n = 1_000_000
	record(b, dir, [][]Transaction{bankTransfers(newRandom(10), 0, n)})
	h, err := Open(dir)
	must(b, err)
	defer h.Close()
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range h.Transactions() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()/1e6, "M-records/s")
}

var _ io.Writer = (*fullDisk)(nil)
