package events

import (
	"bytes"
	"compress/flate"
	"math/rand/v2"
	"strings"
	"testing"

	"stroppy/internal/history"
	"stroppy/internal/workload"
)

func TestValueIdentifiesItsWriter(t *testing.T) {
	f := formula{7}
	var scratch []byte
	seen := map[string]bool{}
	for id := history.ID(1); id < 200; id++ {
		for member := range uint32(5) {
			for _, length := range []uint64{leastValue, leastValue + 1, 100, 1024, 4099} {
				value := f.appendValue(nil, id<<40|id, member, length)
				var wrong string
				if wrong, scratch = f.fault(value, id<<40|id, member, scratch); wrong != "" || uint64(len(value)) != length {
					t.Fatalf("event %d of %v with %d bytes has %d: %s", member, id, length, len(value), wrong)
				}
				if key := string(value[headLength:]); seen[key] {
					t.Fatalf("event %d of %v has the body of another", member, id)
				} else {
					seen[key] = true
				}
				for _, c := range value {
					if c < ' ' || c > '~' {
						t.Fatalf("the value has the byte %d", c)
					}
				}
			}
		}
	}
}

func TestSeedDeterminesValues(t *testing.T) {
	one, other := formula{1}, formula{2}
	a, b := one.appendValue(nil, 5, 1, 100), other.appendValue(nil, 5, 1, 100)
	if !bytes.Equal(a, one.appendValue(nil, 5, 1, 100)) || bytes.Equal(a, b) {
		t.Error("the seed does not decide the value")
	}
	if wrong, _ := other.fault(a, 5, 1, nil); !strings.Contains(wrong, "its bytes are not those") {
		t.Errorf("the value of another seed: %q", wrong)
	}
}

// TestValuesDoNotCompress checks that six bits of each byte are random, so that no more than a quarter can be saved.
func TestValuesDoNotCompress(t *testing.T) {
	f := formula{1}
	value := f.appendValue(nil, 1, 0, 1<<20)
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(value); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if packed.Len() < len(value)*74/100 {
		t.Errorf("%d bytes became %d", len(value), packed.Len())
	}
}

// TestDamagedValueIsDetected checks that a value is found to be damaged if one byte changed, if it was cut, or if
// two were joined.
func TestDamagedValueIsDetected(t *testing.T) {
	f, random := formula{3}, rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		id, member, length := history.ID(1+random.Uint64N(1<<50)), random.Uint32N(10), leastValue+random.Uint64N(300)
		value := f.appendValue(nil, id, member, length)
		var what string
		switch random.IntN(5) {
		case 0:
			i := random.IntN(len(value))
			value[i] ^= byte(1 << random.IntN(8))
			what = "a bit"
		case 1:
			value = value[:random.IntN(len(value))]
			what = "the end"
		case 2:
			value = append(value, 'x')
			what = "one more byte"
		case 3:
			value = f.appendValue(nil, id, member+1, length)
			what = "its neighbour"
		case 4:
			other := f.appendValue(nil, id, member+1, length)
			from := headLength + random.IntN(len(value)-headLength)
			value = append(value[:from:from], other[from:]...)
			what = "the end of its neighbour"
		}
		if wrong, _ := f.fault(value, id, member, nil); wrong == "" && string(value) != string(f.appendValue(nil, id, member, length)) {
			t.Fatalf("%s of event %d of %v was not seen", what, member, id)
		}
	}
}

// TestValueWithForgedChecksumIsDetected checks that every byte of a value is compared, even if its checksum is
// right.
func TestValueWithForgedChecksumIsDetected(t *testing.T) {
	f := formula{3}
	value := f.appendValue(nil, 9, 0, 100)
	value[50] ^= 1
	workload.Base64.Put(value[sumAt:headLength], uint64(workload.Checksum(value, sumAt, headLength)))
	if wrong, _ := f.fault(value, 9, 0, nil); !strings.Contains(wrong, "its bytes are not those") {
		t.Errorf("it says %q", wrong)
	}
}

func TestValueLengthsFillTheirRange(t *testing.T) {
	f, size := formula{1}, Size{100, 109}
	var counts [10]int
	for id := range history.ID(10_000) {
		length := f.length(size, id, 3)
		if length < size.Low || length > size.High {
			t.Fatalf("a length of %d", length)
		}
		counts[length-size.Low]++
	}
	for i, n := range counts {
		if n < 800 || n > 1200 {
			t.Errorf("the length %d came %d times of 10000", 100+i, n)
		}
	}
	if n := f.length(Size{64, 64}, 1, 1); n != 64 {
		t.Errorf("a fixed length is %d", n)
	}
}

func TestBase64NumberRoundTrip(t *testing.T) {
	for _, n := range []uint64{0, 1, 63, 64, 1<<63 - 1, 1 << 62} {
		if back, ok := workload.Base64.Parse(workload.Base64.Append(nil, n, idDigits)); !ok || back != n {
			t.Errorf("%d comes back as %d, %v", n, back, ok)
		}
	}
	for _, text := range []string{"/", "0p", "ooooooooooo"} {
		if n, ok := workload.Base64.Parse([]byte(text)); ok {
			t.Errorf("%q is %d", text, n)
		}
	}
}
