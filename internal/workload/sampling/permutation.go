package sampling

// Permutation is a seeded bijection of the numbers below 2^width: rounds of
// add, odd multiply and xor-shift, each of which can be undone.
type Permutation struct {
	mask    uint64
	shift   uint8 // at least half the width: then the xor-shift is its own inverse
	add     [rounds]uint64
	times   [rounds]uint64
	inverse [rounds]uint64 // of times, modulo 2^64
}

const rounds = 3

// NewPermutation returns the bijection of the numbers below 2^width that belongs to
// the seed; width is 1 to 63.
func NewPermutation(width uint, seed uint64) Permutation {
	p := Permutation{mask: 1<<width - 1, shift: uint8(width+1) / 2}
	for i := range rounds {
		p.add[i] = Mix(seed + 2*uint64(i) + 1)
		p.times[i] = Mix(seed+2*uint64(i)+2) | 1
		p.inverse[i] = oddInverse(p.times[i])
	}
	return p
}

// Forward returns where x goes, which must be below 2^width.
func (p *Permutation) Forward(x uint64) uint64 {
	for i := range rounds {
		x = (x + p.add[i]) * p.times[i] & p.mask
		x ^= x >> p.shift
	}
	return x
}

// Backward is the inverse of Forward.
func (p *Permutation) Backward(x uint64) uint64 {
	for i := rounds - 1; i >= 0; i-- {
		x ^= x >> p.shift
		x = (x*p.inverse[i] - p.add[i]) & p.mask
	}
	return x
}

// oddInverse returns the inverse of an odd number modulo 2^64 by Newton's
// iteration, which doubles the number of right bits; x itself has three.
func oddInverse(x uint64) uint64 {
	y := x
	for range 5 {
		y *= 2 - x*y
	}
	return y
}
