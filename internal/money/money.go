// Package money converts between exact cents and decimal text.
//
// Everywhere in Stroppy an amount of money is a signed 64-bit number of whole
// cents. Floating point never touches it. The largest amount, 92 233 720 368
// 547 758.07, is a thousand times what a thousand million accounts hold at the
// accounts' opening balances.
package money

import (
	"fmt"
	"math"
)

// Append appends cents as decimal text with two places, such as -12.05.
func Append(dst []byte, cents int64) []byte {
	u := uint64(cents)
	if cents < 0 {
		dst = append(dst, '-')
		u = -u
	}
	var digits [20]byte
	i := len(digits)
	for n := 0; u > 0 || n < 3; n++ {
		i--
		digits[i] = byte('0' + u%10)
		u /= 10
	}
	dst = append(dst, digits[i:len(digits)-2]...)
	dst = append(dst, '.')
	return append(dst, digits[len(digits)-2:]...)
}

// Format returns cents as decimal text with two places, such as -12.05.
func Format(cents int64) string { return string(Append(nil, cents)) }

// Text returns cents for a sentence, with commas between thousands, such as -1,234.05. Parse does not accept
// it.
func Text(cents int64) string {
	plain := Format(cents)
	for i := len(plain) - len(".00") - 3; i > 0 && plain[i-1] != '-'; i -= 3 {
		plain = plain[:i] + "," + plain[i:]
	}
	return plain
}

// Parse reads decimal text as cents. It takes what a database's decimal type
// prints: an optional sign, digits, and optionally a point with more digits, of
// which all after the second must be zero. Anything else, and an amount beyond
// 64 bits of cents, is an error: no digit is ever dropped.
func Parse[T string | []byte](text T) (int64, error) {
	i, negative := 0, false
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		negative = text[i] == '-'
		i++
	}
	var u uint64
	digits, places := 0, -1
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '.' && places < 0:
			places = 0
			continue
		case c < '0' || c > '9':
			return 0, fmt.Errorf("read %q as money: not a decimal number", string(text))
		}
		digits++
		if places >= 0 {
			places++
		}
		if places > 2 {
			if c != '0' {
				return 0, fmt.Errorf("read %q as money: a fraction of a cent", string(text))
			}
			continue
		}
		if u > (math.MaxUint64-9)/10 {
			return 0, fmt.Errorf("read %q as money: more than 64 bits of cents", string(text))
		}
		u = u*10 + uint64(c-'0')
	}
	if digits == 0 {
		return 0, fmt.Errorf("read %q as money: no digits", string(text))
	}
	for n := max(places, 0); n < 2; n++ {
		if u > math.MaxUint64/10 {
			return 0, fmt.Errorf("read %q as money: more than 64 bits of cents", string(text))
		}
		u *= 10
	}
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	if u > limit {
		return 0, fmt.Errorf("read %q as money: more than 64 bits of cents", string(text))
	}
	if negative {
		u = -u
	}
	return int64(u), nil
}
