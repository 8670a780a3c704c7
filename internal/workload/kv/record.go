package kv

import (
	"fmt"
	"math/bits"

	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/sampling"
)

// A record's number has 62 bits. The upper 14 name the run that inserted it, 0 the
// load; the lower 48 count. A permutation of the 62 bits gives its place in the
// order of the keys, so that neighbours by number are none by key.
const (
	indexBits = 48
	placeBits = history.RunBits + indexBits
	// MaxRecords is the largest number of records of a load.
	MaxRecords = 1 << indexBits
)

// A key is a prefix, the place, and characters that follow from the place. Its
// letters are in the same order for every collation of text.
const (
	prefix      = "kv/"
	behind      = "kv0" // all keys
	placeDigits = 13
	keyHead     = len(prefix) + placeDigits
	tailDigits  = 12 // of one 64-bit hash
)

// A value has these parts, in digits of five bits:
// - its writer, and the writer of the value that it replaced;
// - the record's number, and its own length in bytes;
// - the CRC-32C of all its other bytes, and filler.
//
// The CRC covers all bytes because the processor computes it cheaply: 1,024 bytes in about 60 ns.
const (
	writerAt   = 0
	previousAt = writerAt + 13
	numberAt   = previousAt + 13
	lengthAt   = numberAt + 13
	sumAt      = lengthAt + 5
	fillerAt   = sumAt + 7
)

// fillerSize is the length of the block that all filler is cut from, at a random place for each value. The block has
// 64 different letters and is made once. It does not repeat itself within a value of at most its length.
const fillerSize = 1 << 18

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// formula makes records. Clients share it and do not change it.
type formula struct {
	seed, records uint64 // of the load
	shape
	places sampling.Permutation
	filler []byte
}

// shape holds the sizes of keys and values, in bytes.
type shape struct{ key, low, high uint64 }

func newFormula(seed, records uint64, s shape) *formula {
	f := &formula{
		seed: seed, records: records, shape: s, places: sampling.NewPermutation(placeBits, sampling.Mix(seed)),
		filler: make([]byte, fillerSize),
	}
	source := sampling.NewSource(seed, 0, 0)
	for i := 0; i < fillerSize; i += 8 {
		random := source.Uint64()
		for k := range 8 {
			f.filler[i+k] = letters[random>>(8*k)&63]
		}
	}
	return f
}

// numberOf returns the number of the record that a run inserts as its i-th.
func numberOf(run, i uint64) uint64 { return run<<indexBits | i }

// place returns where record n stands in the order of the keys.
func (f *formula) place(n uint64) uint64 { return f.places.Forward(n) }

// putKey writes the key of the record at a place into key, which has the length of
// one and begins with the prefix.
func (f *formula) putKey(key []byte, place uint64) {
	workload.Base32.Put(key[len(prefix):keyHead], place)
	hash := place
	for at := keyHead; at < len(key); at += tailDigits {
		hash = sampling.Mix(hash)
		workload.Base32.Put(key[at:min(at+tailDigits, len(key))], hash)
	}
}

// newKey returns room for a key, with its prefix. No other client's is on its cache line.
func (f *formula) newKey() []byte {
	return append(make([]byte, 0, max(f.key, 128)), prefix...)[:f.key]
}

// number returns which record a key is of; false if no formula makes it. scratch is
// from newKey.
func (f *formula) number(key, scratch []byte) (uint64, bool) {
	if len(key) != int(f.key) || string(key[:len(prefix)]) != prefix {
		return 0, false
	}
	place, ok := workload.Base32.Parse(key[len(prefix):keyHead])
	if !ok || place >= 1<<placeBits {
		return 0, false
	}
	f.putKey(scratch, place)
	return f.places.Backward(place), string(scratch) == string(key)
}

// size returns the number of bytes of the value that a transaction writes to record n. The load is writer 0.
func (f *formula) size(n uint64, writer history.ID) int {
	above, _ := bits.Mul64(sampling.Mix(f.seed^n^sampling.Mix(uint64(writer)+1)), f.high-f.low+1)
	return int(f.low + above)
}

// appendValue appends the value of so many bytes that writer gives to record n in
// place of previous's.
func (f *formula) appendValue(b []byte, n uint64, writer, previous history.ID, size int) []byte {
	from := len(b)
	var head [fillerAt]byte
	workload.Base32.Put(head[writerAt:previousAt], uint64(writer))
	workload.Base32.Put(head[previousAt:numberAt], uint64(previous))
	workload.Base32.Put(head[numberAt:lengthAt], n)
	workload.Base32.Put(head[lengthAt:sumAt], uint64(size))
	b = append(b, head[:]...)
	at := int(sampling.Mix(n^sampling.Mix(uint64(writer))) & (fillerSize - 1))
	for left := size - fillerAt; left > 0; at = 0 {
		part := f.filler[at:min(at+left, fillerSize)]
		b = append(b, part...)
		left -= len(part)
	}
	whole := b[from:]
	workload.Base32.Put(whole[sumAt:fillerAt], uint64(workload.Checksum(whole, sumAt, fillerAt)))
	return b
}

// value appends the whole value that writer gives to record n in place of previous's.
func (f *formula) value(b []byte, n uint64, writer, previous history.ID) []byte {
	return f.appendValue(b, n, writer, previous, f.size(n, writer))
}

// parse returns who wrote a value of record n. It is Whole if every byte is as it
// was written, and written to this record, and else Broken.
func (f *formula) parse(v []byte, n uint64) (writer history.ID, state history.State) {
	if len(v) < fillerAt {
		return 0, history.Broken
	}
	id, ok := workload.Base32.Parse(v[writerAt:previousAt])
	if !ok || id >= 1<<63 {
		return 0, history.Broken
	}
	number, ok1 := workload.Base32.Parse(v[numberAt:lengthAt])
	length, ok2 := workload.Base32.Parse(v[lengthAt:sumAt])
	sum, ok3 := workload.Base32.Parse(v[sumAt:fillerAt])
	if ok1 && ok2 && ok3 && number == n && length == uint64(len(v)) && sum == uint64(workload.Checksum(v, sumAt, fillerAt)) {
		return history.ID(id), history.Whole
	}
	return history.ID(id), history.Broken
}

// Name returns record n as reports show it.
func (f *formula) Name(n uint64) string {
	if n >= 1<<placeBits {
		return "a record that no formula makes"
	}
	key := f.newKey()
	f.putKey(key, f.place(n))
	if run := n >> indexBits; run > 0 {
		return fmt.Sprintf("%s (insert %d of run %d)", key, n&(MaxRecords-1), run)
	}
	return fmt.Sprintf("%s (record %d)", key, n)
}
