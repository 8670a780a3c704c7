package sampling

import "math/bits"

// Choice chooses among n numbers: all alike, or with the probabilities of Zipf, the
// popular ones scattered over all of them: which they are is a function of the seed.
type Choice struct {
	n       uint64
	ranks   *Zipf // nil: all alike
	scatter Permutation
}

// NewChoice chooses among the numbers below n.
func NewChoice(n uint64, zipfian bool, exponent float64, seed uint64) Choice {
	if !zipfian || n < 2 {
		return Choice{n: n}
	}
	ranks := NewZipf(n, exponent)
	return Choice{n: n, ranks: &ranks, scatter: NewPermutation(uint(bits.Len64(n-1)), Mix(^seed))}
}

// Draw chooses one number.
func (c *Choice) Draw(source *Source) uint64 {
	if c.ranks == nil {
		return source.Below(c.n)
	}
	n := c.ranks.Rank(source) - 1
	for {
		// The permutation is of a power of two; walking its cycle until it is
		// below n makes it one of theirs.
		if n = c.scatter.Forward(n); n < c.n {
			return n
		}
	}
}
