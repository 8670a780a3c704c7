package pgwire

import "encoding/binary"

// The binary format of numeric is defined by numeric_send and numeric_recv in
// src/backend/utils/adt/numeric.c. It has four 16-bit numbers: the count of digits, the weight of the first
// digit, the sign and the display scale. The digits in base 10,000 follow, the first one times 10,000^weight.
const (
	numericBase     = 10_000
	numericPositive = 0x0000
	numericNegative = 0x4000
	numericScale    = 2 // digits after the point: cents
)

// appendNumeric appends cents as a numeric with two places in binary format, without its length.
func appendNumeric(dst []byte, cents int64) []byte {
	sign, u := uint16(numericPositive), uint64(cents)
	if cents < 0 {
		sign, u = numericNegative, -u
	}
	// The last digit is the one after the point; the cents are its upper half. 2^63 cents have 17 decimal
	// digits before the point, which is five digits of the base.
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
