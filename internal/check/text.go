package check

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"stroppy/internal/history"

	"github.com/dustin/go-humanize"
)

// Shown is the number of instances of one violation that a check keeps.
const Shown = 8

// Distinct returns a short list without duplicates and without zero IDs.
func Distinct(ids []history.ID) []history.ID {
	var list []history.ID
	for _, id := range ids {
		if id != 0 && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// Texts formats each value of a list.
func Texts[T any](list []T) []string {
	var texts []string
	for _, v := range list {
		texts = append(texts, fmt.Sprint(v))
	}
	return texts
}

// Plural returns n with the noun in singular or plural. A noun that ends in y gets the ending -ies.
func Plural[N int | uint64 | uint32](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return Group(n) + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return Group(n) + " " + noun + "s"
}

// Group formats a number with commas between thousands.
func Group[N int | uint64 | uint32](n N) string {
	if n > 0 && int64(n) < 0 { // beyond int64
		return humanize.BigComma(new(big.Int).SetUint64(uint64(n)))
	}
	return humanize.Comma(int64(n))
}

// Lasted formats a duration with three digits in the unit of the reports.
func Lasted(d time.Duration) string {
	x, units := float64(d), []string{"ns", "µs", "ms", "s"}
	for ; x >= 999.5 && len(units) > 1; units = units[1:] {
		x /= 1000
	}
	if x >= 999.5 {
		return humanize.Comma(int64(math.Round(x))) + " s"
	}
	return fmt.Sprintf("%.3g %s", x, units[0])
}

// RateText formats a rate per second. Rates from 100 on have no decimals.
func RateText(x float64) string {
	if x >= 100 && x < math.MaxInt64 {
		return Group(uint64(math.Round(x)))
	}
	return fmt.Sprintf("%.3g", x)
}

// LatencyText formats milliseconds without trailing zeros.
func LatencyText(x float64) string {
	switch {
	case x >= 100 && x < math.MaxInt64:
		return Group(uint64(math.Round(x)))
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}
