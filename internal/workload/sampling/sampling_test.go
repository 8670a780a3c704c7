package sampling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"stroppy/internal/tier"
)

func TestPermutationIsABijection(t *testing.T) {
	for width := uint(2); width <= 16; width++ {
		for seed := range uint64(5) {
			p := NewPermutation(width, seed)
			seen := make([]bool, 1<<width)
			for x := range uint64(1) << width {
				y := p.Forward(x)
				if y >= 1<<width || seen[y] {
					t.Fatalf("width %d, seed %d: %d goes to %d, which is too large or taken", width, seed, x, y)
				}
				seen[y] = true
				if back := p.Backward(y); back != x {
					t.Fatalf("width %d, seed %d: %d goes to %d and back to %d", width, seed, x, y, back)
				}
			}
		}
	}
}

func TestPermutationInverseReturnsTheInput(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for width := uint(1); width <= 48; width++ {
		for range 1000 {
			p := NewPermutation(width, random.Uint64())
			for _, x := range []uint64{0, 1, p.mask, random.Uint64() & p.mask} {
				if back := p.Backward(p.Forward(x)); back != x {
					t.Fatalf("width %d: %d comes back as %d", width, x, back)
				}
			}
		}
	}
}

func TestZipfMatchesExactProbabilities(t *testing.T) {
	tier.SkipUnderRace(t)
	for _, exponent := range []float64{0.2, 0.99, 1, 1.0000001, 1.5, 3} {
		for _, n := range []int{4, 10, 100} {
			t.Run(fmt.Sprintf("%v of %d", exponent, n), func(t *testing.T) {
				z := NewZipf(uint64(n), exponent)
				source := NewSource(1, 1, uint64(n))
				const draws = 200_000
				counts, expected := make([]float64, n), make([]float64, n)
				var norm float64
				for i := range n {
					expected[i] = math.Pow(float64(i+1), -exponent)
					norm += expected[i]
				}
				for range draws {
					counts[z.Rank(source)-1]++
				}
				// Ranks that are hardly expected are counted together.
				last := 0
				for i := range n {
					if expected[i] *= draws / norm; expected[i] >= 5 || i == 0 {
						last = i
						continue
					}
					expected[last] += expected[i]
					counts[last] += counts[i]
				}
				x := stat.ChiSquare(counts[:last+1], expected[:last+1])
				if p := (distuv.ChiSquared{K: float64(max(last, 1))}).Survival(x); p < 1e-6 {
					t.Errorf("chi-square is %.0f, of which the probability is %.2g", x, p)
				}
			})
		}
	}
}

func TestZipfOfLargeDomainsStaysInRange(t *testing.T) {
	for _, n := range []uint64{1 << 20, 1_000_000_000, 1 << 48} {
		for _, exponent := range []float64{0.01, 0.99, 5, 100} {
			z := NewZipf(n, exponent)
			source := NewSource(3, 1, n)
			for range 1000 {
				if rank := z.Rank(source); rank < 1 || rank > n {
					t.Fatalf("exponent %v: rank %d of %d", exponent, rank, n)
				}
			}
		}
	}
}
