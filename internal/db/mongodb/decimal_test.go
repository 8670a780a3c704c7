package mongodb

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestDecimalRoundTrip checks that the library reads money correctly, and that money survives a round trip.
func TestDecimalRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	cents := []int64{0, 1, -1, 99, -100, math.MaxInt64, -math.MaxInt64}
	for range 10_000 {
		cents = append(cents, int64(random.Uint64())>>random.IntN(64))
	}
	for _, c := range cents {
		if c == math.MinInt64 {
			continue
		}
		high, low := decimalOf(c)
		if back, ok := centsOf(high, low); !ok || back != c {
			t.Fatalf("%d comes back as %d, %v", c, back, ok)
		}
		written := fmt.Sprintf("%d.%02d", max(c, -c)/100, max(c, -c)%100)
		if c < 0 {
			written = "-" + written
		}
		if d, err := bson.ParseDecimal128(written); err != nil || d.String() != bson.NewDecimal128(high, low).String() {
			t.Fatalf("%s is written as %v, %v", written, bson.NewDecimal128(high, low), err)
		}
	}
	for text, want := range map[string]int64{"1": 100, "1E+2": 10000, "1.500": 150, "-0.10": -10, "0E+20": 0} {
		d, err := bson.ParseDecimal128(text)
		high, low := d.GetBytes()
		if got, ok := centsOf(high, low); err != nil || !ok || got != want {
			t.Errorf("%s is %d cents, %v, %v, want %d", text, got, ok, err, want)
		}
	}
	for _, text := range []string{"0.001", "NaN", "Infinity", "1E+30", "92233720368547758.08"} {
		d, err := bson.ParseDecimal128(text)
		high, low := d.GetBytes()
		if got, ok := centsOf(high, low); err != nil || ok {
			t.Errorf("%s is %d cents, %v", text, got, err)
		}
	}
}
