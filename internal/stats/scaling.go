package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Size is the throughput X of N clients or nodes. A repetition is a separate Size.
type Size struct{ N, X float64 }

// Scaling is the Universal Scalability Law fitted to measured throughput:
//
//	X(N) = λN / (1 + σ(N-1) + κN(N-1))
//
// Lambda is the throughput of one, Sigma the contention for shared resources, and Kappa the cost of coherence
// between pairs. N. J. Gunther, Guerrilla Capacity Planning, Springer 2007,
// https://doi.org/10.1007/978-3-540-31010-5; with λ fitted too:
// http://www.perfdynamics.com/Manifesto/USLscalability.html
type Scaling struct {
	Lambda, Sigma, Kappa Interval

	// Sound reports whether the curve may be shown: it is based on enough measurements and explains most of
	// their variation. Otherwise nothing is concluded from it.
	Sound bool

	// PeakN is the N of the highest throughput, √((1-σ)/κ) but at least 1, and PeakX is that throughput. Both
	// are 0 if the data show no peak.
	PeakN, PeakX float64
	// Extrapolated reports whether the peak is beyond every measured N.
	Extrapolated bool
	// Limit is the asymptotic throughput λ/σ if there is no peak; 0 if the data do not show it.
	Limit float64

	bends bool // κ is above 0, whether the errors are equal or grow with the throughput

	ResidualError float64 // standard error of the throughput about the curve
	R2            float64 // the part of the variation of X that the curve explains; 1 if X does not vary
	Detail        string  // what is claimed, or why nothing is and what would help
}

const (
	// leastSizes is the number of different N that a fit needs.
	leastSizes = 4
	// leastMeasured is the number of measurements that a claim needs. With three coefficients, six
	// measurements leave three degrees of freedom. With fewer, the F quantile of an interval is 18.5 or 161,
	// and noise alone gives a high R².
	leastMeasured = 6
	// leastR2 is the R² that a claim needs: the standard deviation of the residuals is then at most a third
	// of the throughputs'. TestNoiseIsNoPeak shows how rarely noise alone satisfies this and an interval of κ
	// above 0.
	leastR2 = 0.9
	// mostBeyond is the largest factor by which a claimed peak may exceed the largest N, or a claimed limit
	// the best measured throughput.
	mostBeyond = 2
)

// coefficients holds λ, σ and κ.
type coefficients [3]float64

const none, lambda, sigma, kappa = -1, 0, 1, 2

// ceiling holds the physical upper bounds: at most all of the work can be serialized.
var ceiling = coefficients{math.Inf(1), 1, math.Inf(1)}

// at returns the throughput at n.
func (c coefficients) at(n float64) float64 { return c[lambda] * n / c.divisor(n) }

func (c coefficients) divisor(n float64) float64 {
	return 1 + c[sigma]*(n-1) + c[kappa]*n*(n-1)
}

// without sets those coefficients to 0 that change no measured throughput by more than rounding.
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

// gradient returns the derivatives of the throughput at n.
func (c coefficients) gradient(n float64) coefficients {
	d := c.divisor(n)
	slope := -c[lambda] * n * (n - 1) / (d * d)
	return coefficients{n / d, slope, slope * n}
}

// At returns the throughput that the law predicts for n.
func (s Scaling) At(n float64) float64 {
	return coefficients{s.Lambda.Value, s.Sigma.Value, s.Kappa.Value}.at(n)
}

// FitScaling fits the law to the sizes by least squares of X, with λ > 0, 0 ≤ σ ≤ 1 and κ ≥ 0. It needs four
// different N, because three coefficients pass exactly through three points. what names the unit of N, such as
// clients, in errors and in Detail.
//
// An interval contains the values of a coefficient for which the sum of squares is below the minimum times
// 1+F/(points-3). The other coefficients are fitted again within their bounds. F is the quantile of the F
// distribution with 1 and points-3 degrees of freedom (profile likelihood; D. M. Bates and D. G. Watts, Nonlinear
// Regression Analysis and Its Applications, Wiley 1988, ch. 6, https://doi.org/10.1002/9780470316757). An interval
// without an upper end is not known.
func FitScaling(what string, sizes []Size) (Scaling, error) {
	if err := checkSizes(what, sizes); err != nil {
		return Scaling{}, err
	}
	// Relative to the highest throughput, sums of squares are comparable to 1.
	unit, most, each := 0.0, 0.0, 0.0 // the highest throughput, N, and throughput per N
	for _, s := range sizes {
		unit, most, each = max(unit, s.X), max(most, s.N), max(each, s.X/s.N)
	}
	scaled, x := make([]sample, len(sizes)), make([]float64, len(sizes))
	for i, s := range sizes {
		x[i] = s.X / unit
		scaled[i] = sample{Size{s.N, x[i]}, 1}
	}
	bent := coefficients{each / unit, 0.1 / most, 0.1 / (most * most)} // a little, from the straight line
	c, squares, ok := bestFit(scaled, bent, none)
	if !ok {
		return Scaling{}, fmt.Errorf("fit the scalability law to %d measurements: no curve of that shape is close to them", len(sizes))
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
	if total := varianceOf(x) * float64(len(x)-1); total > 0 {
		s.R2 = 1 - squares/total
	}
	s.bends = s.Kappa.Known() && s.Kappa.Low > 0 && bendsRelatively(scaled, c)
	s.conclude(what, len(sizes), most, unit)
	return s, nil
}

func checkSizes(what string, sizes []Size) error {
	different := map[float64]bool{}
	for _, s := range sizes {
		if !(s.N > 0) || !(s.X > 0) || math.IsInf(s.N, 0) || math.IsInf(s.X, 0) {
			return fmt.Errorf("fit the scalability law: a throughput of %g with %g %s cannot be fitted: leave that step out", s.X, s.N, what)
		}
		different[s.N] = true
	}
	if len(different) < leastSizes {
		count := fmt.Sprintf("%d different numbers of %s are", len(different), what)
		if len(different) == 1 {
			count = "1 number of " + what + " is"
		}
		return fmt.Errorf("fit the scalability law: %s too few: it has three coefficients, so that a curve goes through any three points, and only a fourth shows how good it is", count)
	}
	return nil
}

// conclude sets what the coefficients show. most is the largest N, and best the highest measured throughput.
func (s *Scaling) conclude(what string, measured int, most, best float64) {
	const more = "measure each step several times (--repeat 3)"
	switch {
	case measured < leastMeasured:
		s.Detail = fmt.Sprintf("no peak is claimed: %d measurements are too few for the scalability law, which takes %d; add steps, or %s", measured, leastMeasured, more)
		return
	case s.R2 < leastR2:
		s.Detail = fmt.Sprintf("no peak is claimed: the scalability law explains %.0f %% of the variation of the throughput, and %.0f %% are needed; %s, longer, or over a wider range",
			100*max(0, s.R2), 100*leastR2, more)
		return
	}
	s.Sound = true
	switch {
	case s.bends:
		s.peak(what, most, best)
	case s.Kappa.Low > 0:
		s.Detail = "no peak is claimed: κ may as well be 0 if the errors grow with the throughput; " + more + ", or add larger steps"
	case s.Kappa.Value > 0:
		s.Detail = fmt.Sprintf("no peak is claimed: κ may as well be 0 by its %.0f %% interval; %s, or add larger steps", 100*Confidence, more)
	case s.Sigma.Value == 0:
		s.Detail = "there is no peak, because σ and κ are 0: the throughput grows in proportion to the number of " + what + ", or faster, as far as was measured"
	default:
		s.limit(what, most, best)
	}
}

// peak claims the peak if κ is above 0.
func (s *Scaling) peak(what string, most, best float64) {
	n := max(1, math.Sqrt(max(0, 1-s.Sigma.Value)/s.Kappa.Value))
	if n > mostBeyond*most {
		s.Detail = fmt.Sprintf("no peak is claimed: the curve bends down only beyond %d times the largest number of %s measured, %g; add larger steps", mostBeyond, what, most)
		return
	}
	s.PeakN, s.PeakX, s.Extrapolated = n, s.At(n), n > most
	if n == 1 {
		what = strings.TrimSuffix(what, "s")
	}
	s.Detail = fmt.Sprintf("the throughput peaks at %.3g %s with %s by the fitted curve", s.PeakN, what, rate(s.PeakX))
	if s.Extrapolated {
		s.Detail += fmt.Sprintf(", which is a prediction: the largest number measured is %g", most)
	}
	s.above(s.PeakX, best, "the curve's peak")
}

// limit claims the asymptotic throughput if κ is 0.
func (s *Scaling) limit(what string, most, best float64) {
	limit := s.Lambda.Value / s.Sigma.Value
	switch {
	case !s.Sigma.Known() || s.Sigma.Low == 0:
		s.Detail = fmt.Sprintf("no peak is seen up to %g %s, and no limit is claimed: σ may as well be 0 by its %.0f %% interval; add larger steps", most, what, 100*Confidence)
	case limit > mostBeyond*best:
		s.Detail = fmt.Sprintf("no peak is seen up to %g %s, and no limit is claimed: it would be more than %d times what was measured; add larger steps", most, what, mostBeyond)
	default:
		s.Limit = limit
		s.Detail = fmt.Sprintf("no peak is seen up to %g %s: the throughput approaches %s by the fitted curve, whose κ is 0", most, what, rate(limit))
		s.above(limit, best, "that limit")
	}
}

// above describes a best measurement that exceeds the claim.
func (s *Scaling) above(claim, best float64, what string) {
	if best > claim {
		s.Detail += fmt.Sprintf("; the highest measured, %s, is above %s", rate(best), what)
	}
}

// sample is a size with the weight of its residual.
type sample struct {
	Size
	weight float64
}

// bendsRelatively reports whether κ's interval is also above 0 with residuals relative to the throughput. If
// errors are relative, least squares of X alone claims a false peak in one of nine cases.
func bendsRelatively(sizes []sample, c coefficients) bool {
	shares := slices.Clone(sizes)
	for i := range shares {
		shares[i].weight = 1 / shares[i].X
	}
	best, squares, ok := bestFit(shares, c, none)
	if !ok || best[kappa] == 0 {
		return false
	}
	return profile(shares, best, squares, kappa).Low > 0
}

// residue returns the sum of squares for c, and false if c is not a curve.
func residue(sizes []sample, c coefficients) (float64, bool) {
	var sum float64
	for _, s := range sizes {
		if c.divisor(s.N) <= 0 {
			return 0, false
		}
		d := (s.X - c.at(s.N)) * s.weight
		sum += d * d
	}
	return sum, c[lambda] > 0 && !math.IsNaN(sum) && !math.IsInf(sum, 0)
}

// bestFit finds, starting from c, the coefficients with the least sum of squares within their bounds. It uses
// the Levenberg-Marquardt method with steps scaled by each coefficient's curvature (J. J. Moré, 1978,
// https://doi.org/10.1007/BFb0067700). The coefficient held keeps its value.
func bestFit(sizes []sample, c coefficients, held int) (coefficients, float64, bool) {
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

// stepped returns the coefficients after one step, or the same coefficients if no step is possible.
func (c coefficients) stepped(sizes []sample, held int, damping float64) coefficients {
	free := slices.DeleteFunc([]int{lambda, sigma, kappa}, func(i int) bool { return i == held })
	for len(free) > 0 {
		// The least-squares problem contains the residuals and the damped step itself.
		left := make([]float64, len(sizes)+len(free))
		slopes := make([][]float64, len(free))
		for column := range slopes {
			slopes[column] = make([]float64, len(left))
		}
		for row, s := range sizes {
			left[row] = (s.X - c.at(s.N)) * s.weight
			gradient := c.gradient(s.N)
			for column, i := range free {
				slopes[column][row] = gradient[i] * s.weight
			}
		}
		for i, column := range slopes {
			column[len(sizes)+i] = math.Sqrt(damping * dot(column, column))
		}
		step, ok := leastSquares(slopes, left)
		if !ok {
			return c
		}
		next, inside := c, free[:0:0]
		for column, i := range free {
			next[i] = min(max(0, c[i]+step[column]), ceiling[i])
			if next[i] != c[i] || c[i] > 0 && c[i] < ceiling[i] {
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
func profile(sizes []sample, best coefficients, squares float64, which int) Interval {
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
	for value+step < ceiling[which] && !outside(value+step) {
		if step *= 2; step > furthest {
			return Interval{Value: value}
		}
	}
	if end := ceiling[which]; value+step >= end {
		if i.Confidence = Confidence; value >= end || !outside(end) {
			i.High = end
			return i
		}
		step = end - value
	}
	i.High = boundary(value, value+step, outside)
	i.Confidence = Confidence
	return i
}

// boundary returns the point between inside and out at which outside becomes true.
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
