package pace

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

func parse(t testing.TB, text string) Plan {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return p
}

func TestPlansAreParsedAndPrinted(t *testing.T) {
	for _, c := range []struct {
		text, printed string
		length        time.Duration
		bounded       bool
	}{
		{"1000", "1000", 0, false},
		{"0", "0", 0, false},
		{"0.01", "0.01", 0, false},
		{"1e6", "1000000", 0, false},
		{" 1000 for 30s,2000   for 1m30s ", "1000 for 30s, 2000 for 1m30s", 2 * time.Minute, true},
		{"1000..5000 for 60s", "1000..5000 for 1m", time.Minute, true},
		{"0..5000 for 1h, 5000", "0..5000 for 1h, 5000", time.Hour, false},
		{"5..5 for 1s", "5 for 1s", time.Second, true},
		{"100 for 1m, 0 for 10s, 100", "100 for 1m, 0 for 10s, 100", 70 * time.Second, false},
	} {
		p := parse(t, c.text)
		length, bounded := p.Length()
		if p.String() != c.printed || bounded != c.bounded || bounded && length != c.length {
			t.Errorf("%q is %q, %v, %v", c.text, p, length, bounded)
		}
		if p.Closed() != (c.printed == "0") {
			t.Errorf("%q: closed is %v", c.text, p.Closed())
		}
	}
}

func TestInvalidPlansAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "transactions per second",
		"fast":                                  "transactions per second",
		"NaN":                                   "transactions per second",
		"1e999":                                 "transactions per second",
		"1000 for":                              "transactions per second",
		"1000 in 10s":                           "transactions per second",
		"-1":                                    "cannot be negative",
		"5, -1 for 3s":                          "cannot be negative",
		"1..-5 for 3s":                          "cannot be negative",
		"2e9":                                   "at most 1000000000",
		"1000..2000":                            "needs a time, such as '1000..2000 for 1m'",
		"1000, 2000 for 3s":                     "stage 1 of 2 lacks its time",
		"1000 for 0s, 5":                        "longer than 0",
		"1000 for 30":                           "longer than 0",
		"1000 for -3s":                          "longer than 0",
		"1 for 9000h":                           "at most a year",
		"1 for 5000h, 1 for 5000h":              "longer than a year",
		"1000 for 3s, 0":                        "send nothing",
		"0 for 3s":                              "no stage",
		"0, 0":                                  "stage 1 of 2 lacks its time",
		strings.Repeat("1 for 1s,", 1001) + "1": "at most 1000",
	} {
		p, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, %v, want %q", text, p, err, want)
		}
	}
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1), 2e9} {
		if _, err := Constant(rate); err == nil {
			t.Errorf("the constant rate %v is taken", rate)
		}
	}
}

func TestPlanPredictsArrivalCountAndTime(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		plan string
		at   time.Duration
		x    float64
	}{
		{"100", 0, 0},
		{"100", 2 * s, 200},
		{"1000 for 30s, 2000 for 30s", 45 * s, 60_000},
		{"1000..5000 for 1m", 30 * s, 60_000},
		{"1000..5000 for 1m, 10", 60 * s, 180_000},
		{"5000..1000 for 1m, 10", 70 * s, 180_100},
		{"0..100 for 10s, 100", 10 * s, 500},
		{"0..100 for 10s, 100", 5 * s, 125},
		{"100..0 for 10s, 100", 5 * s, 375},
	} {
		p := parse(t, c.plan)
		if got := p.Expected(c.at); math.Abs(got-c.x) > 1e-6 {
			t.Errorf("%s: %v arrivals until %v, want %v", c.plan, got, c.at, c.x)
		}
		if got, ok := p.When(c.x); !ok || (got-c.at).Abs() > 100 {
			t.Errorf("%s: arrival %v comes at %v, %v, want %v", c.plan, c.x, got, ok, c.at)
		}
	}
	// A pause belongs to nobody, and after the last stage nothing comes.
	p := parse(t, "0 for 1s, 10 for 1s, 0 for 5s, 10 for 1s")
	for x, want := range map[float64]time.Duration{0: s, 9: 1900 * time.Millisecond, 10: 7 * s, 19: 7900 * time.Millisecond} {
		if got, ok := p.When(x); !ok || (got-want).Abs() > 100 {
			t.Errorf("arrival %v comes at %v, %v, want %v", x, got, ok, want)
		}
	}
	if at, ok := p.When(20); ok || p.Expected(time.Hour) != 20 {
		t.Errorf("after the end: %v, %v, %v expected", at, ok, p.Expected(time.Hour))
	}
}

func TestPlanGivesRateAtEachTime(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		plan string
		at   time.Duration
		rate float64
	}{
		{"100", 0, 100}, {"100", time.Hour, 100}, {"100", -s, 0},
		{"1000 for 30s, 2000 for 30s", 29 * s, 1000}, {"1000 for 30s, 2000 for 30s", 30 * s, 2000}, {"1000 for 30s, 2000 for 30s", 60 * s, 0},
		{"1000..5000 for 1m, 10", 15 * s, 2000}, {"1000..5000 for 1m, 10", 2 * time.Minute, 10}, {"0 for 1s, 10 for 1s", s / 2, 0},
	} {
		if got := parse(t, c.plan).At(c.at); math.Abs(got-c.rate) > 1e-9 {
			t.Errorf("%s: the rate at %v is %v, want %v", c.plan, c.at, got, c.rate)
		}
	}
	if got := (Plan{}).At(s); got != 0 {
		t.Errorf("a closed loop has the rate %v", got)
	}
}

// randomPlan returns a plan with stages of all forms.
func randomPlan(r *rand.Rand) Plan {
	n := 1 + r.IntN(6)
	var parts []string
	rate := func() string { return number(math.Round(math.Exp(r.Float64()*10)) / 10 * float64(min(1, r.IntN(5)))) }
	for i := range n {
		text := rate()
		if r.IntN(2) == 0 {
			text += ".." + rate()
		} else if i == n-1 && r.IntN(2) == 0 {
			parts = append(parts, number(1+float64(r.IntN(9999))))
			break
		}
		parts = append(parts, text+" for "+time.Duration(1+r.Int64N(int64(time.Minute))).String())
	}
	p, err := Parse(strings.Join(parts, ", "))
	if err != nil {
		return randomPlan(r)
	}
	return p
}

func TestArrivalTimeInvertsExpectedCount(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		p := randomPlan(r)
		length, bounded := p.Length()
		if !bounded {
			length += time.Minute
		}
		total := p.Expected(length)
		last := time.Duration(-1)
		for i := range 50 {
			x := total * float64(i) / 50
			at, ok := p.When(x)
			if !ok || at < last {
				t.Fatalf("%s: arrival %v comes at %v, %v, after %v", p, x, at, ok, last)
			}
			last = at
			// A nanosecond is as much as the rate there gives; a bound for it is 1e9.
			low, high := p.Expected(max(0, at-2)), p.Expected(at+2)
			if slack := 1e-9 * (1 + total); low > x+slack || high < x-slack {
				t.Fatalf("%s: arrival %v comes at %v, where %v to %v are expected", p, x, at, low, high)
			}
		}
		if at, ok := p.When(total); ok == bounded {
			t.Fatalf("%s: the arrival after all %v comes at %v, %v", p, total, at, ok)
		}
		if again := parse(t, p.String()); !reflect.DeepEqual(again, p) {
			t.Fatalf("%s is read back as %s", p, again)
		}
	}
}

// FuzzParse checks that no text makes the parser panic, and that an accepted text is printed in a form that
// parses to the same plan.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"1000", "1000 for 30s, 2000 for 30s", "1000..5000 for 1m", "0..1e9 for 1ns, 5", "1...5 for 1s", ",", "1 for 1s,", "0x1p-2", "-0", "1_0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("more than one line: %q", err)
			}
			return
		}
		again, err := Parse(p.String())
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Fatalf("%q is printed as %q and read back as %q, %v", text, p, again, err)
		}
		if at, ok := p.When(0); ok == p.Closed() || at < 0 {
			t.Fatalf("%q: the first arrival comes at %v, %v", text, at, ok)
		}
	})
}
