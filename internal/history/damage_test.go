package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/tier"
)

// openBytes opens the bytes of a history file like Open.
func openBytes(b []byte) (*Reader, error) {
	s, err := newSource("read the history", "test", bytes.NewReader(b), int64(len(b)), transactions)
	if err != nil {
		return nil, err
	}
	r := &Reader{source: s, end: s.end()}
	return r, s.unmarshal(&r.header)
}

// smallHistory returns the bytes of a history of a few blocks. It also returns its transactions in the order of the
// file, and the offsets of its blocks and footer.
func smallHistory(t testing.TB) (file []byte, txs []Transaction, starts []int64) {
	dir := t.TempDir()
	w, err := Create(dir, testHeader, 2)
	must(t, err)
	r := newRandom(11)
	for b := range 5 {
		c := w.Client(b % 2)
		for range 1 + b {
			tx := randomTransaction(r, r.IntN(3))
			tx.ID, tx.End = ofClient(tx.ID, uint64(b%2)), 0
			must(t, c.Append(&tx))
		}
		must(t, c.Flush())
	}
	must(t, w.Close())
	file, err = os.ReadFile(filepath.Join(dir, transactionsFile))
	must(t, err)
	h, err := openBytes(file)
	must(t, err)
	for b, err := range h.Blocks() {
		must(t, err)
		starts = append(starts, b.Offset)
	}
	starts = append(starts, int64(len(file)-footerSize))
	txs, _, err = read(h)
	must(t, err)
	return file, txs, starts
}

func isPrefix(got, want []Transaction) bool {
	if len(got) > len(want) {
		return false
	}
	for i := range got {
		if !equal(got[i], want[i]) {
			return false
		}
	}
	return true
}

func TestCrashAtAnyByteLeavesWholeBlocks(t *testing.T) {
	file, want, starts := smallHistory(t)
	records := []int{0, 1, 3, 6, 10, 15} // number of records before each block
	for size := range len(file) {
		h, err := openBytes(file[:size])
		if int64(size) < starts[0] {
			if err == nil {
				t.Fatalf("%d bytes: a history without its description was opened", size)
			}
			continue
		}
		must(t, err)
		got, _, err := read(h)
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		whole, boundary := 0, false
		for i, start := range starts {
			if start <= int64(size) {
				whole, boundary = records[i], start == int64(size)
			}
		}
		if len(got) != whole || !isPrefix(got, want) || h.Complete() || (h.end == atCut) == boundary {
			t.Fatalf("%d bytes: %d of %d records, complete %v, truncated %v", size, len(got), whole, h.Complete(), (h.end == atCut))
		}
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	tier.SkipUnderRace(t)
	file, want, _ := smallHistory(t)
	for i := range 8 * len(file) {
		bad := bytes.Clone(file)
		bad[i/8] ^= 1 << (i % 8)
		h, err := openBytes(bad)
		if err != nil {
			continue
		}
		got, refs, err := read(h)
		if err == nil || !isPrefix(got, want) {
			t.Fatalf("bit %d of byte %d: %d of %d records without an error", i%8, i/8, len(got), len(want))
		}
		if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "offset") {
			t.Fatalf("byte %d: the error is %v", i/8, err)
		}
		if at := refs[len(refs)-1].Offset; at > int64(i/8) {
			t.Fatalf("byte %d: the damage is reported at %d, behind it", i/8, at)
		}
	}
}

// TestFlippedBitOfIncompleteHistoryIsFound checks a file without a footer: the blocks' own checksums must
// find the error, except in the last block's magic.
func TestFlippedBitOfIncompleteHistoryIsFound(t *testing.T) {
	tier.SkipUnderRace(t)
	file, _, starts := smallHistory(t)
	file = file[:len(file)-footerSize]
	for i := 8 * int(starts[0]); i < 8*len(file); i++ {
		bad := bytes.Clone(file)
		bad[i/8] ^= 1 << (i % 8)
		h, err := openBytes(bad)
		must(t, err)
		if _, _, err := read(h); err == nil {
			t.Fatalf("bit %d of byte %d was not found", i%8, i/8)
		}
	}
}

func TestRemovedRepeatedAndMovedBlocksAreFound(t *testing.T) {
	file, _, s := smallHistory(t)
	cut := func(from, to int) []byte { return file[s[from]:s[to]] }
	for name, blocks := range map[string][][]byte{
		"removed":      {cut(0, 1), cut(2, 5)},
		"last removed": {cut(0, 4)},
		"all removed":  {},
		"doubled":      {cut(0, 2), cut(1, 5)},
		"swapped":      {cut(0, 1), cut(2, 3), cut(1, 2), cut(3, 5)},
	} {
		bad := bytes.Clone(file[:s[0]])
		for _, b := range blocks {
			bad = append(bad, b...)
		}
		bad = append(bad, file[s[5]:]...)
		h, err := openBytes(bad)
		must(t, err)
		if _, _, err := read(h); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, more := range []int{1, 27, 28, 29, 3000} {
		h, err := openBytes(append(bytes.Clone(file), make([]byte, more)...))
		must(t, err)
		if _, _, err := read(h); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "were added behind its end") || !h.Complete() {
			t.Errorf("%d bytes added: %v", more, err)
		}
	}
}

// forge returns a history of one block with any payload and record count, and with correct checksums.
func forge(payload []byte, records uint32) []byte {
	file, sum := preamble(transactions, []byte("{}"))
	sums := startSums(sum)
	block := append(make([]byte, blockHeadSize), payload...)
	sealBlock(block, 0, records)
	sums.add(binary.LittleEndian.Uint32(block[20:]), records)
	return append(append(file, block...), sums.footer()...)
}

func TestInvalidBlocksWithValidChecksumAreErrors(t *testing.T) {
	tx := Transaction{ID: 1, Attempts: 1, Ops: []Op{{Object: 1}}}
	var c context
	good := appendTransaction(nil, &tx, &c)
	var at context
	others := appendTransaction(nil, &Transaction{ID: NewID(1, 7, 1), Attempts: 1}, &at)
	ops := binary.AppendUvarint([]byte{1, 0, 0, 0, 0, 0}, 1<<40)
	for name, file := range map[string][]byte{
		"a record less":       forge(append(bytes.Clone(good), good...), 1),
		"a record more":       forge(good, 2),
		"very many records":   forge(good, 1<<32-1),
		"very many ops":       forge(ops, 1),
		"an endless varint":   forge(bytes.Repeat([]byte{0xff}, 40), 1),
		"more than 64 bits":   forge([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0}, 1),
		"too many attempts":   forge(append([]byte{more | 1, moreAttempts, 0xff, 0xff, 0xff, 0xff, 0x7f}, 0, 0, 0, 0, 0, 0), 1),
		"records in no bytes": forge(nil, 1),
		"another client's":    forge(append(bytes.Clone(good), others...), 2),
	} {
		h, err := openBytes(file)
		must(t, err)
		if _, _, err := read(h); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := readBlocks(h, 1); !errors.Is(err, errDamaged) {
			t.Errorf("%s, by blocks: %v", name, err)
		}
	}
	h, err := openBytes(forge(good, 1))
	must(t, err)
	if got, _, err := read(h); err != nil || len(got) != 1 || !equal(got[0], tx) {
		t.Errorf("a right block: %v, %v", got, err)
	}
}

func TestOpenRejectsFilesOfOtherFormats(t *testing.T) {
	file, _, _ := smallHistory(t)
	changed := func(offset int, v uint32) []byte {
		b := bytes.Clone(file)
		binary.LittleEndian.PutUint32(b[offset:], v)
		return b
	}
	noJSON, _ := preamble(transactions, []byte("no JSON"))
	other, _ := preamble(ledger, []byte("{}"))
	old, _ := preamble(transactions, []byte("{}"))
	copy(old[8:], []byte{0, 0, 0, 0})
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"a newer format":  {changed(8, formatVersion+1), "it has format 7 and this Stroppy reads formats up to 6: use a newer Stroppy"},
		"another program": {[]byte("PK\x03\x04 and so on, longer than that"), "not a file of Stroppy"},
		"empty":           {nil, "cut off before its first record"},
		"a huge header":   {changed(16, 1<<32-1), "impossibly long"},
		"other contents":  {other, "it holds a ledger instead of transactions"},
		"no JSON":         {noJSON, "cannot be understood"},
		"format 0":        {old, "it has format 0, which this Stroppy does not read"},
	} {
		if _, err := openBytes(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no history: %v", err)
	}
}

// TestOlderFormatIsRead checks format 3, which is format 4 without elements.
func TestOlderFormatIsRead(t *testing.T) {
	want := bankTransfers(newRandom(15), 0, 10)
	var payload []byte
	var c context
	for i := range want {
		payload = appendTransaction(payload, &want[i], &c)
	}
	file := forge(payload, uint32(len(want)))
	length := binary.LittleEndian.Uint32(file[16:])
	b := binary.LittleEndian.AppendUint32(bytes.Clone(file[:8]), oldestVersion)
	b = append(b, file[12:20]...)
	sum := crc32.Update(checksum(b), castagnoli, file[preambleSize:preambleSize+length])
	b = append(binary.LittleEndian.AppendUint32(b, sum), file[preambleSize:len(file)-footerSize]...)
	h, err := openBytes(b) // without a footer: the history was cut off
	must(t, err)
	got, _, err := read(h)
	must(t, err)
	if !slices.EqualFunc(got, want, equal) {
		t.Errorf("%d transactions of format 3 came back as %d others", len(want), len(got))
	}
}

func TestReadErrorIsReportedAsUnreadable(t *testing.T) {
	file, _, starts := smallHistory(t)
	h, err := openBytes(file)
	must(t, err)
	h.source.r = bytes.NewReader(file[:starts[2]+30]) // it became shorter
	if got, _, err := read(h); err == nil || len(got) != 3 || !strings.Contains(err.Error(), "became shorter") {
		t.Errorf("%d records, %v", len(got), err)
	}
}

func FuzzReadDamagedTransactions(f *testing.F) {
	file, _, starts := smallHistory(f)
	f.Add(file)
	f.Add(file[:starts[3]+5])
	f.Add(forge([]byte{1, 0, 0, 0, 0, 0, 0}, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := openBytes(b)
		if err != nil {
			return
		}
		if txs, _, _ := read(h); len(txs)*minRecord > len(b) {
			t.Errorf("%d records from %d bytes", len(txs), len(b))
		}
	})
}

// FuzzReadTransactionPayload checks that arbitrary payloads with correct checksums are rejected, or are equal
// after they are written and read again.
func FuzzReadTransactionPayload(f *testing.F) {
	var c context
	tx := randomTransaction(newRandom(12), 3)
	f.Add(appendTransaction(nil, &tx, &c), uint32(1))
	var lists []byte
	c = context{}
	for range 3 {
		tx = randomTransaction(newRandom(13), 4)
		randomElements(newRandom(14), &tx)
		lists = appendTransaction(lists, &tx, &c)
	}
	f.Add(lists, uint32(3))
	f.Fuzz(func(t *testing.T, payload []byte, records uint32) {
		h, err := openBytes(forge(payload, records))
		must(t, err)
		txs, _, _ := read(h)
		var b []byte
		var c, again context
		for i := range txs {
			b = appendTransaction(b, &txs[i], &c)
		}
		d := decoder{b: b}
		var got Transaction
		for i := range txs {
			if d.transaction(&got, &again); d.bad || !equal(got, txs[i]) {
				t.Fatalf("got %+v, understood: %v, want %+v", got, !d.bad, txs[i])
			}
		}
	})
}

// TestImplausibleHeaderIsRefused checks that a header that claims more than IDs can hold is refused.
func TestImplausibleHeaderIsRefused(t *testing.T) {
	for want, change := range map[string]func(h *Header){
		"claims 1099511627776 clients": func(h *Header) { h.Clients = 1 << 40 },
		"claims -1 clients":            func(h *Header) { h.Clients = -1 },
		"of run 1099511627776":         func(h *Header) { h.Run = 1 << 40 },
	} {
		dir, h := t.TempDir(), testHeader
		change(&h)
		w, err := Create(dir, h, 1)
		must(t, err)
		must(t, w.Close())
		if _, err := Open(dir); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
