// Package sampling draws for workloads: numbers, ranks and permutations that are a
// function of a seed, so that one seed repeats every choice. Nothing in it
// allocates once it is made.
package sampling

import (
	"math/bits"
	"math/rand/v2"
)

// Source is a generator of random numbers that belongs to one client.
type Source struct{ pcg rand.PCG }

// NewSource returns the generator of one client of one run under a seed. Distinct
// arguments give streams that have nothing to do with each other.
func NewSource(seed, run, client uint64) Source {
	high := Mix(seed ^ Mix(run<<17|client)) // a client's number has 17 bits
	return Source{*rand.NewPCG(high, Mix(high))}
}

// Uint64 draws 64 random bits.
func (s *Source) Uint64() uint64 { return s.pcg.Uint64() }

// Unit draws a number from [0, 1) with 53 random bits.
func (s *Source) Unit() float64 { return float64(s.pcg.Uint64()>>11) * 0x1p-53 }

// Below draws a number below n without bias (Lemire, Fast Random Integer
// Generation in an Interval, ACM TOMACS 29(1), 2019). n must not be 0.
func (s *Source) Below(n uint64) uint64 {
	high, low := bits.Mul64(s.pcg.Uint64(), n)
	if low < n {
		for threshold := -n % n; low < threshold; {
			high, low = bits.Mul64(s.pcg.Uint64(), n)
		}
	}
	return high
}

// Mix is the finalizer of SplitMix64 after one step of its counter (Steele,
// Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
