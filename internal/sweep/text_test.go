package sweep

import (
	"bytes"
	"strings"
	"testing"

	"stroppy/internal/report"
)

func text(t *testing.T, over string, finished bool, values []float64, run func(float64) Point) string {
	t.Helper()
	b := &Book{Workload: "bank", Database: "PostgreSQL 15", Over: over, Seed: 7, Finished: finished}
	for _, v := range values {
		b.Points = append(b.Points, run(v))
	}
	var out bytes.Buffer
	if err := Text(&out, b, report.Options{Dir: "dir"}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTextSortsRatesAndNamesKnee(t *testing.T) {
	got := text(t, "rate", true, []float64{0, 9000, 8000, 7000, 3500, 1750, 875, 3500, 7000, 3500, 7000}, func(v float64) Point {
		p := database(10_000)(v)
		p.Verdict = "valid"
		return p
	})
	for _, want := range []string{"maximum", "not known", "rate asked", "The knee is at", "dir/sweep.json"} {
		if !strings.Contains(got, want) {
			t.Errorf("the text has no %q:\n%s", want, got)
		}
	}
	if strings.Index(got, "875") > strings.Index(got, "maximum") || strings.Contains(got, "interrupted") {
		t.Errorf("the rows are not in the order of the rate, or it is reported as interrupted:\n%s", got)
	}
}

// TestTextShowsFittedCoefficients checks that the text shows the coefficients of the law that made the steps.
func TestTextShowsFittedCoefficients(t *testing.T) {
	law := func(n float64) Point {
		return Point{Value: n, TPS: new(1000 * n / (1 + 0.05*(n-1) + 0.001*n*(n-1))), Verdict: "valid", Low: new(1.0), High: new(2.0)}
	}
	got := text(t, "clients", true, []float64{1, 2, 4, 8, 16, 32, 64}, law)
	for _, want := range []string{
		"λ 1000 1000 1000 ", "σ 0.05 0.05 0.05 ", "κ 0.001 0.001 0.001 ", "peaks at 30.8 clients",
		"1 valid 1,000 1 to 2 100 %", "2 valid 1,901 1 to 2 95 %",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("the text has no %q:\n%s", want, got)
		}
	}
	short := text(t, "clients=1", true, []float64{1}, func(n float64) Point {
		return Point{Value: n, TPS: new(1000.0), Verdict: "valid", P50MS: new(1.0), P99MS: new(2.0), P999MS: new(2.5), MaxMS: new(3.0)}
	})
	if strings.Contains(short, "not known") || strings.Contains(short, "–") || strings.Contains(short, "interval") || strings.Contains(short, "whole second") || !strings.Contains(short, "1 number of clients is too few") || strings.Contains(short, "  0  ") {
		t.Errorf("of a step without a whole second the text is:\n%s", short)
	}
	mixed := text(t, "clients=1,2", true, []float64{1, 2}, func(n float64) Point {
		p := Point{Value: n, TPS: new(1000.0), Verdict: "valid"}
		if n == 2 {
			p.Low, p.High, p.Median, p.Best = new(990.0), new(1010.0), new(1001.0), new(1020.0)
		}
		return p
	})
	if !strings.Contains(strings.Join(strings.Fields(mixed), " "), "TPS interval median second efficiency") || strings.Count(mixed, "–") != 2 || !strings.Contains(mixed, "whole seconds has no median") {
		t.Errorf("of a step without a whole second beside another the text is:\n%s", mixed)
	}
	few := text(t, "clients=1,2", false, []float64{1, 2}, law)
	for _, want := range []string{"was not fitted", "was interrupted"} {
		if !strings.Contains(few, want) {
			t.Errorf("the text has no %q:\n%s", want, few)
		}
	}
}
