package check

import (
	"testing"
	"time"

	"stroppy/internal/check/fact"
)

// TestVerdictIgnoresNotApplicable checks that a result that is not applicable has no influence. A run without
// any decided required result is unknown.
func TestVerdictIgnoresNotApplicable(t *testing.T) {
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

func TestWithoutChangesOnlyValidResults(t *testing.T) {
	none := fact.Nothing{Noun: "scan", Verb: "made"}
	for status, want := range map[Status]Status{Valid: NotApplicable, Unknown: Unknown, Invalid: Invalid} {
		got := Result{Status: status, Why: fact.CutOff{}}.Without(none)
		if got.Status != want || (got.Why == fact.Fact(none)) != (want == NotApplicable) {
			t.Errorf("Without changed %v to %+v", status, got)
		}
	}
	if got := (Result{Status: Valid, Why: fact.CutOff{}}).Without(nil); got.Status != Valid || got.Why != (fact.CutOff{}) {
		t.Errorf("Without(nil) changed the result to %+v", got)
	}
	if text, err := NotApplicable.MarshalText(); err != nil || string(text) != "not applicable" {
		t.Errorf("the name of the status is %q, %v", text, err)
	}
}

func TestLastedRoundsToThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 400: "400 ns", 1500: "1.5 µs", 248008498: "248 ms", 999600: "1 ms", 2 * time.Second: "2 s", 90 * time.Second: "90 s", 2 * time.Hour: "7,200 s",
	} {
		if got := Lasted(d); got != want {
			t.Errorf("Lasted(%d ns) = %q, want %q", d, got, want)
		}
	}
}
