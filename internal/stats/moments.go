package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// These functions use only gonum's package mathext. Its packages stat, distuv and mat would add LAPACK and BLAS to
// the first build.

// meanOf returns the arithmetic mean, and NaN for no values.
func meanOf(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// squaresOf returns the mean and the sum of squared deviations from it, corrected for the rounding of the
// mean (T. F. Chan, G. H. Golub and R. J. LeVeque, The American Statistician 37(3), 1983,
// https://doi.org/10.1080/00031305.1983.10483115, (1.7)).
func squaresOf(values []float64) (center, sum float64) {
	center = meanOf(values)
	var left float64
	for _, v := range values {
		sum += (v - center) * (v - center)
		left += v - center
	}
	return center, max(0, sum-left*left/float64(len(values)))
}

// varianceOf returns the sample variance, and NaN for fewer than two values.
func varianceOf(values []float64) float64 {
	_, sum := squaresOf(values)
	return sum / float64(len(values)-1)
}

// populationVarianceOf returns the variance of the values themselves.
func populationVarianceOf(values []float64) float64 {
	_, sum := squaresOf(values)
	return sum / float64(len(values))
}

// fitLine fits a line to values at 0, 1, 2, ... by least squares. left is the share of the variation that the
// line does not explain.
func fitLine(values []float64) (intercept, slope, left float64) {
	center, all := squaresOf(values)
	middle := float64(len(values)-1) / 2
	var products, places float64
	for i, v := range values {
		x := float64(i) - middle
		products += x * (v - center)
		places += x * x
	}
	slope = products / places
	return center - slope*middle, slope, 1 - slope*products/all
}

// normalTail returns the probability that a standard normal variable exceeds z.
func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// quantileT returns the half-width in standard errors of an interval of Confidence by Student's t. |T|
// exceeds t with probability I_x(f/2, 1/2), where x = f/(f+t*t) (M. Abramowitz and I. A. Stegun, Handbook of
// Mathematical Functions, 26.7.1).
func quantileT(freedom float64) float64 {
	x := mathext.InvRegIncBeta(freedom/2, 0.5, 1-Confidence)
	return math.Sqrt(freedom * (1 - x) / x)
}

// leastSquares returns the coefficients of the columns that best approximate y, and false if the columns are
// linearly dependent. It modifies columns and y. It uses the modified Gram-Schmidt method, which is as stable
// as Householder's if y is reduced like the columns (Å. Björck, BIT 7, 1967,
// https://doi.org/10.1007/BF01934122).
func leastSquares(columns [][]float64, y []float64) ([]float64, bool) {
	const negligible = 1e-14
	n := len(columns)
	above, factors := make([][]float64, n), make([]float64, n)
	for i, column := range columns {
		before := dot(column, column)
		for j := range i {
			r := dot(columns[j], column)
			above[j] = append(above[j], r)
			subtract(column, r, columns[j])
		}
		length := math.Sqrt(dot(column, column))
		if !(length > negligible*math.Sqrt(before)) {
			return nil, false
		}
		for row := range column {
			column[row] /= length
		}
		factors[i] = dot(column, y)
		subtract(y, factors[i], column)
		above[i] = []float64{length}
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			factors[i] -= above[i][j-i] * factors[j]
		}
		factors[i] /= above[i][0]
	}
	return factors, true
}

func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// subtract subtracts factor times b from a.
func subtract(a []float64, factor float64, b []float64) {
	for i := range a {
		a[i] -= factor * b[i]
	}
}
