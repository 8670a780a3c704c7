package kv

import (
	"bytes"
	"compress/flate"
	"math/rand/v2"
	"slices"
	"testing"

	"stroppy/internal/history"
)

func shapes() []shape {
	return []shape{{16, 64, 64}, {17, 51, 51}, {32, 1024, 1024}, {100, 64, 5000}, {512, 300_000, 1 << 20}}
}

// numbers are some records of the load and some of inserts, the extremes among them.
func numbers(rng *rand.Rand) []uint64 {
	list := []uint64{0, 1, 2, MaxRecords - 1, numberOf(1, 0), numberOf(1<<history.RunBits-1, MaxRecords-1)}
	for range 200 {
		list = append(list, rng.Uint64N(1<<placeBits))
	}
	return list
}

// TestKeysIdentifyTheirRecords checks that a key gives its number back, that keys sort like places, and that no
// other text is a key.
func TestKeysIdentifyTheirRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range shapes() {
		f := newFormula(rng.Uint64(), 0, s)
		scratch := f.newKey()
		type record struct{ n, place uint64 }
		var keys [][]byte
		var records []record
		for _, n := range numbers(rng) {
			key := f.newKey()
			f.putKey(key, f.place(n))
			if len(key) != int(s.key) {
				t.Fatalf("the key %q has %d bytes, not %d", key, len(key), s.key)
			}
			if got, ok := f.number(key, scratch); !ok || got != n {
				t.Fatalf("the key %q of record %d gives %d, %v", key, n, got, ok)
			}
			keys, records = append(keys, key), append(records, record{n, f.place(n)})
			for range 5 {
				other := bytes.Clone(key)
				other[rng.IntN(len(other))] ^= 1 << rng.IntN(7)
				if got, ok := f.number(other, scratch); ok && (got == n || len(other) > keyHead+6) {
					t.Errorf("%q is taken for the key of record %d, and %q is that of %d", other, got, key, n)
				}
			}
		}
		for i := range keys {
			for j := range keys {
				if less := bytes.Compare(keys[i], keys[j]); (less < 0) != (records[i].place < records[j].place) {
					t.Fatalf("%q and %q are not ordered as their places", keys[i], keys[j])
				}
			}
		}
		for _, text := range []string{"", "kv/", "kv/zzzz", string(keys[0]) + "0", string(keys[0][:len(keys[0])-1])} {
			if _, ok := f.number([]byte(text), scratch); ok {
				t.Errorf("%q is taken for a key", text)
			}
		}
	}
}

// TestConsecutiveRecordsHaveDistantKeys checks that the keys of consecutive records are far apart.
func TestConsecutiveRecordsHaveDistantKeys(t *testing.T) {
	f := newFormula(7, 0, shapes()[2])
	near := 0
	for n := range uint64(10_000) {
		if a, b := f.place(n), f.place(n+1); max(a, b)-min(a, b) < 1<<placeBits/1000 {
			near++
		}
	}
	if near > 60 { // 20 are expected of places drawn at random
		t.Errorf("%d of 10,000 neighbours are within a thousandth of all keys", near)
	}
}

// TestValueIdentifiesItsWriter checks that a value identifies its writer, and that a changed, cut or moved value
// is detected.
func TestValueIdentifiesItsWriter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, s := range shapes() {
		f := newFormula(rng.Uint64(), 0, s)
		for _, n := range numbers(rng)[:20] {
			writer := history.NewID(1+rng.Uint64N(9), rng.Uint64N(100), rng.Uint64N(1<<32))
			if n%5 == 0 {
				writer = 0
			}
			size := f.size(n, writer)
			if uint64(size) < s.low || uint64(size) > s.high {
				t.Fatalf("a value of %d bytes, where %d to %d are asked for", size, s.low, s.high)
			}
			v := f.appendValue([]byte("before"), n, writer, 5, size)[len("before"):]
			if len(v) != size {
				t.Fatalf("a value of %d bytes has %d", size, len(v))
			}
			if i := slices.IndexFunc(v, func(c byte) bool { return c <= ' ' || c > '~' }); i >= 0 {
				t.Fatalf("byte %d of a value is %q, which is no printable ASCII", i, v[i])
			}
			if got, state := f.parse(v, n); got != writer || state != history.Whole {
				t.Fatalf("a value of %v is taken for one of %v, in state %v", writer, got, state)
			}
			if _, state := f.parse(v, n^1); state == history.Whole {
				t.Error("a value of one record is taken for one of another")
			}
			for range 10 {
				at := rng.IntN(len(v))
				bent := bytes.Clone(v)
				bent[at] ^= 1 << rng.IntN(7)
				if _, state := f.parse(bent, n); state == history.Whole {
					t.Errorf("a value whose byte %d of %d is changed is taken for whole", at, len(v))
				}
			}
			for _, cut := range [][]byte{nil, v[:10], v[:len(v)-1], append(bytes.Clone(v), 'x'), make([]byte, len(v))} {
				if _, state := f.parse(cut, n); state == history.Whole {
					t.Errorf("%d bytes of a value of %d are taken for whole", len(cut), len(v))
				}
			}
		}
	}
}

// TestValuesDoNotCompress checks that a compressor saves no more than the two bits of each byte that printable
// text leaves unused.
func TestValuesDoNotCompress(t *testing.T) {
	f := newFormula(7, 0, shape{32, 64, 30_000})
	values := f.appendValue(nil, 3, history.NewID(1, 2, 3), 0, 30_000)
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(values); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if share := float64(packed.Len()) / float64(len(values)); share < 0.74 {
		t.Errorf("values shrink to %.2f of their size", share)
	}
}

func TestRecordIsFoundByNameOrNumber(t *testing.T) {
	h := history.Header{Seed: 7, Objects: 100, Keys: factsOf(shape{32, 64, 64})}
	names := formulaOf(h)
	for _, n := range []uint64{0, 99, numberOf(3, 17)} {
		if got, err := names.Number(names.Name(n)); err != nil || got != n {
			t.Errorf("the name %q gives %d, %v", names.Name(n), got, err)
		}
	}
	for name, want := range map[string]uint64{"0": 0, "99": 99, "record 17": 17, "(record 17)": 17} {
		if got, err := names.Number(name); err != nil || got != want {
			t.Errorf("%q gives %d, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "nonsense", "100", "-1", "record", "account 3", names.Name(100), names.Name(^uint64(0))} {
		if n, err := names.Number(name); err == nil {
			t.Errorf("%q is taken for record %d", name, n)
		}
	}
}

func BenchmarkValue(b *testing.B) {
	f := newFormula(7, 0, shape{32, 1024, 1024})
	var v []byte
	for i := range b.N {
		v = f.appendValue(v[:0], uint64(i), history.NewID(1, 1, uint64(i+1)), 0, 1024)
		if _, whole := f.parse(v, uint64(i)); whole != history.Whole {
			b.Fatal("not whole")
		}
	}
}
