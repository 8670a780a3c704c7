package script_test

import (
	"fmt"
	"math"
	"testing"

	"stroppy/internal/script"
	"stroppy/internal/tier"
)

// TestRandomFunctionsHaveTheirDistributions compares 200,000 seeded draws with the probabilities in pgbench's manual by
// a chi-square test. The seed is fixed, so that the test cannot fail by chance.
func TestRandomFunctionsHaveTheirDistributions(t *testing.T) {
	tier.SkipUnderRace(t)
	const least, greatest, draws = 5, 24, 200_000
	const size = greatest - least + 1
	// below is the cumulative distribution, and gives the probability of a value from 0 to size-1.
	between := func(below func(x float64) float64) func(i int) float64 {
		return func(i int) float64 { return below(float64(i+1)) - below(float64(i)) }
	}
	exponential := func(parameter float64) func(i int) float64 {
		return between(func(x float64) float64 {
			return (1 - math.Exp(-parameter*x/size)) / (1 - math.Exp(-parameter))
		})
	}
	gaussian := func(parameter float64) func(i int) float64 {
		phi := func(x float64) float64 { return math.Erf(x/math.Sqrt2) / 2 }
		return between(func(x float64) float64 {
			return phi(parameter*(2*x/size-1)) / (2 * phi(parameter))
		})
	}
	zipfian := func(s float64) func(i int) float64 {
		sum := 0.0
		for k := 1; k <= size; k++ {
			sum += math.Pow(float64(k), -s)
		}
		return func(i int) float64 { return math.Pow(float64(i+1), -s) / sum }
	}
	for call, probability := range map[string]func(i int) float64{
		"random(5, 24)":                          func(int) float64 { return 1.0 / size },
		"random_exponential(5, 24, 0.5)":         exponential(0.5),
		"random_exponential(5, 24, 5)":           exponential(5),
		"random_gaussian(5, 24, 2.0)":            gaussian(2),
		"random_gaussian(5, 24, 3.5)":            gaussian(3.5),
		"random_zipfian(5, 24, 1.05)":            zipfian(1.05),
		"random_zipfian(5, 24, 2.5)":             zipfian(2.5),
		"5 + permute(random(0, 19), 20)":         func(int) float64 { return 1.0 / size },
		"5 + abs(hash(random(0, 1 << 40))) % 20": func(int) float64 { return 1.0 / size },
	} {
		p := parse(t, `\set x `+call)
		m := p.NewMachine(49, 1)
		counts := make([]int, size)
		for range draws {
			v, err := m.Eval(p.Scripts[0].Steps[0].Expr)
			if err != nil || v.Int < least || v.Int > greatest {
				t.Fatalf("%s: %+v, %v", call, v, err)
			}
			counts[v.Int-least]++
		}
		square := 0.0
		for i, n := range counts {
			expected := draws * probability(i)
			square += (float64(n) - expected) * (float64(n) - expected) / expected
		}
		// With 19 degrees of freedom, 50.8 is exceeded once in 10,000 seeds.
		if square > 50.8 {
			t.Errorf("%s: chi-square %.1f: %v", call, square, counts)
		}
	}
}

func TestRandomFunctionsStayInTheirRange(t *testing.T) {
	for _, call := range []string{"random", "random_exponential", "random_gaussian", "random_zipfian"} {
		for _, limits := range [][2]int64{{-3, -3}, {0, 1}, {math.MinInt64, -2}, {1, math.MaxInt64 - 1}, {-1 << 62, 1<<62 - 2}} {
			text := fmt.Sprintf(`\set x %s(%d, %d`, call, limits[0], limits[1])
			if call != "random" {
				text += ", 2.1"
			}
			p := parse(t, text+")")
			m := p.NewMachine(1, 2)
			seen := map[int64]bool{}
			for range 1000 {
				v, err := m.Eval(p.Scripts[0].Steps[0].Expr)
				if err != nil || v.Kind != script.Integer || v.Int < limits[0] || v.Int > limits[1] {
					t.Fatalf("%s: %+v, %v", text, v, err)
				}
				seen[v.Int] = true
			}
			if limits[0] != limits[1] && len(seen) < 2 {
				t.Errorf("%s: one value", text)
			}
		}
	}
}

// TestPermuteIsABijection also draws other permutations by other seeds.
func TestPermuteIsABijection(t *testing.T) {
	tier.SkipUnderRace(t)
	p := parse(t, `\set x permute(:scale, :i, :d)`)
	m := p.NewMachine(1, 2)
	set := func(name string, i int64) {
		slot, _ := p.Slot(name)
		m.Vars[slot] = script.Value{Kind: script.Integer, Int: i}
	}
	orders := map[string]bool{}
	for size := int64(1); size < 70; size++ {
		for seed := range int64(20) {
			set("i", size)
			set("d", seed)
			order, seen := "", map[int64]bool{}
			for value := range size {
				set("scale", value)
				v, err := m.Eval(p.Scripts[0].Steps[0].Expr)
				if err != nil || v.Int < 0 || v.Int >= size || seen[v.Int] {
					t.Fatalf("permute(%d, %d, %d) = %d, %v", value, size, seed, v.Int, err)
				}
				seen[v.Int] = true
				order += fmt.Sprint(v.Int, " ")
			}
			if size == 4 {
				orders[order] = true
			}
		}
	}
	if len(orders) < 10 {
		t.Errorf("20 seeds permute four values in %d ways", len(orders))
	}
}
