package mongodb

import (
	"math"
	"math/bits"
)

// Money is IEEE 754-2008 decimal128 in BSON's binary encoding: 1 bit sign, 14 bits biased exponent, 113 bits
// coefficient. Cents have the exponent -2.
const (
	decimalBias   = 6176
	decimalShift  = 49 // position of the exponent in the high half
	centsExponent = -2
)

// decimalOf returns cents as the two halves of a decimal128.
func decimalOf(cents int64) (high, low uint64) {
	high = uint64(decimalBias+centsExponent) << decimalShift
	if cents < 0 {
		return high | 1<<63, -uint64(cents)
	}
	return high, uint64(cents)
}

// centsOf is the inverse of decimalOf. It returns false unless the decimal128 is a whole number of cents that fits in
// 64 bits.
func centsOf(high, low uint64) (int64, bool) {
	if high>>61&3 == 3 { // a large coefficient, an infinity or NaN
		return 0, false
	}
	exponent := int(high>>decimalShift&(1<<14-1)) - decimalBias
	if high&(1<<decimalShift-1) != 0 {
		return 0, false
	}
	coefficient := low
	for ; coefficient != 0 && exponent > centsExponent; exponent-- {
		over, product := bits.Mul64(coefficient, 10)
		if coefficient = product; over != 0 {
			return 0, false
		}
	}
	for ; coefficient != 0 && exponent < centsExponent; exponent++ {
		if coefficient%10 != 0 {
			return 0, false
		}
		coefficient /= 10
	}
	if coefficient > math.MaxInt64 {
		return 0, false
	}
	if high>>63 == 1 {
		return -int64(coefficient), true
	}
	return int64(coefficient), true
}
