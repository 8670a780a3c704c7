package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Size is the throughput X of N clients or nodes; a repeated run is one of its own.
type Size struct{ N, X float64 }

// Scaling is the Universal Scalability Law fitted to measured throughput:
//
//	X(N) = λN / (1 + σ(N-1) + κN(N-1))
//
// with Lambda the throughput of one, Sigma the contention for what is shared and
// Kappa the delay of keeping each pair coherent. N. J. Gunther, Guerrilla Capacity
// Planning, Springer 2007, https://doi.org/10.1007/978-3-540-31010-5; with λ
// fitted too: http://www.perfdynamics.com/Manifesto/USLscalability.html
type Scaling struct {
	Lambda, Sigma, Kappa Interval

	// PeakN is the N of the highest throughput, √((1-σ)/κ) and 1 at least, and
	// PeakX that throughput. Both are 0 where κ is 0: then there is no peak.
	PeakN, PeakX float64
	// Extrapolated says that the peak lies beyond every N that was measured.
	Extrapolated bool
	// Limit is what the throughput approaches without a peak, λ/σ; 0 where there
	// is a peak, or no limit because σ is 0 too.
	Limit float64

	Efficiency    []float64 // X/(λN) of each Size, in the order given
	ResidualError float64   // standard error of the throughput about the curve
	R2            float64   // the part of the variation of X that the curve explains; 1 where X does not vary
	Detail        string    // a sentence about the peak
}

// leastSizes is how many different N a fit takes.
const leastSizes = 4

// coefficients are λ, σ, κ.
type coefficients [3]float64

const none, lambda, sigma, kappa = -1, 0, 1, 2

// at returns the throughput of n.
func (c coefficients) at(n float64) float64 { return c[lambda] * n / c.divisor(n) }

func (c coefficients) divisor(n float64) float64 {
	return 1 + c[sigma]*(n-1) + c[kappa]*n*(n-1)
}

// without sets those to 0 that change no measured throughput by more than rounding.
func (c coefficients) without(most float64) coefficients {
	const rounding = 1e-9
	if c[sigma]*most < rounding {
		c[sigma] = 0
	}
	if c[kappa]*most*most < rounding {
		c[kappa] = 0
	}
	return c
}

// gradient returns the derivatives of the throughput of n.
func (c coefficients) gradient(n float64) coefficients {
	d := c.divisor(n)
	slope := -c[lambda] * n * (n - 1) / (d * d)
	return coefficients{n / d, slope, slope * n}
}

// At returns the throughput that the law predicts of n.
func (s Scaling) At(n float64) float64 {
	return coefficients{s.Lambda.Value, s.Sigma.Value, s.Kappa.Value}.at(n)
}

// FitScaling fits the law to the sizes by least squares of X, with σ and κ at 0 or above.
// It takes four different N, because three coefficients pass exactly through three points.
//
// An interval is where the sum of squares, with that coefficient held and the
// others fitted again within their bounds, stays below the minimum times
// 1+F/(points-3), F being the quantile of the F distribution with 1 and points-3
// degrees of freedom (profile likelihood; D. M. Bates and D. G. Watts, Nonlinear
// Regression Analysis and Its Applications, Wiley 1988, ch. 6,
// https://doi.org/10.1002/9780470316757). One without an upper end is not known.
func FitScaling(sizes []Size) (Scaling, error) {
	if err := checkSizes(sizes); err != nil {
		return Scaling{}, err
	}
	// As parts of the highest throughput, sums of squares are comparable to 1.
	unit, most, each := 0.0, 0.0, 0.0 // the highest throughput, N, and throughput per N
	for _, s := range sizes {
		unit, most, each = max(unit, s.X), max(most, s.N), max(each, s.X/s.N)
	}
	scaled, x := make([]Size, len(sizes)), make([]float64, len(sizes))
	for i, s := range sizes {
		x[i] = s.X / unit
		scaled[i] = Size{s.N, x[i]}
	}
	bent := coefficients{each / unit, 0.1 / most, 0.1 / (most * most)} // a little, from the straight line
	c, squares, ok := bestFit(scaled, bent, none)
	if !ok {
		return Scaling{}, fmt.Errorf("fit the scalability law to %d measurements: no curve of that shape comes near them", len(sizes))
	}
	c = c.without(most)
	s := Scaling{
		R2:     1,
		Lambda: profile(scaled, c, squares, lambda),
		Sigma:  profile(scaled, c, squares, sigma),
		Kappa:  profile(scaled, c, squares, kappa),
	}
	s.Lambda.Value, s.Lambda.Low, s.Lambda.High = s.Lambda.Value*unit, s.Lambda.Low*unit, s.Lambda.High*unit
	s.ResidualError = unit * math.Sqrt(squares/float64(len(sizes)-3))
	if total := stat.Variance(x, nil) * float64(len(x)-1); total > 0 {
		s.R2 = 1 - squares/total
	}
	for _, size := range sizes {
		s.Efficiency = append(s.Efficiency, size.X/(s.Lambda.Value*size.N))
	}
	s.peak(most)
	return s, nil
}

func checkSizes(sizes []Size) error {
	different := map[float64]bool{}
	for _, s := range sizes {
		if !(s.N > 0) || !(s.X > 0) || math.IsInf(s.N, 0) || math.IsInf(s.X, 0) {
			return fmt.Errorf("fit the scalability law: a throughput of %g at N = %g cannot be fitted: leave that step out", s.X, s.N)
		}
		different[s.N] = true
	}
	if len(different) < leastSizes {
		return fmt.Errorf("fit the scalability law: %d different N are too few: its three coefficients pass exactly through three points, and only a fourth shows how good they are", len(different))
	}
	return nil
}

// peak sets what follows from the coefficients; most is the largest N measured.
func (s *Scaling) peak(most float64) {
	if s.Kappa.Value > 0 {
		s.PeakN = max(1, math.Sqrt(max(0, 1-s.Sigma.Value)/s.Kappa.Value))
		s.PeakX = s.At(s.PeakN)
		s.Extrapolated = s.PeakN > most
		s.Detail = fmt.Sprintf("the throughput peaks at N = %.4g with %s", s.PeakN, rate(s.PeakX))
		if s.Extrapolated {
			s.Detail += fmt.Sprintf(", which is a prediction: the largest N measured is %g", most)
		}
		if !s.Kappa.Known() || s.Kappa.Low == 0 {
			s.Detail += "; that there is a peak at all is not certain, because κ may as well be 0"
		}
		return
	}
	if s.Sigma.Value > 0 {
		s.Limit = s.Lambda.Value / s.Sigma.Value
		s.Detail = fmt.Sprintf("there is no peak, because κ is 0: the throughput approaches %s", rate(s.Limit))
		return
	}
	s.Detail = "there is no peak, because σ and κ are 0: the throughput grows in proportion to N, or faster, as far as was measured"
}

// residue returns the sum of squares that c leaves; false where c is no curve.
func residue(sizes []Size, c coefficients) (float64, bool) {
	var sum float64
	for _, s := range sizes {
		if c.divisor(s.N) <= 0 {
			return 0, false
		}
		d := s.X - c.at(s.N)
		sum += d * d
	}
	return sum, c[lambda] > 0 && !math.IsNaN(sum) && !math.IsInf(sum, 0)
}

// bestFit searches from c for the coefficients of the least sum of squares with σ, κ ≥ 0,
// by the method of Levenberg and Marquardt with steps scaled by each coefficient's own
// curvature; J. J. Moré, 1978, https://doi.org/10.1007/BFb0067700. The one that is held
// keeps its value.
func bestFit(sizes []Size, c coefficients, held int) (coefficients, float64, bool) {
	squares, ok := residue(sizes, c)
	const (
		iterations  = 500
		stiffest    = 1e12
		improvement = 1e-12
	)
	damping := 1e-3
	for range iterations {
		next := c.stepped(sizes, held, damping)
		left, valid := residue(sizes, next)
		if !valid || left >= squares {
			if damping *= 10; damping > stiffest {
				break
			}
			continue
		}
		settled := squares-left <= improvement*squares
		c, squares = next, left
		if settled {
			break
		}
		damping = max(damping/10, 1e-12)
	}
	return c, squares, ok
}

// stepped returns the coefficients after one step; they are the same where there is none.
func (c coefficients) stepped(sizes []Size, held int, damping float64) coefficients {
	free := slices.DeleteFunc([]int{lambda, sigma, kappa}, func(i int) bool { return i == held })
	for len(free) > 0 {
		// Least squares of the residuals, and below them of the damped step itself.
		slopes, left := mat.NewDense(len(sizes)+len(free), len(free), nil), mat.NewVecDense(len(sizes)+len(free), nil)
		for row, s := range sizes {
			left.SetVec(row, s.X-c.at(s.N))
			gradient := c.gradient(s.N)
			for column, i := range free {
				slopes.Set(row, column, gradient[i])
			}
		}
		for i := range free {
			slopes.Set(len(sizes)+i, i, math.Sqrt(damping)*mat.Norm(slopes.ColView(i), 2))
		}
		var step mat.VecDense
		if step.SolveVec(slopes, left) != nil {
			return c
		}
		next, inside := c, free[:0:0]
		for column, i := range free {
			next[i] = max(0, c[i]+step.AtVec(column))
			if c[i] > 0 || next[i] > 0 {
				inside = append(inside, i)
			}
		}
		if len(inside) == len(free) {
			return next
		}
		free = inside // those that lie on their bound and would leave it stay there
	}
	return c
}

// profile returns the interval of one coefficient; see FitScaling.
func profile(sizes []Size, best coefficients, squares float64, which int) Interval {
	value := best[which]
	freedom := float64(len(sizes) - 3)
	t := quantileT(freedom)
	limit := squares * (1 + t*t/freedom)
	if squares < 1e-20 { // of throughputs up to 1: the curve passes through every point
		return Interval{Value: value, Low: value, High: value, Confidence: Confidence}
	}
	outside := func(v float64) bool {
		at := best
		at[which] = v
		_, left, ok := bestFit(sizes, at, which)
		return !ok || left > limit
	}
	i := Interval{Value: value}
	if value > 0 && outside(0) {
		i.Low = boundary(value, 0, outside)
	}
	const furthest = 1e6
	step := max(value/16, 1e-9)
	for !outside(value + step) {
		if step *= 2; step > furthest {
			return Interval{Value: value}
		}
	}
	i.High = boundary(value, value+step, outside)
	i.Confidence = Confidence
	return i
}

// boundary returns where outside begins between a value inside and one outside.
func boundary(inside, out float64, outside func(float64) bool) float64 {
	for range 20 {
		middle := (inside + out) / 2
		if outside(middle) {
			out = middle
		} else {
			inside = middle
		}
	}
	return inside
}
