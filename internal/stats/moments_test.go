package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// agree reports whether two numbers agree to the given part of the larger one, or of 1.
func agree(a, b, part float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= part*max(math.Abs(a), math.Abs(b), 1)
}

func TestMomentsLikeGonum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		values, places := make([]float64, n), make([]float64, n)
		level, slope := 1e6*random.NormFloat64(), 100*random.NormFloat64()
		for i := range values {
			places[i] = float64(i)
			values[i] = level + slope*places[i] + 1000*random.NormFloat64()
		}
		for name, pair := range map[string][2]float64{
			"mean":                {meanOf(values), stat.Mean(values, nil)},
			"variance":            {varianceOf(values), stat.Variance(values, nil)},
			"population variance": {populationVarianceOf(values), stat.PopVariance(values, nil)},
		} {
			if !agree(pair[0], pair[1], 1e-12) && n > 1 {
				t.Errorf("%s of %d values: %v, by gonum %v", name, n, pair[0], pair[1])
			}
		}
		if n < 2 {
			continue
		}
		intercept, slope, left := fitLine(values)
		wantIntercept, wantSlope := stat.LinearRegression(places, values, nil, false)
		wantLeft := 1 - stat.RSquared(places, values, nil, wantIntercept, wantSlope)
		if !agree(intercept, wantIntercept, 1e-9) || !agree(slope, wantSlope, 1e-9) || !agree(left, wantLeft, 1e-9) {
			t.Errorf("line of %d values: %v + %v x, left %v, by gonum %v + %v x, left %v", n, intercept, slope, left, wantIntercept, wantSlope, wantLeft)
		}
	}
	if v := varianceOf(slices.Repeat([]float64{0.1}, 1000)); v > 1e-30 {
		t.Errorf("equal values vary by %v", v)
	}
}

func TestQuantilesLikeGonum(t *testing.T) {
	for freedom := 1.0; freedom < 1e6; freedom *= 1.3 {
		want := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile((1 + Confidence) / 2)
		if got := quantileT(freedom); !agree(got, want, 1e-8) {
			t.Errorf("t of %v degrees of freedom: %v, by gonum %v", freedom, got, want)
		}
	}
	for z := -6.0; z < 6; z += 0.1 {
		if got, want := normalTail(z), distuv.UnitNormal.Survival(z); !agree(got, want, 1e-14) {
			t.Errorf("above %v: %v, by gonum %v", z, got, want)
		}
	}
}

func TestLeastSquaresLikeGonum(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		width := 1 + random.IntN(4)
		height := width + random.IntN(10)
		columns, y := make([][]float64, width), make([]float64, height)
		dense, right := mat.NewDense(height, width, nil), mat.NewVecDense(height, nil)
		for i := range columns {
			columns[i] = make([]float64, height)
			size := math.Pow(10, 6*random.Float64()-3)
			for row := range columns[i] {
				columns[i][row] = size * random.NormFloat64()
				dense.Set(row, i, columns[i][row])
			}
		}
		for row := range y {
			y[row] = random.NormFloat64()
			right.SetVec(row, y[row])
		}
		var want mat.VecDense
		if err := want.SolveVec(dense, right); err != nil {
			continue // ill-conditioned
		}
		got, ok := leastSquares(columns, y)
		for i := range want.Len() {
			if !ok || !agree(got[i], want.AtVec(i), 1e-6) {
				t.Fatalf("%d columns of %d: %v, %v; by gonum %v", width, height, got, ok, want.RawVector().Data)
			}
		}
	}
	if _, ok := leastSquares([][]float64{{1, 2, 3}, {2, 4, 6}}, []float64{1, 1, 1}); ok {
		t.Error("a column that is twice another one has a factor")
	}
	if _, ok := leastSquares([][]float64{{0, 0}}, []float64{1, 1}); ok {
		t.Error("a column of zeros has a factor")
	}
}
