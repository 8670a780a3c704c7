package session

import (
	"errors"
	"slices"
	"testing"

	"stroppy/internal/scenario"
)

// TestEachReasonIsPrintedOnce checks that each reason is said once, the first one first.
func TestEachReasonIsPrintedOnce(t *testing.T) {
	a := &App{Scrub: scenario.Scrubber("")}
	for text, want := range map[string][]string{
		"":                         {"it failed without a message"},
		"one":                      {"one"},
		"start: a\nb\nb\r\n":       {"start: a", "b"},
		"start: a, for b\nb\nc":    {"start: a, for b", "c"},
		"start: a\nb\nstop: b\nc":  {"start: a", "stop: b", "c"},
		"a\nstart: a\nend: b\nb\n": {"a", "start: a", "end: b"},
	} {
		if got := a.Reasons(errors.New(text)); !slices.Equal(got, want) {
			t.Errorf("of %q the reasons are %q, want %q", text, got, want)
		}
	}
}
