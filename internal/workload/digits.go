package workload

import (
	"hash/crc32"
	"strconv"
)

// Digits write whole numbers in characters of so many bits each, the highest first.
// Numbers of the same length are in the order of their texts.
type Digits uint

// In Hex and Base32 every collation of text has this order, too.
const (
	Hex    Digits = 4 // 0 to 9, a to f
	Base32 Digits = 5 // 0 to 9, a to v
	Base64 Digits = 6 // the 64 characters from 0 on
)

// Put writes n into all of b.
func (d Digits) Put(b []byte, n uint64) {
	const letters = "0123456789abcdefghijklmnopqrstuv"
	for i := len(b) - 1; i >= 0; i-- {
		if c := byte(n & (1<<d - 1)); d == Base64 {
			b[i] = '0' + c
		} else {
			b[i] = letters[c&31]
		}
		n >>= d
	}
}

// Append appends n in so many digits, at most 16.
func (d Digits) Append(b []byte, n uint64, digits int) []byte {
	b = append(b, "0000000000000000"[:digits]...)
	d.Put(b[len(b)-digits:], n)
	return b
}

// AppendDecimal appends n in so many decimal digits, at most 16.
func AppendDecimal(b []byte, n uint64, digits int) []byte {
	b = append(b, "0000000000000000"[:digits]...)
	for i := len(b) - 1; n > 0; i-- {
		b[i] += byte(n % 10)
		n /= 10
	}
	return b
}

// ParseDecimal is the inverse of AppendDecimal; false of what it has not written.
func ParseDecimal(b []byte) (int64, bool) {
	n, err := strconv.ParseUint(string(b), 10, 63)
	return int64(n), err == nil
}

// Parse is the inverse of Put; false of what it has not written.
func (d Digits) Parse(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		digit := c - '0'
		if d != Base64 && c >= 'a' {
			digit = c - 'a' + 10
		} else if d != Base64 && c > '9' {
			return 0, false
		}
		if digit >= 1<<d || n>>(64-d) != 0 {
			return 0, false
		}
		n = n<<d | uint64(digit)
	}
	return n, len(b) > 0
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC-32C (Castagnoli's polynomial) of a value without the bytes
// from ≤ i < to, in which the checksum itself stands.
func Checksum(value []byte, from, to int) uint32 {
	return crc32.Update(crc32.Checksum(value[:from], castagnoli), castagnoli, value[to:])
}
