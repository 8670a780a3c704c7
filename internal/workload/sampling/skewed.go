package sampling

import "math/bits"

// Skewed chooses among n numbers with the probabilities of Zipf, the popular ones
// scattered over all of them: which they are is a function of the seed.
type Skewed struct {
	n       uint64
	ranks   Zipf
	scatter Permutation
}

// NewSkewed chooses among the numbers below n, which must be 2 or more.
func NewSkewed(n uint64, exponent float64, seed uint64) Skewed {
	return Skewed{n: n, ranks: NewZipf(n, exponent), scatter: NewPermutation(uint(bits.Len64(n-1)), Mix(^seed))}
}

// Draw chooses one number.
func (k *Skewed) Draw(source *Source) uint64 {
	n := k.ranks.Rank(source) - 1
	for {
		// The permutation is of a power of two; walking its cycle until it is
		// below n makes it one of theirs.
		if n = k.scatter.Forward(n); n < k.n {
			return n
		}
	}
}
