package script

import (
	"fmt"
	"math"
	"math/bits"
)

// The bounds of the parameters of random functions.
const (
	leastGaussian    = 2
	leastZipfian     = 1.001
	greatestZipfian  = 1000
	murmurMultiplier = 0xc6a4a7935bd1e995
)

// draw returns the value of a random function from least to greatest. The formulas are pgbench's.
func (m *Machine) draw(op operation, args *[3]Value) (Value, error) {
	least, err := args[0].integer()
	if err != nil {
		return Value{}, err
	}
	greatest, err := args[1].integer()
	switch {
	case err != nil:
		return Value{}, err
	case least > greatest:
		return Value{}, fmt.Errorf("the range of a random function is empty: %d is above %d", least, greatest)
	case greatest-least < 0 || greatest-least == math.MaxInt64:
		return Value{}, fmt.Errorf("the range of a random function is too large: %d to %d", least, greatest)
	case op == opRandom:
		return integer(least + int64(m.random.Uint64N(uint64(greatest-least)+1))), nil
	}
	parameter, err := args[2].double()
	if err != nil {
		return Value{}, err
	}
	size := greatest - least + 1
	switch {
	case op == opRandomGaussian && !(parameter >= leastGaussian && parameter <= math.MaxFloat64):
		return Value{}, fmt.Errorf("the parameter of random_gaussian must be at least %d, and is %g",
			leastGaussian, parameter)
	case op == opRandomExponential && !(parameter > 0 && parameter <= math.MaxFloat64):
		return Value{}, fmt.Errorf("the parameter of random_exponential must be above 0, and is %g", parameter)
	case op == opRandomZipfian && !(parameter >= leastZipfian && parameter <= greatestZipfian):
		return Value{}, fmt.Errorf("the parameter of random_zipfian must be from %g to %d, and is %g",
			leastZipfian, greatestZipfian, parameter)
	case op == opRandomZipfian:
		return integer(least - 1 + m.zipfian(size, parameter)), nil
	case op == opRandomGaussian:
		return integer(least + share(size, m.gaussian(parameter))), nil
	}
	return integer(least + share(size, m.exponential(parameter))), nil
}

// share returns the integer below size at a fraction from 0 to 1. The product of a large size may be rounded up to it.
func share(size int64, fraction float64) int64 {
	at := float64(size) * fraction
	if at >= float64(size) {
		return size - 1
	}
	return min(int64(at), size-1)
}

func (m *Machine) exponential(parameter float64) float64 {
	cut := math.Exp(-parameter)
	uniform := 1 - m.random.Float64()
	return -math.Log(cut+(1-cut)*uniform) / parameter
}

// gaussian draws by the method of Box and Muller, again if the value is outside of the parameter's range.
func (m *Machine) gaussian(parameter float64) float64 {
	for {
		radius := math.Sqrt(-2 * math.Log(1-m.random.Float64()))
		deviation := radius * math.Sin(2*math.Pi*(1-m.random.Float64()))
		if -parameter <= deviation && deviation < parameter {
			return (deviation + parameter) / (2 * parameter)
		}
	}
}

// zipfian draws from 1 to size by rejection: Luc Devroye, Non-Uniform Random Variate Generation, 1986, page 550.
func (m *Machine) zipfian(size int64, s float64) int64 {
	if size <= 1 {
		return 1
	}
	b := math.Pow(2, s-1)
	for {
		u, v := m.random.Float64(), m.random.Float64()
		x := math.Floor(math.Pow(u, -1/(s-1)))
		t := math.Pow(1+1/x, s-1)
		if v*x*(t-1)/(b-1) <= t/b && x <= float64(size) {
			return int64(x)
		}
	}
}

// hashFNV1a is the FNV-1a hash (isthe.com/chongo/tech/comp/fnv) of the eight bytes of an integer.
func hashFNV1a(value, seed int64) int64 {
	h := 0xcbf29ce484222325 ^ uint64(seed)
	for range 8 {
		h = (h ^ uint64(value&0xff)) * 0x100000001b3
		value >>= 8
	}
	return int64(h)
}

// hashMurmur2 is MurmurHash64A (github.com/aappleby/smhasher) of the eight bytes of an integer.
func hashMurmur2(value, seed int64) int64 {
	const length, rotate = 8, 47
	multiplier := uint64(murmurMultiplier)
	k := uint64(value) * multiplier
	k = (k ^ k>>rotate) * multiplier
	h := (uint64(seed) ^ length*multiplier ^ k) * multiplier
	h = (h ^ h>>rotate) * multiplier
	return int64(h ^ h>>rotate)
}

// xoroshiro is the generator xoroshiro128** (prng.di.unimi.it), by which pgbench permutes.
type xoroshiro [2]uint64

// newXoroshiro fills the state by splitmix64, as its authors advise.
func newXoroshiro(seed uint64) xoroshiro {
	var x xoroshiro
	for i := range x {
		seed += 0x9e3779b97f4a7c15
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		x[i] = z ^ z>>31
	}
	return x
}

func (x *xoroshiro) next() uint64 {
	first, mixed := x[0], x[0]^x[1]
	x[0] = bits.RotateLeft64(first, 24) ^ mixed ^ mixed<<16
	x[1] = bits.RotateLeft64(mixed, 37)
	return bits.RotateLeft64(first*5, 7) * 9
}

// below draws from 0 to greatest.
func (x *xoroshiro) below(greatest uint64) uint64 {
	for {
		if v := x.next() >> bits.LeadingZeros64(greatest); v <= greatest {
			return v
		}
	}
}

// permute returns the place of value in the permutation of 0 to size-1 that seed selects. Six rounds scramble the lower
// part of the range, then its upper part, and rotate the range. The greatest power of two in size is the length of both
// parts.
func permute(value, size, seed int64) int64 {
	if size < 2 {
		return 0
	}
	n := uint64(size)
	v := uint64(value) % n
	length := bits.Len64(n) - 1
	mask := uint64(1)<<length - 1
	generator := newXoroshiro(uint64(seed))
	scramble := func(v uint64) uint64 {
		multiplier := generator.next()&mask | 1
		flipped := generator.next() & mask
		if v > mask {
			return v
		}
		v = (v*multiplier ^ flipped) & mask
		return v<<1&mask | v>>(length-1)
	}
	for range 6 {
		v = scramble(v)
		v = n - 1 - scramble(n-1-v)
		v = (v + generator.below(n-1)) % n
	}
	return int64(v)
}
