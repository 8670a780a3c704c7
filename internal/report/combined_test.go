package report

import "testing"

func TestCombinedVerdictCountsOnlySeveralRuns(t *testing.T) {
	type run struct{ name, verdict string }
	for _, c := range []struct {
		runs            []run
		verdict, reason string
	}{
		{[]run{{"a", "valid"}}, "valid", "No check found a violation in the step."},
		{[]run{{"a", "invalid"}}, "invalid", "A check found a violation in the step (a)."},
		{[]run{{"a", ""}}, "unknown", "A check could not be decided, or none was made, in the step (a)."},
		{[]run{{"a", "valid"}, {"b", "valid"}}, "valid", "No check found a violation in any of 2 steps."},
		{[]run{{"a", "valid"}, {"b", "invalid"}}, "invalid", "A check found a violation in 1 of 2 steps: b."},
	} {
		verdict, reason := CombinedVerdict("step", c.runs, func(r run) (string, string) { return r.name, r.verdict })
		if verdict != c.verdict || reason != c.reason {
			t.Errorf("%v: %s, %q, want %s, %q", c.runs, verdict, reason, c.verdict, c.reason)
		}
	}
}
