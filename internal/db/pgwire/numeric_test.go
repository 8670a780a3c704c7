package pgwire

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"stroppy/internal/db"
)

// exact decodes the binary format by its definition, with numbers of any size.
func exact(src []byte) *big.Rat {
	sum := new(big.Rat)
	weight := int(int16(binary.BigEndian.Uint16(src[2:])))
	for i := range int(binary.BigEndian.Uint16(src)) {
		digit := new(big.Rat).SetInt64(int64(binary.BigEndian.Uint16(src[8+2*i:])))
		exponent := weight - i
		power := new(big.Int).Exp(big.NewInt(10_000), big.NewInt(int64(max(exponent, -exponent))), nil)
		if exponent < 0 {
			sum.Add(sum, digit.Quo(digit, new(big.Rat).SetInt(power)))
		} else {
			sum.Add(sum, digit.Mul(digit, new(big.Rat).SetInt(power)))
		}
	}
	if binary.BigEndian.Uint16(src[4:]) == 0x4000 {
		sum.Neg(sum)
	}
	return sum
}

func moneyValues() []int64 {
	values := []int64{0, 1, -1, 10, 99, 100, 101, -100, 9_999, 10_000, 999_999, 1_000_000, 1_000_001, 100_000_000,
		math.MaxInt64, math.MinInt64, math.MaxInt64 - 7, math.MinInt64 + 8}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		v := int64(rng.Uint64()) >> rng.IntN(63)
		values = append(values, v, v-v%100, v-v%1_000_000)
	}
	return values
}

func TestMoneyIsEncodedExactly(t *testing.T) {
	for _, cents := range moneyValues() {
		src := appendNumeric(nil, cents)
		if want := big.NewRat(cents, 100); exact(src).Cmp(want) != 0 {
			t.Fatalf("appendNumeric(%d) = % x, which is %s", cents, src, exact(src).FloatString(6))
		}
	}
}

// TestNumericIsReadExactlyOrRefused checks that any numeric is read exactly or refused. The tests of package money
// cover more cases.
func TestNumericIsReadExactlyOrRefused(t *testing.T) {
	for text, want := range map[string]struct{ cents, number int64 }{
		"0": {0, 0}, "7.00": {700, 7}, "-12.0000": {-1200, -12}, "-92233720368547757.00": {math.MinInt64 + 108, -92233720368547757},
	} {
		var cents, number db.Value
		_, err := asNumeric.decode([]byte(text), &cents, nil)
		_, failed := asNumericNumber.decode([]byte(text), &number, nil)
		if err != nil || failed != nil || cents.Int != want.cents || number.Int != want.number {
			t.Errorf("%s: %d cents, %v; %d, %v", text, cents.Int, err, number.Int, failed)
		}
	}
	for _, text := range []string{"", "NaN", "Infinity", "-Infinity", "0.001", "0.0001", "1.0500001", "1e30",
		"92233720368547758.08", "-92233720368547758.09", "1" + strings.Repeat("0", 131_071)} {
		for _, how := range []decoder{asNumeric, asNumericNumber} {
			var v db.Value
			if _, err := how.decode([]byte(text), &v, nil); err == nil {
				t.Errorf("%.40s: %d, want an error", text, v.Int)
			}
		}
	}
	var v db.Value
	if _, err := asNumericNumber.decode([]byte("7.50"), &v, nil); err == nil {
		t.Errorf("7.50 as a whole number: %d", v.Int)
	}
	if _, err := asNumeric.decode([]byte("-92233720368547758.08"), &v, nil); err != nil || v.Int != math.MinInt64 {
		t.Errorf("the smallest: %d, %v", v.Int, err)
	}
}

func FuzzAppendNumeric(f *testing.F) {
	f.Add(int64(0))
	f.Add(int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, cents int64) {
		prefix := []byte("prefix")
		src, ok := bytes.CutPrefix(appendNumeric(prefix, cents), prefix)
		if !ok || exact(src).Cmp(big.NewRat(cents, 100)) != 0 {
			t.Fatalf("appendNumeric(%d) = % x", cents, src)
		}
	})
}
