// Package sampling draws for workloads: numbers, ranks and permutations that are a
// function of a seed, so that one seed repeats every choice. Nothing in it
// allocates once it is made.
package sampling

import "math/rand/v2"

// NewSource returns the generator of one client of one run under a seed. Distinct
// arguments give streams that have nothing to do with each other.
func NewSource(seed, run, client uint64) *rand.Rand {
	high := Mix(seed ^ Mix(run<<17|client)) // a client's number has 17 bits
	s := &struct {
		rand.Rand
		state rand.PCG
		_     [96]byte // 128 in all, so that no clients' states share a cache line
	}{state: *rand.NewPCG(high, Mix(high))}
	s.Rand = *rand.New(&s.state)
	return &s.Rand
}

// Mix is the finalizer of SplitMix64 after one step of its counter (Steele,
// Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
