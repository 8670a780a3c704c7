package sampling

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"stroppy/internal/setting"
)

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
	return Choice{n: n, ranks: NewZipf(n, exponent), scatter: NewPermutation(uint(bits.Len64(n-1)), Mix(^seed))}
}

// Draw chooses one number.
func (c *Choice) Draw(source *rand.Rand) uint64 {
	if c.ranks == nil {
		return source.Uint64N(c.n)
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

// Zipf draws ranks from 1 to n with probabilities proportional to
// rank^-exponent, for any exponent above zero, in constant memory and constant
// expected time: rejection-inversion (Hörmann and Derflinger, Rejection-Inversion
// to Generate Variates from Monotone Discrete Distributions, ACM TOMACS 6(3),
// 1996). The names follow the paper.
type Zipf struct {
	n        float64
	exponent float64
	hx1, hn  float64 // H(1.5) - h(1) and H(n + 0.5)
	s        float64
}

// NewZipf draws from n ranks, with an exponent above 0.
func NewZipf(n uint64, exponent float64) *Zipf {
	z := &Zipf{n: float64(n), exponent: exponent}
	z.hx1 = z.integral(1.5) - 1
	z.hn = z.integral(z.n + 0.5)
	z.s = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

// Rank draws one rank.
func (z *Zipf) Rank(source *rand.Rand) uint64 {
	for {
		u := z.hn + source.Float64()*(z.hx1-z.hn)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.s || u >= z.integral(k+0.5)-z.density(k) {
			return uint64(k)
		}
	}
}

// density is h(x) = x^-exponent.
func (z *Zipf) density(x float64) float64 { return math.Exp(-z.exponent * math.Log(x)) }

// integral is H(x), a primitive of h: (x^(1-e) - 1) / (1-e), and ln x at e = 1.
func (z *Zipf) integral(x float64) float64 {
	l := math.Log(x)
	return expm1Over((1-z.exponent)*l) * l
}

// inverse is the inverse of integral.
func (z *Zipf) inverse(x float64) float64 {
	t := max(x*(1-z.exponent), -1) // below -1 only by rounding
	return math.Exp(log1pOver(t) * x)
}

// nearZero is where the functions below are replaced by their Taylor series.
const nearZero = 1e-8

// log1pOver is ln(1+x)/x, continued at 0.
func log1pOver(x float64) float64 {
	if math.Abs(x) > nearZero {
		return math.Log1p(x) / x
	}
	return 1 - x*(0.5-x*(1.0/3-0.25*x))
}

// expm1Over is (e^x - 1)/x, continued at 0.
func expm1Over(x float64) float64 {
	if math.Abs(x) > nearZero {
		return math.Expm1(x) / x
	}
	return 1 + x*0.5*(1+x/3*(1+0.25*x))
}

// Settings returns the settings of a workload that chooses accounts uniformly or by a Zipf distribution.
func Settings(zipfian *bool, exponent *float64) []setting.Setting {
	return []setting.Setting{
		setting.Switch(zipfian, "zipfian", "choose few accounts often instead of all alike"),
		Exponent(exponent, "how uneven --zipfian is", func() string {
			if *zipfian {
				return ""
			}
			return "zipfian is false, which chooses all accounts alike: give --zipfian"
		}),
	}
}

// Exponent is the setting of a Zipf distribution's exponent; idle is Setting.Idle.
func Exponent(to *float64, help string, idle func() string) setting.Setting {
	return setting.Real(to, "zipf-exponent", help).Between(0.01, 100).IdleIf(idle)
}
