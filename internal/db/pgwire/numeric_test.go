package pgwire

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exact reads the binary format by its definition, with numbers of any size.
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

func TestNumericRoundTrip(t *testing.T) {
	for _, cents := range moneyValues() {
		src := appendNumeric(nil, cents)
		if want := big.NewRat(cents, 100); exact(src).Cmp(want) != 0 {
			t.Fatalf("appendNumeric(%d) = % x, which is %s", cents, src, exact(src).FloatString(6))
		}
		if got, err := parseNumeric(src); err != nil || got != cents {
			t.Fatalf("parseNumeric(appendNumeric(%d)) = %d, %v", cents, got, err)
		}
	}
}

func numeric(weight int16, sign uint16, digits ...uint16) []byte {
	src := binary.BigEndian.AppendUint16(nil, uint16(len(digits)))
	src = binary.BigEndian.AppendUint16(src, uint16(weight))
	src = binary.BigEndian.AppendUint16(src, sign)
	src = binary.BigEndian.AppendUint16(src, 2)
	for _, d := range digits {
		src = binary.BigEndian.AppendUint16(src, d)
	}
	return src
}

func TestParseNumericRefuses(t *testing.T) {
	for name, src := range map[string][]byte{
		"nothing":                {},
		"a short header":         {0, 0, 0, 0, 0, 0, 0},
		"NaN":                    numeric(0, 0xC000),
		"infinity":               numeric(0, 0xD000),
		"minus infinity":         numeric(0, 0xF000),
		"a tenth of a cent":      numeric(-1, 0, 10),
		"a ten-thousandth cent":  numeric(-2, 0, 1),
		"cents and a fraction":   numeric(0, 0, 1, 500, 1),
		"a digit too large":      numeric(0, 0, 10_000),
		"too few digits":         numeric(0, 0, 1, 2)[:10],
		"one above the largest":  numeric(4, 0, 9, 2233, 7203, 6854, 7758, 800),
		"one below the smallest": numeric(4, 0x4000, 9, 2233, 7203, 6854, 7758, 900),
		"a huge weight":          numeric(32767, 0, 1),
	} {
		if got, err := parseNumeric(src); err == nil {
			t.Errorf("%s: parseNumeric = %d, want an error", name, got)
		}
	}
	if got, err := parseNumeric(numeric(4, 0x4000, 9, 2233, 7203, 6854, 7758, 800)); err != nil || got != math.MinInt64 {
		t.Errorf("the smallest: %d, %v", got, err)
	}
}

func FuzzParseNumeric(f *testing.F) {
	f.Add(numeric(0, 0, 1, 500))
	f.Add(numeric(-1, 0x4000, 100))
	f.Add(numeric(4, 0, 9, 2233, 7203, 6854, 7758, 700))
	f.Add(numeric(3, 0, 0, 0, 0, 1, 0, 0))
	f.Fuzz(func(t *testing.T, src []byte) {
		cents, err := parseNumeric(src)
		if err != nil {
			return
		}
		if weight := int16(binary.BigEndian.Uint16(src[2:])); weight > 100 || weight < -100 {
			if cents != 0 {
				t.Fatalf("parseNumeric(% x) = %d", src, cents)
			}
			return
		}
		if exact(src).Cmp(big.NewRat(cents, 100)) != 0 {
			t.Fatalf("parseNumeric(% x) = %d cents, want %s", src, cents, exact(src))
		}
		if again, err := parseNumeric(appendNumeric(nil, cents)); err != nil || again != cents {
			t.Fatalf("%d cents came back as %d, %v", cents, again, err)
		}
	})
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
