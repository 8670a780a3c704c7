package check

import (
	"testing"
	"time"

	"stroppy/internal/check/fact"
)

// TestVerdict holds that what is not applicable counts neither for nor against a run, and
// that a run about which nothing required says anything is unknown.
func TestVerdict(t *testing.T) {
	required := func(list ...Status) []Result {
		var results []Result
		for _, s := range list {
			results = append(results, Result{Status: s, Required: true})
		}
		return append(results, Result{Status: Invalid}, Result{Status: Valid}, Result{})
	}
	for _, tc := range []struct {
		results []Result
		want    Status
	}{
		{required(), Unknown},
		{required(Valid), Valid},
		{required(NotApplicable), Unknown},
		{required(NotApplicable, Valid), Valid},
		{required(NotApplicable, Unknown, Valid), Unknown},
		{required(NotApplicable, Unknown, Invalid), Invalid},
	} {
		if got := Verdict(tc.results); got != tc.want {
			t.Errorf("%+v is %v, not %v", tc.results, got, tc.want)
		}
	}
}

// TestWithout holds that only what is valid becomes not applicable.
func TestWithout(t *testing.T) {
	none := fact.Nothing{Noun: "scan", Verb: "made"}
	for status, want := range map[Status]Status{Valid: NotApplicable, Unknown: Unknown, Invalid: Invalid} {
		got := Result{Status: status, Why: fact.CutOff{}}.Without(none)
		if got.Status != want || (got.Why == fact.Fact(none)) != (want == NotApplicable) {
			t.Errorf("%v becomes %+v", status, got)
		}
	}
	if got := (Result{Status: Valid, Why: fact.CutOff{}}).Without(nil); got.Status != Valid || got.Why != (fact.CutOff{}) {
		t.Errorf("where there is something to check, it becomes %+v", got)
	}
	if text, err := NotApplicable.MarshalText(); err != nil || string(text) != "not applicable" {
		t.Errorf("its name is %q, %v", text, err)
	}
}

// TestLasted: times have three digits and the unit that people say.
func TestLasted(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 400: "400 ns", 1500: "1.5 µs", 248008498: "248 ms", 999600: "1 ms", 2 * time.Second: "2 s", 90 * time.Second: "90 s", 2 * time.Hour: "7,200 s",
	} {
		if got := Lasted(d); got != want {
			t.Errorf("%d ns are written %q, not %q", d, got, want)
		}
	}
}
