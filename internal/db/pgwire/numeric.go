package pgwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The binary format of numeric is that of numeric_send and numeric_recv in
// src/backend/utils/adt/numeric.c: four 16-bit numbers, namely the count of
// digits, the weight of the first digit, the sign and the display scale, and
// then the digits to the base of 10 000, the first one times 10 000^weight.
const (
	numericHeader   = 8
	numericBase     = 10_000
	numericPositive = 0x0000
	numericNegative = 0x4000
	numericScale    = 2 // digits after the point: cents
)

var (
	errTooMuchMoney   = errors.New("read a numeric as money: more than 64 bits of cents")
	errFractionOfCent = errors.New("read a numeric as money: a fraction of a cent")
)

// appendNumeric appends cents as a numeric with two places in binary format,
// without the length before it.
func appendNumeric(dst []byte, cents int64) []byte {
	sign, u := uint16(numericPositive), uint64(cents)
	if cents < 0 {
		sign, u = numericNegative, -u
	}
	// The last digit is the one after the point, whose upper half the cents are.
	// 2^63 cents have 17 decimal digits before the point: five digits of the base.
	var digits [6]uint16
	last := len(digits)
	first := last - 1
	digits[first] = uint16(u%100) * 100
	for whole := u / 100; whole > 0; whole /= numericBase {
		first--
		digits[first] = uint16(whole % numericBase)
	}
	weight := len(digits) - 2 - first
	for last > first && digits[last-1] == 0 {
		last--
	}
	if first == last {
		weight = 0
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(last-first))
	dst = binary.BigEndian.AppendUint16(dst, uint16(int16(weight)))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	dst = binary.BigEndian.AppendUint16(dst, numericScale)
	for _, d := range digits[first:last] {
		dst = binary.BigEndian.AppendUint16(dst, d)
	}
	return dst
}

// parseNumeric reads a numeric in binary format as cents. NaN, infinity, a
// fraction of a cent and an amount beyond 64 bits of cents are errors.
func parseNumeric(src []byte) (int64, error) {
	if len(src) < numericHeader {
		return 0, fmt.Errorf("read a numeric of %d bytes: its header alone has %d", len(src), numericHeader)
	}
	count := int(int16(binary.BigEndian.Uint16(src)))
	weight := int(int16(binary.BigEndian.Uint16(src[2:])))
	sign := binary.BigEndian.Uint16(src[4:])
	digits := src[numericHeader:]
	if count < 0 || len(digits) != 2*count {
		return 0, fmt.Errorf("read a numeric of %d bytes: it says that it has %d digits", len(src), count)
	}
	if sign != numericPositive && sign != numericNegative {
		return 0, fmt.Errorf("read a numeric as money: it is no finite number (sign %#x)", sign)
	}
	var u uint64
	for w := weight; w >= -1; w-- {
		if u == 0 && len(digits) == 0 {
			break
		}
		digit, factor := uint64(0), uint64(numericBase)
		if len(digits) > 0 {
			digit = uint64(binary.BigEndian.Uint16(digits))
			digits = digits[2:]
		}
		if digit >= numericBase {
			return 0, fmt.Errorf("read a numeric: one of its digits is %d, not below %d", digit, numericBase)
		}
		if w == -1 {
			if digit%100 != 0 {
				return 0, errFractionOfCent
			}
			digit, factor = digit/100, 100
		}
		if u > (math.MaxUint64-digit)/factor {
			return 0, errTooMuchMoney
		}
		u = u*factor + digit
	}
	for _, b := range digits {
		if b != 0 {
			return 0, errFractionOfCent
		}
	}
	limit := uint64(math.MaxInt64)
	if sign == numericNegative {
		limit++
	}
	if u > limit {
		return 0, errTooMuchMoney
	}
	if sign == numericNegative {
		u = -u
	}
	return int64(u), nil
}
