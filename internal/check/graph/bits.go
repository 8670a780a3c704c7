package graph

import mathbits "math/bits"

// bits is a set of small numbers.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }

func (b bits) set(i int) { b[i/64] |= 1 << (i % 64) }

func (b bits) clear(i int) { b[i/64] &^= 1 << (i % 64) }

func (b bits) count() (n int) {
	for _, word := range b {
		n += mathbits.OnesCount64(word)
	}
	return n
}

func (b bits) add(c bits) {
	for i, word := range c {
		b[i] |= word
	}
}

// within reports whether b is a subset of c.
func (b bits) within(c bits) bool {
	for i, word := range b {
		if word&^c[i] != 0 {
			return false
		}
	}
	return true
}
