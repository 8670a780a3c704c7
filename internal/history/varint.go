package history

import (
	"encoding/binary"
	"math/bits"
)

// varint returns the varint at i of b and the position after it. If there is none, or if it has more than 64
// bits, it returns 0 and a position beyond the end of b. It does the same for such a position, so that a
// caller may read several numbers and check the position once.
//
// It reads eight bytes at once, and no branch depends on the length of the number.
func varint(b []byte, i int) (uint64, int) {
	if len(b)-i < 8 {
		return slowVarint(b, i)
	}
	x := binary.LittleEndian.Uint64(b[i:])
	switch { // predicted, so that the next number does not wait for this length
	case x&0x80 == 0:
		return x & 0x7f, i + 1
	case x&0x8000 == 0:
		return x&0x7f | x&0x7f00>>1, i + 2
	case x&0x800000 == 0:
		return x&0x7f | x&0x7f00>>1 | x&0x7f0000>>2, i + 3
	}
	last := ^x & 0x8080808080808080 // the top bit of each byte that ends a number
	if last == 0 {
		return slowVarint(b, i)
	}
	next := i + bits.TrailingZeros64(last)>>3 + 1
	x &= last ^ (last - 1) // the bytes up to the first of these
	x = x&0x007f007f007f007f | x&0x7f007f007f007f00>>1
	x = x&0x00003fff00003fff | x&0x3fff00003fff0000>>2
	return x&0x0fffffff | x&0x0fffffff00000000>>4, next
}

// slowVarint does the same bytewise.
func slowVarint(b []byte, i int) (v uint64, next int) {
	for shift := uint(0); i < len(b) && shift < 64; shift += 7 {
		c := b[i]
		i++
		v |= uint64(c&0x7f) << (shift & 63)
		if c < 0x80 {
			if shift == 63 && c > 1 {
				break // more than 64 bits
			}
			return v, i
		}
	}
	return 0, len(b) + 1
}

// short does the same and is faster if most numbers have one byte.
func short(b []byte, i int) (uint64, int) {
	if i < len(b) && b[i] < 0x80 {
		return uint64(b[i]), i + 1
	}
	return varint(b, i)
}
