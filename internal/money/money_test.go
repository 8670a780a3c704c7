package money

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

func TestAmountsSurviveFormatAndParse(t *testing.T) {
	for _, tc := range []struct {
		cents int64
		text  string
	}{
		{0, "0.00"}, {1, "0.01"}, {-1, "-0.01"}, {10, "0.10"}, {100, "1.00"}, {-1205, "-12.05"},
		{math.MaxInt64, "92233720368547758.07"}, {math.MinInt64, "-92233720368547758.08"},
	} {
		if got := Format(tc.cents); got != tc.text {
			t.Errorf("Format(%d) = %s, want %s", tc.cents, got, tc.text)
		}
		if got, err := Parse(tc.text); err != nil || got != tc.cents {
			t.Errorf("Parse(%s) = %d, %v, want %d", tc.text, got, err, tc.cents)
		}
	}
}

// TestParseRefusesInexactOrMalformedAmounts checks that other spellings of exact cents are accepted, and that
// malformed, inexact or too large amounts are refused.
func TestParseRefusesInexactOrMalformedAmounts(t *testing.T) {
	for text, want := range map[string]int64{"7": 700, "+7.5": 750, "7.": 700, ".07": 7, "1.230000": 123, "-0": 0, "00012": 1200} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%s) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", ".", "1e3", "1.005", "NaN", "1,00", "1.2.3", " 1",
		"92233720368547758.08", "-92233720368547758.09", "184467440737095516.16", "999999999999999999999"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("12.05")
	f.Add("-0.01")
	f.Add("184467440737095516.159")
	f.Fuzz(func(t *testing.T, text string) {
		cents, err := Parse(text)
		if err != nil {
			return
		}
		want, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("Parse(%q) = %d, but it is not a number", text, cents)
		}
		if want.Cmp(big.NewRat(cents, 100)) != 0 {
			t.Fatalf("Parse(%q) = %d cents, want %s", text, cents, want)
		}
	})
}

func TestTextGroupsThousands(t *testing.T) {
	for cents, want := range map[int64]string{
		0: "0.00", -5: "-0.05", 99999: "999.99", 100000: "1,000.00", -12345678: "-123,456.78", 123456789012: "1,234,567,890.12",
		-100000000: "-1,000,000.00", math.MinInt64: "-92,233,720,368,547,758.08",
	} {
		if got := Text(cents); got != want || strings.ReplaceAll(got, ",", "") != Format(cents) {
			t.Errorf("%d cents are %s, and not %s", cents, got, want)
		}
	}
}
